package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/lab/server"
)

// The lines of an answer arrive as they are written, with the bytes of the engine unchanged.
func TestAskStreams(t *testing.T) {
	const report, answer = `{"done": 1,  "of":"<é>"}`, ` {"b":1 , "a": [ ]}`
	goOn := make(chan struct{})
	inBubble(t, func(_ context.Context, question []byte, progress func([]byte)) []byte {
		if string(question) != `{"ask":"about"}` {
			t.Errorf("question: %s", question)
		}
		progress([]byte(report))
		<-goOn
		progress([]byte(`{}`))
		return []byte(answer)
	}, func(r *rig) {
		goOn = make(chan struct{}) // in the bubble
		got, err := r.calls.Do(r.request("POST", "/ask", `{"ask":"about"}`))
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		if kind := got.Header.Get("Content-Type"); got.StatusCode != 200 || kind != "application/x-ndjson" ||
			got.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("status %d, %v", got.StatusCode, got.Header)
		}
		lines := bufio.NewReader(got.Body)
		if line, err := lines.ReadString('\n'); line != `{"progress":`+report+"}\n" {
			t.Errorf("first line: %q, %v", line, err)
		}
		close(goOn)
		rest, err := io.ReadAll(lines)
		if want := `{"progress":{}}` + "\n" + `{"answer":` + answer + "}\n"; string(rest) != want || err != nil {
			t.Errorf("the rest: %q, want %q, %v", rest, want, err)
		}
	})
}

// untilEnd answers when its context ends, and says so on the channel that it returns.
func untilEnd() (answer func(context.Context, []byte, func([]byte)) []byte, ended *atomic.Int64) {
	ended = new(atomic.Int64)
	return func(ctx context.Context, _ []byte, progress func([]byte)) []byte {
		progress([]byte("{}"))
		<-ctx.Done()
		ended.Add(1)
		return []byte("{}")
	}, ended
}

