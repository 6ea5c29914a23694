package trace

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"parley"
)

// scanned are events with all keys, with none, and with the largest and the smallest values.
func scanned() []Event {
	all := []Event{
		{ID: 1, Op: Send},
		{ID: 1<<64 - 1, Cause: 1<<64 - 1, Time: 1<<63 - 1, Op: Resume, At: 1<<16 - 1, Peer: parley.All, Epoch: 1<<32 - 1,
			Path: 1<<64 - 1, Msg: parley.Msg{Kind: 255, Origin: 1<<16 - 1, Seq: 1<<64 - 1, Value: 1<<64 - 1,
				Body: []byte("\x00\xff a body")}, Cut: 1<<32 - 1},
		{ID: 10, Time: 100, Op: Receive, Msg: parley.Msg{Body: []byte("x")}},
	}
	for op := range opNames[1:] {
		all = append(all, Event{ID: 7, Cause: 3, Op: Op(op + 1), At: 1, Peer: 2, Msg: parley.Msg{Value: 1}})
	}
	return all
}

// The scanner reads every line that a trace has, as the decoder reads it.
func TestScanEventReadsWhatIsWritten(t *testing.T) {
	for _, e := range scanned() {
		b := appendEvent(nil, &e)
		b = b[:len(b)-1]
		var want line
		if err := strict(b, &want); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if got, ok := scanEvent(b); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %t, want %+v", b, got, ok, want)
		}
	}
}

// The scanner leaves all other lines to the decoder.
func TestScanEventLeavesOtherLines(t *testing.T) {
	const good = `{"id":12,"cause":3,"t":100,"op":"receive","at":1,"peer":2,"body":"AQ=="}`
	if _, ok := scanEvent([]byte(good)); !ok {
		t.Fatalf("%s is not read", good)
	}
	for _, change := range [][2]string{
		{"12", "012"}, {"12", "-12"}, {"12", "1.2"}, {"12", "1e2"}, {"12", ""}, {"12", "18446744073709551616"}, {"12", "12 "},
		{"100", "9223372036854775808"}, {`"at":1`, `"at":65536`}, {"receive", "recieve"}, {"receive", "receive "},
		{"receive", `\u0072eceive`}, {"receive", ""}, {"AQ==", ""}, {"AQ==", "AQ="}, {"AQ==", `AQ\u003d=`}, {"AQ==", "A*=="}, {"AQ==", "AQ\r=="},
		{`,"cause":3`, `,"cause":3,"cause":4`}, {"cause", "Cause"}, {"}", `,"cut":4294967296}`}, {"}", ""}, {"}", "} "},
		{"}", `,"kind":1}`}, {"}", `,"other":1}`}, {`"id":12,`, ""}, {`"t":100,`, ""}, {"{", " {"},
	} {
		b := strings.Replace(good, change[0], change[1], 1)
		if got, ok := scanEvent([]byte(b)); ok {
			t.Errorf("%s is read as %+v", b, got)
		}
	}
}

// What the scanner reads, the decoder reads in the same way.
func FuzzReadLine(f *testing.F) {
	for _, e := range scanned() {
		b := appendEvent(nil, &e)
		f.Add(b[:len(b)-1])
	}
	f.Add([]byte(`{"id":1,"t":0,"op":"send","at":0,"body":"A` + "\r" + `Q=="}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := scanEvent(b)
		if !ok {
			return
		}
		var want line
		if err := strict(b, &want); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %+v, want %+v, %v", b, got, want, err)
		}
	})
}

var benchmarked = []byte(`{"id":412345,"cause":412300,"t":98765,"op":"receive","at":39,"peer":12,"path":1,"kind":1,"origin":7,` +
	`"seq":301,"body":"bTMwNQ=="}`)

func BenchmarkLineScanned(b *testing.B) {
	for b.Loop() {
		if _, ok := scanEvent(benchmarked); !ok {
			b.Fatal("not read")
		}
	}
}

func BenchmarkLineDecoded(b *testing.B) {
	for b.Loop() {
		var l line
		if err := strict(benchmarked, &l); err != nil {
			b.Fatal(err)
		}
	}
}
