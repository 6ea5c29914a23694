package foreign

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/broadcast/diffusion"
	"parley/broadcast/fifo"
	"parley/internal/envelope"
)

// No answer is endless: neither one whose lines come slowly, nor one whose lines come fast, and have no effect. Time is
// simulated.
func TestEndlessAnswers(t *testing.T) {
	for _, c := range []struct {
		what  string
		says  bool // it ended its first answer with parley_done
		lines int  // every 10 ms
		want  string
	}{
		{"slow", true, 1, "did not end its answer with parley_done within 1m0s"},
		{"slow, without parley_done", false, 1, "wrote lines for 1m0s, with neither parley_done nor a pause of 20ms"},
		{"fast", true, 100, "wrote more than 10000 lines"},
		{"fast, without parley_done", false, 100, "wrote more than 10000 lines"},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &node{in: make(chan []byte), out: outbox{news: make(chan struct{}, 1)}}
				defer close(n.in)
				m := &machine{node: n, says: c.says, crew: &Crew{ctx: t.Context(), Options: Options{
					Protocol: envelope.Of(fifo.Tower(diffusion.Config{N: 4})), Name: parley.ID.String, Patience: time.Minute,
				}}}
				began := time.Now()
				go func() {
					for asked := true; asked; {
						select {
						case _, asked = <-n.in:
						case <-time.After(10 * time.Millisecond):
							for range c.lines {
								n.out.put([]string{`{"dest":"c1","body":{"type":"x"}}`})
							}
							if time.Since(began) > 2*time.Minute {
								n.out.fail(errors.New("it is endless"))
							}
						}
					}
				}()
				defer func() {
					if failed, ok := recover().(*Failure); !ok || !strings.Contains(failed.Error(), c.want) {
						t.Errorf("got  %v\nwant %s", failed, c.want)
					}
				}()
				m.ask(new(parley.Step), []byte("{}\n"))
			})
		})
	}
}

// A program that writes faster than its lines are taken fills no memory.
func TestOutboxFull(t *testing.T) {
	o := outbox{news: make(chan struct{}, 1)}
	if !o.put(make([]string, mostLines)) || o.put(make([]string, 1)) || o.err != errTooMuch {
		t.Errorf("%d lines, %v", len(o.lines), o.err)
	}
	o = outbox{news: make(chan struct{}, 1)}
	if !o.put([]string{strings.Repeat("x", mostBytes)}) || o.put([]string{"x"}) || o.err != errTooMuch {
		t.Errorf("%d bytes, %v", o.bytes, o.err)
	}
}