// If the client closes a request, the context of its answer ends, and the next question is answered.
func TestAskCanceled(t *testing.T) {
	answer, ended := untilEnd()
	inBubble(t, answer, func(r *rig) {
		for i := range int64(2*server.Answers + 1) {
			ctx, cancel := context.WithCancel(r.t.Context())
			got, err := r.calls.Do(r.request("POST", "/ask", "{}").WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n := ended.Load(); n != i {
				t.Fatalf("%d answers have ended before the request, want %d", n, i)
			}
			cancel()
			got.Body.Close()
			synctest.Wait()
			if n := ended.Load(); n != i+1 {
				t.Fatalf("%d answers have ended, want %d", n, i+1)
			}
		}
	})
}

// A client that does not receive its answer loses it.
func TestAskNotReceived(t *testing.T) {
	answer, ended := untilEnd()
	inBubble(t, answer, func(r *rig) {
		began := time.Now()
		c, _ := r.raw("POST /ask HTTP/1.1\r\nHost: " + host + "\r\nOrigin: " + origin + "\r\nContent-Type: application/json\r\n" +
			"Cookie: parley-lab-7411=" + r.token + "\r\nContent-Length: 2\r\n\r\n{}")
		defer c.Close()
		time.Sleep(server.Patience - time.Nanosecond)
		synctest.Wait()
		if ended.Load() != 0 {
			t.Errorf("the answer ended after %v", time.Since(began))
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if ended.Load() != 1 {
			t.Errorf("the answer has not ended after %v", time.Since(began))
		}
	})
}

// A client that does not send its whole question is refused after a while; one that takes long to receive its answer
// is not.
func TestAskSlowly(t *testing.T) {
	header := func(r *rig) string {
		return "POST /ask HTTP/1.1\r\nHost: " + host + "\r\nOrigin: " + origin + "\r\nContent-Type: application/json\r\n" +
			"Cookie: parley-lab-7411=" + r.token + "\r\nContent-Length: 2\r\n\r\n"
	}
	inBubble(t, echo, func(r *rig) {
		began := time.Now()
		c, answer := r.raw(header(r) + "{")
		defer c.Close()
		got, err := http.ReadResponse(answer, nil)
		if err != nil || got.StatusCode != http.StatusRequestTimeout || time.Since(began) != server.Patience {
			t.Errorf("after %v: %v, %v", time.Since(began), got, err)
		}
	})
	inBubble(t, func(ctx context.Context, _ []byte, _ func([]byte)) []byte {
		select {
		case <-ctx.Done():
		case <-time.After(10 * server.Patience):
		}
		return fmt.Appendf(nil, `"%v"`, ctx.Err())
	}, func(r *rig) {
		if got, text := r.do(r.request("POST", "/ask", "{}")); text != `{"answer":"<nil>"}`+"\n" {
			t.Errorf("a long answer: status %d, %s", got.StatusCode, text)
		}
	})
}

// Few questions are answered at the same time, some more wait in turn, and all further ones are refused.
func TestAskLimits(t *testing.T) {
	var release chan struct{}
	var now, most atomic.Int64
	inBubble(t, func(context.Context, []byte, func([]byte)) []byte {
		most.Store(max(most.Load(), now.Add(1))) // one at a time is released
		<-release
		now.Add(-1)
		return []byte("{}")
	}, func(r *rig) {
		release = make(chan struct{})
		statuses := make(chan int, server.Answers+server.Waiting)
		var asks sync.WaitGroup
		for range cap(statuses) {
			asks.Go(func() {
				got, text := r.do(r.request("POST", "/ask", "{}"))
				if got.StatusCode != 200 {
					t.Errorf("one of the first: status %d: %s", got.StatusCode, text)
				}
				statuses <- got.StatusCode
			})
			synctest.Wait()
		}
		if now.Load() != server.Answers || len(statuses) != 0 {
			t.Errorf("%d are answered at the same time, want %d; %d have ended", now.Load(), server.Answers, len(statuses))
		}
		got, text := r.do(r.request("POST", "/ask", "{}"))
		if got.StatusCode != 503 || text != "Refused: 64 questions are waiting already: ask again later.\n" {
			t.Errorf("one more: status %d: %s", got.StatusCode, text)
		}
		release <- struct{}{}
		synctest.Wait() // one has ended, and one has begun
		asks.Go(func() {
			if got, text := r.do(r.request("POST", "/ask", "{}")); got.StatusCode != 200 {
				t.Errorf("one when there is room: status %d: %s", got.StatusCode, text)
			}
		})
		synctest.Wait()
		close(release)
		asks.Wait()
		if most.Load() != server.Answers {
			t.Errorf("%d were answered at the same time, want %d", most.Load(), server.Answers)
		}
	})
}

// A question waits for a limited time, and a question whose client has gone does not wait at all.
func TestAskWaits(t *testing.T) {
	var release chan struct{}
	inBubble(t, func(context.Context, []byte, func([]byte)) []byte {
		<-release
		return []byte("{}")
	}, func(r *rig) {
		release = make(chan struct{})
		var asks sync.WaitGroup
		for range server.Answers {
			asks.Go(func() { r.do(r.request("POST", "/ask", "{}")) })
		}
		synctest.Wait()
		began := time.Now()
		got, text := r.do(r.request("POST", "/ask", "{}"))
		if got.StatusCode != 503 || time.Since(began) != server.LongestWait ||
			!strings.HasPrefix(text, "Refused: 4 other questions have been in progress for 60 s: ") {
			t.Errorf("after %v: status %d: %s", time.Since(began), got.StatusCode, text)
		}
		for range 2 * server.Waiting { // more than may wait
			ctx, cancel := context.WithCancel(r.t.Context())
			asks.Go(func() {
				if _, err := r.calls.Do(r.request("POST", "/ask", "{}").WithContext(ctx)); ctx.Err() == nil {
					t.Errorf("a question did not wait: %v", err)
				}
			})
			synctest.Wait()
			cancel()
			synctest.Wait()
		}
		close(release)
		asks.Wait()
	})
}

// A crash of the engine ends its request alone, and leaves no question in the queue.
func TestAskCrash(t *testing.T) {
	inBubble(t, func(_ context.Context, question []byte, _ func([]byte)) []byte {
		if string(question) == "crash" {
			panic("as the test wants")
		}
		return []byte("{}")
	}, func(r *rig) {
		for range server.Answers + server.Waiting {
			if got, err := r.calls.Do(r.request("POST", "/ask", "crash")); err == nil {
				t.Fatalf("a crash was answered: %v", got)
			}
		}
		if got, text := r.do(r.request("POST", "/ask", "{}")); got.StatusCode != 200 {
			t.Errorf("after crashes: status %d: %s", got.StatusCode, text)
		}
	})
}

// A client that does not send the rest of a refused request does not keep the server waiting.
func TestRefusedSlowly(t *testing.T) {
	inBubble(t, echo, func(r *rig) {
		began := time.Now()
		c, answer := r.raw("POST /ask HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n{")
		defer c.Close()
		got, err := http.ReadResponse(answer, nil)
		if err != nil || got.StatusCode != http.StatusForbidden || time.Since(began) != server.Patience {
			t.Errorf("after %v: %v, %v", time.Since(began), got, err)
		}
	})
}
