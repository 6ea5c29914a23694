//go:build js && wasm

// Command labwasm is the engine of the lab (the web page of "parley lab"), compiled to WebAssembly. It runs in a
// worker of the browser, and gives the worker three functions. The function parleyAsk(id, question) answers a
// question: it sends messages {id, progress}, and at the end one message {id, answer}. The question, the progress,
// and the answer are JSON texts. parleyKeep(id, bytes) keeps the run of a trace file, and answers. parleyStop(id)
// ends an answer early.
package main

import (
	"bytes"
	"context"
	"sync"
	"syscall/js"
	"time"

	"parley/catalog"
	"parley/docs/scenarios"
	"parley/internal/lab/engine"
)

// version is set by the linker: -X main.version=VERSION.
var version = "unknown"

func main() {
	answers := engine.New(catalog.All(), scenarios.Files, version)
	stops := make(map[int]context.CancelFunc) // the goroutines of this program take turns
	var asked sync.WaitGroup
	js.Global().Set("parleyAsk", js.FuncOf(func(_ js.Value, args []js.Value) any {
		id, question := args[0].Int(), []byte(args[1].String())
		ctx, stop := context.WithCancel(context.Background())
		stops[id] = stop
		asked.Go(func() {
			defer delete(stops, id)
			defer stop()
			post(id, "answer", answers.Answer(&yielding{Context: ctx}, question, func(progress []byte) {
				post(id, "progress", progress)
			}))
		})
		return nil
	}))
	js.Global().Set("parleyKeep", js.FuncOf(func(_ js.Value, args []js.Value) any {
		file := make([]byte, args[1].Length())
		js.CopyBytesToGo(file, args[1])
		post(args[0].Int(), "answer", answers.KeepFile(bytes.NewReader(file)))
		return nil
	}))
	js.Global().Set("parleyStop", js.FuncOf(func(_ js.Value, args []js.Value) any {
		if stop, ok := stops[args[0].Int()]; ok {
			stop()
		}
		return nil
	}))
	<-make(chan struct{}) // the worker ends the program
	asked.Wait()
}

// yielding is a context whose user lets the rest of the program run now and then, and the browser call parleyAsk and
// parleyStop: the program has one thread, and a search asks its context all the time, but waits for nothing.
type yielding struct {
	context.Context
	asked int
	last  time.Time
}

// Err is the method of a context.
func (y *yielding) Err() error {
	if y.asked++; y.asked%64 == 0 && time.Since(y.last) > 50*time.Millisecond {
		time.Sleep(1)
		y.last = time.Now()
	}
	return y.Context.Err()
}

func post(id int, key string, text []byte) {
	js.Global().Call("postMessage", map[string]any{"id": id, key: string(text)})
}
