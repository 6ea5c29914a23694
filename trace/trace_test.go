package trace_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/trace"
)

var header = trace.Header{
	Protocol: "test", Args: []string{"test", "-n", "4"}, N: 4, M: 1, Seed: math.MaxUint64, Names: "article",
	Faulty: []int{2, 3},
}

// randomLog draws events of every kind.
func randomLog(seed uint64, events int) *trace.Log {
	r := rand.New(rand.NewPCG(seed, 1))
	l := &trace.Log{Keep: true}
	for i := range events {
		e := trace.Event{
			Time: parley.Tick(r.Int64()) >> r.IntN(63), Op: trace.Op(1 + r.IntN(int(trace.Resume))),
			At:   parley.ID(r.IntN(4)),
			Peer: parley.ID(r.IntN(4)), Path: parley.Path(r.Uint64() >> r.IntN(64)), Cause: uint64(r.IntN(i + 1)),
			Msg: parley.Msg{Kind: parley.Kind(r.Uint32()), Origin: parley.ID(r.Uint32()), Seq: r.Uint64(),
				Value: r.Uint64() >> r.IntN(64)},
		}
		if r.IntN(5) == 0 {
			e.Peer = parley.All
		}
		if r.IntN(3) == 0 {
			e.Epoch = r.Uint32() >> r.IntN(32)
		}
		for range r.IntN(6) {
			e.Msg.Body = append(e.Msg.Body, byte(r.Uint32()))
		}
		if id := l.Add(e); id != uint64(i+1) || l.Len() != id {
			panic("events are not numbered from 1")
		}
	}
	return l
}

func written(t *testing.T, l *trace.Log) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := trace.Write(&b, header, l); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Header and events are read as they were written, with the same hash.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(100) {
		l := randomLog(seed, int(seed))
		h, again, err := trace.Read(bytes.NewReader(written(t, l)))
		if err != nil {
			t.Fatal(err)
		}
		want := header
		want.Version = trace.Version
		if !reflect.DeepEqual(h, want) {
			t.Fatalf("%+v", h)
		}
		odd := want
		odd.Args = []string{"<&>", "\xff\xfe", "\u2028", "ü"} // not all of it can be written
		var b bytes.Buffer
		if err := trace.Write(&b, odd, l); err != nil {
			t.Fatal(err)
		}
		if _, _, err := trace.Read(&b); err != nil {
			t.Fatalf("odd arguments: %v", err)
		}
		if again.Hash() != l.Hash() || again.Len() != l.Len() || !reflect.DeepEqual(again.Events, l.Events) {
			t.Fatalf("seed %d: another log", seed)
		}
	}
}

// The hash covers everything that happened: every field of every event, and the order.
func TestHash(t *testing.T) {
	l := randomLog(1, 20)
	add := func(events []trace.Event) string {
		var l trace.Log // keeps nothing
		for _, e := range events {
			l.Add(e)
		}
		if l.Events != nil {
			t.Error("events are kept")
		}
		return l.Hash()
	}
	if add(l.Events) != l.Hash() || len(l.Hash()) != 32 || add(nil) != new(trace.Log).Hash() {
		t.Error("the hash depends on more than the events")
	}
	seen := map[string]bool{l.Hash(): true}
	for name, change := range changes {
		for i := range l.Events {
			events := slices.Clone(l.Events)
			change(&events[i])
			if h := add(events); seen[h] {
				t.Errorf("the %s of event %d is not in the hash", name, i)
			} else {
				seen[h] = true
			}
		}
	}
	for i := range l.Events[1:] {
		events := slices.Clone(l.Events)
		events[i], events[i+1] = events[i+1], events[i]
		if h := add(events); seen[h] {
			t.Errorf("the order of %d and the next is not in the hash", i)
		}
	}
}

