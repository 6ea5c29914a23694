package ordered

import (
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/commit/problem"
	"parley/commit/service"
)

// spec is a transaction of processes 0 and 3, which process 0 begins.
func spec(name string) service.Spec {
	of := transfer()
	of.Name = name
	return of
}

// delivery is a delivery of the order.
type delivery struct {
	from parley.ID
	m    parley.Msg
}

// positioned gives deliveries positions from 1 on.
func positioned(list ...delivery) []delivery {
	for i := range list {
		list[i].m.Seq = uint64(i + 1)
	}
	return list
}

func begins(name string) delivery {
	of := spec(name)
	return delivery{0, parley.Msg{Kind: Begin, Body: of.Encode()}}
}

func votes(from parley.ID, yes bool, name string) delivery {
	return delivery{from, parley.Msg{Kind: Vote, Body: ballot(yes, spec(name), nil)}}
}

// heard lists what the machine delivers to its participant.
func heard(list []parley.Msg) (out []string) {
	for _, m := range list {
		switch {
		case m.Kind == service.Prepare:
			of, _ := service.ReadSpec(m.Body, 4)
			out = append(out, fmt.Sprintf("prepare %s again=%d", of.Name, m.Seq))
		case m.Kind == service.Ended && m.Origin == service.Participant:
			name, _ := service.ReadEnded(m.Body)
			out = append(out, fmt.Sprintf("%s ends with %d", name, m.Seq))
		}
	}
	return out
}

// request makes a request, and returns its log records.
func (d *driven) request(q parley.Msg) []parley.Record {
	_, log, _, _ := d.do(func() { d.m.Request(d.s, q) })
	return log
}

// indicated has the order indicate q.
func (d *driven) indicated(q parley.Msg) (delivered []parley.Msg, log []parley.Record, cast []parley.Msg, sent int) {
	return d.do(func() { d.m.Receive(d.s, 3, q) })
}

// After a restart the order delivers again. A process, with a state that it saved at any point of the order or with
// none, asks its participant to prepare only what is open, and tells it only outcomes that it may not know. It repeats
// a vote that the order does not have. Then it knows what it knew before.
func TestRepeats(t *testing.T) {
	order := positioned(
		begins("a"), votes(3, true, "a"), begins("b"), votes(0, true, "a"), votes(3, false, "b"), begins("c"),
		delivery{0, parley.Msg{Kind: Void}}, begins("d"),
	)
	for saved := range len(order) + 1 {
		t.Run(fmt.Sprint("saved after ", saved), func(t *testing.T) {
			var log []parley.Record
			var state []byte
			d := driveWith(Config{}, nil, nil)
			for i, x := range order {
				for _, m := range d.carried(x.from, x.m) {
					of, _ := service.ReadSpec(m.Body, 4)
					switch { // the participant votes yes on a and c, and no on b; it has carried out the outcome of a
					case m.Kind == service.Ended && problem.Outcome(m.Seq) == problem.Commit:
						log = append(log, d.request(parley.Msg{Kind: service.Applied, Value: m.Value})...)
					case m.Kind == service.Prepare && of.Name == "b":
						log = append(log, d.request(parley.Msg{Kind: service.Voted, Value: m.Value})...)
					case m.Kind == service.Prepare && of.Name != "d":
						log = append(log, d.request(parley.Msg{Kind: service.Voted, Value: m.Value, Seq: 1})...)
					}
				}
				if i+1 == saved {
					state, log = parley.SaveDurable(d.m, 0, nil), nil
				}
			}
			d = driveWith(Config{}, state, append([]parley.Record{}, log...))
			var first []parley.Msg
			for _, e := range d.s.Effects {
				if e.Op == parley.OpDeliver {
					first = append(first, e.Msg)
				}
			}
			got := heard(first)
			d.indicated(parley.Msg{Kind: From})
			for _, x := range order {
				got = append(got, heard(d.carried(x.from, x.m))...)
			}
			last, _, cast, _ := d.indicated(parley.Msg{Kind: Live})
			got = append(got, heard(last)...)
			if want := []string{"prepare c again=1", "prepare d again=0"}; !slices.Equal(got, want) {
				t.Errorf("%q, and %q is expected", got, want)
			}
			if len(cast) != 1 || cast[0].Kind != Vote {
				t.Errorf("it broadcasts %v", cast)
			} else if b, ok := readBallot(cast[0].Body); !ok || !b.yes || b.name != "c" {
				t.Errorf("it votes %+v", b)
			}
			for name, want := range map[string]problem.Outcome{"a": problem.Commit, "b": problem.Abort} {
				if x, known := d.m.Find(name); !known || x.Outcome != want {
					t.Errorf("%s: %v, %t", name, x.Outcome, known)
				}
			}
			if len(d.m.open) != 2 || d.m.number != 4 || d.m.Missed() {
				t.Errorf("%d are open, the last number is %d, missed %t", len(d.m.open), d.m.number, d.m.Missed())
			}
		})
	}
}

// A process that has missed deliveries for good finds no outcome by itself, does not say that votes are late, and
// remembers this. It believes others.
func TestMissed(t *testing.T) {
	d := driveWith(Config{}, nil, nil)
	first := positioned(begins("a"))[0]
	path := d.carried(first.from, first.m)[0].Value
	log := d.request(parley.Msg{Kind: service.Voted, Value: path, Seq: 1})
	if d.indicated(parley.Msg{Kind: From, Seq: 1}); d.m.Missed() {
		t.Error("nothing is missing")
	}
	d.indicated(parley.Msg{Kind: From, Seq: 9})
	for i, x := range []delivery{votes(3, true, "a"), votes(0, true, "a")} {
		x.m.Seq = uint64(10 + i)
		if got := d.carried(x.from, x.m); len(got) > 0 {
			t.Errorf("it tells %v", heard(got))
		}
	}
	_, _, cast, _ := d.do(func() { d.s.At(parley.Path(path), 0, func() { d.m.Timeout(d.s, expireTimer) }) })
	if len(cast) > 0 {
		t.Errorf("it broadcasts %v", cast)
	}
	if again := driveWith(Config{}, parley.SaveDurable(d.m, 0, nil), log); !again.m.Missed() {
		t.Error("after a restart it does not know that it has missed something")
	}
	var got []parley.Msg
	for from := range parley.ID(2) {
		of := spec("a")
		says := parley.Msg{Kind: msgSays, Seq: uint64(problem.Commit), Body: of.Only(parley.All).Encode()}
		got, _, _, _ = d.do(func() { d.m.Receive(d.s, from, says) })
	}
	if len(got) != 1 || got[0].Kind != service.Ended || problem.Outcome(got[0].Seq) != problem.Commit {
		t.Error(heard(got))
	}
}

// A process saves its state before the order forgets what it delivered.
func TestSaves(t *testing.T) {
	d := driveWith(Config{}, nil, nil)
	count, bytes := 0, 0
	for i := range uint64(10_000) {
		m := parley.Msg{Kind: Void, Seq: i + 1, Body: make([]byte, 1000)}
		d.carried(0, m)
		bytes += len(m.Body)
		if bytes > saveAfter {
			t.Fatalf("after %d bytes", bytes)
		}
		for _, e := range d.s.Effects {
			if e.Op == parley.OpCompact {
				count, bytes = count+1, 0
			}
		}
	}
	if count < 9 {
		t.Errorf("it saves its state %d times", count)
	}
}
