package trace_test

import (
	"bytes"
	"strconv"
	"testing"

	"parley/trace"
)

// Traces can be concatenated, even if some lack their end: those are broken, and nothing of the others is lost. A trace
// knows the line of its header.
func TestReadAllConcatenated(t *testing.T) {
	var b bytes.Buffer
	lines := 0
	for i, broken := range []bool{false, true, false, true} {
		log := randomLog(uint64(i), 5+i)
		log.Gaps, log.Broken = nil, broken
		if err := trace.Write(&b, header, log); err != nil {
			t.Fatal(err)
		}
	}
	all, err := trace.ReadAll("x", bytes.NewReader(b.Bytes()))
	if err != nil || len(all) != 4 {
		t.Fatal(len(all), err)
	}
	for i, one := range all {
		want := randomLog(uint64(i), 5+i)
		if one.Log.Broken != (i%2 == 1) || one.Log.Hash() != want.Hash() || one.Line != lines+1 || one.Place() != "x:"+strconv.Itoa(lines+1) {
			t.Errorf("trace %d: broken %t, at %s", i, one.Log.Broken, one.Place())
		}
		if lines += 1 + len(want.Events); !one.Log.Broken {
			lines++
		}
	}
	again, err := trace.ReadAll("x", bytes.NewReader(bytes.TrimSuffix(b.Bytes(), []byte("\n"))))
	if err != nil || len(again) != 4 {
		t.Errorf("without the last line feed: %d traces, %v", len(again), err)
	}
}