// refused checks that a text is no trace, with the reason and the line.
func refused(t *testing.T, what, text string, line int, why string) {
	t.Helper()
	_, _, err := trace.Read(strings.NewReader(text))
	if err == nil {
		t.Errorf("%s: it is read", what)
		return
	}
	if at := fmt.Sprintf("line %d: ", line); line > 0 && !strings.HasPrefix(err.Error(), at) ||
		!strings.Contains(err.Error(), why) {
		t.Errorf("%s: %v; %s%s was to be said", what, err, at, why)
	}
	where := new(trace.ReadError)
	if !errors.As(err, &where) || !regexp.MustCompile(`^line [0-9]+: .* \(at byte [0-9]+\)$`).MatchString(err.Error()) {
		t.Errorf("%s: no line and byte are named: %v", what, err)
		return
	}
	// The byte is in the line, or just after the end of the text.
	if before := text[:min(int(where.Offset), len(text))]; int(where.Offset) > len(text) ||
		strings.Count(before, "\n")+1 != where.Line {
		t.Errorf("%s: byte %d of %d is not in line %d: %v", what, where.Offset, len(text), where.Line, err)
	}
}

// The reported byte is where a line is malformed, where it begins if its content is wrong, or the end of a
// truncated file.
func TestOffset(t *testing.T) {
	text := string(written(t, randomLog(2, 12)))
	line := func(n int) int { // offset of line n
		return len(strings.Join(strings.SplitAfter(text, "\n")[:n-1], ""))
	}
	for _, c := range []struct {
		what, text string
		line       int
		offset     int
	}{
		{"nonsense in line 3", text[:line(3)+5] + "?" + text[line(3)+6:], 3, line(3) + 5},
		{"no number", strings.Replace(text, `"id":5`, `"id":""`, 1), 6, line(6) + 7},
		{"cut in line 5", text[:line(5)+9], 5, line(5) + 9},
		{"cut after line 5", text[:line(6)], 6, line(6)},
		{"a jump", strings.Replace(text, `{"id":4`, `{"id":9`, 1), 5, line(5)},
		{"lines that end otherwise", strings.ReplaceAll(text[:line(6)], "\n", "\r\n"), 6, line(6) + 5},
		{"nothing", "", 1, 0},
		{"another header", strings.Replace(text, `"test"`, `"toast"`, 1), 1, 0},
		{"continues", text + "{}", 15, len(text)},
	} {
		_, _, err := trace.Read(strings.NewReader(c.text))
		where := new(trace.ReadError)
		if !errors.As(err, &where) || where.Line != c.line || where.Offset != int64(c.offset) || where.Unwrap() == nil {
			t.Errorf("%s: %v; line %d, byte %d", c.what, err, c.line, c.offset)
		}
	}
}

// A trace that was changed in any way is refused, and the error names the line.
func TestRefused(t *testing.T) {
	l := randomLog(2, 12)
	text := string(written(t, l))
	whose, _, err := trace.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	lines[len(lines)-1] += "\n"
	join := func(lines ...[]string) string { return strings.Join(slices.Concat(lines...), "") }
	last := len(lines)
	for i := range lines {
		refused(t, fmt.Sprintf("line %d left out", i+1), join(lines[:i], lines[i+1:]), 0, "")
		refused(t, fmt.Sprintf("line %d twice", i+1), join(lines[:i+1], lines[i:]), 0, "")
		if i+1 < last {
			refused(t, fmt.Sprintf("lines %d and %d exchanged", i+1, i+2),
				join(lines[:i], []string{lines[i+1], lines[i]}, lines[i+2:]), 0, "")
			refused(t, fmt.Sprintf("cut after line %d", i+1), join(lines[:i+1]), i+2, "last line is missing")
		}
		for at := 1; at < len(lines[i])-1; at++ {
			refused(t, fmt.Sprintf("line %d cut at %d", i+1, at),
				join(lines[:i], []string{lines[i][:at] + "\n"}, lines[i+1:]), i+1, "")
			if i+1 < last {
				refused(t, fmt.Sprintf("trace cut in line %d", i+1), join(lines[:i], []string{lines[i][:at]}), 0, "")
			}
		}
		for at, c := range lines[i] {
			if c >= '0' && c <= '9' {
				digit := string('0' + (c-'0'+1)%10)
				changed := join(lines[:i], []string{lines[i][:at] + digit + lines[i][at+1:]}, lines[i+1:])
				if h, same, err := trace.Read(strings.NewReader(changed)); err == nil &&
					reflect.DeepEqual(same.Events, l.Events) && reflect.DeepEqual(h, whose) {
					continue // the unused bits at the end of base64: the same value
				}
				refused(t, fmt.Sprintf("line %d, digit %d", i+1, at), changed, 0, "")
			}
		}
	}
	for old, new := range map[string]string{
		`:"test"`: `:"toast"`, `["test"`: `["toast"`, `"-n"`: `"-m"`, `article`: `lecture`, `[2,3]`: `[2]`,
		`,"faulty":[2,3]`:   ``,
		`["test","-n","4"]`: `null`,
	} {
		if !strings.Contains(lines[0], old) {
			t.Fatalf("%s has no %s", lines[0], old)
		}
		refused(t, old+" is "+new, strings.Replace(text, old, new, 1), 1, "the header was changed")
	}
	if _, _, err := trace.Read(strings.NewReader(strings.Replace(text, `,"n":4`, `, "n" : 4`, 1))); err != nil {
		t.Errorf("the same header, written otherwise: %v", err)
	}
	event := regexp.MustCompile(`"cause":[0-9]+,`).ReplaceAllString(lines[3], "")
	with := func(old, new string) string {
		if !strings.Contains(event, old) {
			t.Fatalf("%s has no %s", event, old)
		}
		return join(lines[:3], []string{strings.Replace(event, old, new, 1)}, lines[4:])
	}
	refused(t, "unknown op", with(`"op":"`, `"op":"un`), 4, "unknown op")
	refused(t, "unknown key", with(`{"id"`, `{"more":1,"id"`), 4, "unknown key")
	refused(t, "another number", with(`{"id":3`, `{"id":4`), 4, "event 4 follows event 2")
	refused(t, "two values", with("}\n", "} {}\n"), 4, "text follows")
	refused(t, "a cause to come", with(`{"id":3,`, `{"id":3,"cause":3,`), 4, "event 3 is the cause of event 3")
	refused(t, "nothing", "", 1, "empty")
	refused(t, "no header", join(lines[1:]), 1, "not the header")
	refused(t, "another version", strings.Replace(text, `"parley":2`, `"parley":1`, 1), 1, "version 1")
	refused(t, "no processes", strings.Replace(text, `"n":4`, `"n":0`, 1), 1, "n is 0")
	refused(t, "too many processes", strings.Replace(text, `"n":4`, `"n":257`, 1), 1, "n is 257")
	refused(t, "fewer processes than act", strings.Replace(text, `"n":4`, `"n":1`, 1), 0, "there are 1 processes")
	refused(t, "goes on", text+lines[1], last+1, "continues after its end")
	refused(t, "another hash", strings.Replace(text, `"hash":"`, `"hash":"0`, 1), last, "was changed")
	refused(t, "another hash of the header", strings.Replace(text, `"header":"`, `"header":"0`, 1), 1, "was changed")
	unsealed := regexp.MustCompile(`,"header":"[0-9a-f]*"`).ReplaceAllString(text, "")
	refused(t, "no hash of the header", unsealed, 1, "was changed")
}

// Errors of the reader and of the writer are returned.
func TestIO(t *testing.T) {
	text := written(t, randomLog(3, 300))
	for _, at := range []int64{0, 10, int64(len(text) / 2), int64(len(text) - 2)} {
		r := io.MultiReader(io.LimitReader(bytes.NewReader(text), at), failing{})
		if _, _, err := trace.Read(r); err == nil {
			t.Errorf("a reader that fails after %d bytes goes unnoticed", at)
		}
	}
	for _, l := range []*trace.Log{randomLog(3, 0), randomLog(3, 1000)} {
		if err := trace.Write(failing{}, header, l); err == nil {
			t.Error("a writer that fails goes unnoticed")
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error)  { return 0, io.ErrClosedPipe }
func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Reading any file does not panic, and what is read is a trace that can be written and read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(""))
	for seed := range uint64(3) {
		var b bytes.Buffer
		if err := trace.Write(&b, header, randomLog(seed, 4*int(seed))); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, l, err := trace.Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		for _, e := range l.Events {
			if int(e.At) >= h.N || e.Cause >= e.ID || e.Op.String() == "" {
				t.Fatalf("%+v was read", e)
			}
		}
		var again bytes.Buffer
		if err := trace.Write(&again, h, l); err != nil {
			t.Fatal(err)
		}
		h2, l2, err := trace.Read(&again)
		if err != nil || l2.Hash() != l.Hash() || h2.N != h.N || h2.Seed != h.Seed {
			t.Fatalf("what was read is not read again: %v", err)
		}
	})
}
