package rsm_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/timestamp"
	"parley/membership/group"
	"parley/replica/rsm"
	"parley/sim"
	"parley/stack"
)

// With comparison in each view, processes that crash, restart and are suspected are served as usual, and no
// replica is found to differ.
func TestCompareInStorms(t *testing.T) {
	for seed := range uint64(300) {
		n := 3 + int(seed%2)
		c := rsm.Config{Liars: 1, Every: seed % 4, Piece: 16, Retry: 3000}
		if seed%3 > 0 {
			c.Piece = 1 << 16
		}
		p := returning(n, c)
		if seed%5 == 0 {
			p = durably(n, c)
		}
		servesOn(t, seed, p, sim.Run(storm(seed, p, false, 120_000)))
	}
}

// diary keeps the commands that it gets; for commands that begin with !, it keeps what this replica hears
// instead.
type diary struct {
	hears string
	b     []byte
}

func (d *diary) Apply(c []byte) []byte {
	if bytes.HasPrefix(c, []byte("!")) && d.hears != "" {
		c = []byte(d.hears)
	}
	d.b = append(append(d.b, c...), ' ')
	return bytes.Clone(d.b)
}

func (d *diary) Snapshot() []byte { return d.b }

func (d *diary) Restore(b []byte) bool {
	d.b = bytes.Clone(b)
	return true
}

// parted runs three replicas that each hear something else in place of a liar's command, after which a view
// ends. It returns the last answer of each, and how many replicas diverged and had the chosen state again.
func parted(t *testing.T, seed uint64, durable bool, every uint64, hears ...string) (last [3]string, left, alike int) {
	t.Helper()
	made := 0
	c := rsm.Config{Liars: 1, Every: every, Piece: 16, Retry: 3000, New: func() rsm.Application {
		d := &diary{}
		if made < 3 {
			d.hears = hears[made]
		}
		made++
		return d
	}}
	p := returning(3, c)
	if durable {
		p = durably(3, c)
	}
	opt := sim.Options{Protocol: p, Seed: seed, FIFO: true, Until: 120_000}
	opt.Requests = append(opt.Requests, ask(0, 10, "a"), ask(1, 5000, "!"), ask(2, 9000, "b"))
	opt.Suspicions = []sim.Suspicion{{At: 0, Of: 2, When: 20_000}}
	for q := range parley.ID(3) {
		opt.Requests = append(opt.Requests, ask(q, 19_990+parley.Tick(seed*10), fmt.Sprint("meanwhile", q)),
			ask(q, 80_000, fmt.Sprint("last", q)))
	}
	s := sim.Run(opt)
	for _, d := range s.History.Deliveries {
		if d.Msg.Kind == rsm.Answer && d.At == d.From {
			last[d.At] = string(d.Msg.Body)
			if d.When > 25_000 && d.When < 80_000 && strings.Contains(last[d.At], "?") {
				t.Errorf("seed %d: process %d answers %q from a copy that does not count", seed, d.At, last[d.At])
			}
		}
	}
	for _, i := range s.History.Indications {
		switch i.Msg.Kind {
		case rsm.Parted:
			left++
		case rsm.Alike:
			alike++
		case rsm.Stopped:
			t.Errorf("seed %d: process %d stops: %s", seed, i.At, i.Msg.Body)
		}
	}
	return last, left, alike
}

// A replica that differs fetches the state of most replicas, or of the first if all differ, and serves again.
// It then has all that the chosen replica has done.
func TestPartedCopies(t *testing.T) {
	for seed := range uint64(40) {
		for _, every := range []uint64{0, 2} {
			for want, hears := range map[string][]string{
				"a x b ":     {"x", "x", "?"},
				"a y b ":     {"?", "y", "y"},
				"a first b ": {"first", "?", "??"},
			} {
				if every > 0 && hears[2] == "??" {
					continue // no majority shows which one is wrong before the view ends
				}
				last, left, alike := parted(t, seed, seed%2 == 1, every, hears...)
				for id, answer := range last {
					if !strings.HasPrefix(answer, want) || len(strings.Fields(answer)) < 7 {
						t.Errorf("seed %d, %q: process %d answers %q in the end", seed, hears, id, answer)
					}
				}
				if left == 0 || alike < left {
					t.Errorf("seed %d, %q: %d parted, %d alike again", seed, hears, left, alike)
				}
			}
		}
	}
}

// viewed delivers a view of all to process 1 of three, and returns its report.
func viewed(t *testing.T, b *bench, number uint64) (stand parley.Msg) {
	t.Helper()
	b.receive(1, parley.Msg{Kind: parley.View, Seq: number, Body: parley.AppendSet(nil, parley.Everyone(3))})
	for _, e := range b.effects {
		if e.Op == parley.OpBroadcast && e.Msg.Kind == 10 && e.Msg.Seq == number && len(e.Msg.Body) == 1 {
			return e.Msg
		}
	}
	t.Fatalf("it says nothing of its copy: %+v", b.effects)
	return parley.Msg{}
}

// doubter returns that replica at the start of view 2, with its report.
func doubter(t *testing.T, c rsm.Config) (b *bench, own parley.Msg) {
	t.Helper()
	b = newBench(t, c, 1)
	return b, viewed(t, b, 2)
}

func doubting() rsm.Config {
	return rsm.Config{N: 3, New: account, Transfer: true, Piece: 1000, Liars: 1}
}

// parts reports whether a replica has found that another state is chosen: it indicates that, and asks for the
// state.
func parts(b *bench) bool {
	indicated, asked := false, false
	for _, e := range b.effects {
		indicated = indicated || e.Op == parley.OpIndicate && e.Msg.Kind == rsm.Parted
		asked = asked || e.Op == parley.OpBroadcast && e.Msg.Kind == 5
	}
	return indicated && asked
}

// A replica that was compared outweighs any number of replicas whose state came from a single sponsor. A
// replica that has joined reports that standing until it is compared.
func TestJoinerWeighsLess(t *testing.T) {
	b, own := doubter(t, doubting())
	other := parley.Msg{Kind: 10, Seq: 2, Value: 99, Body: []byte{2}}
	b.receive(0, other)
	b.receive(2, other)
	if b.receive(1, own); own.Body[0] != 3 || parts(b) {
		t.Errorf("two joiners have the copy of a member give way, which says %+v", own)
	}
	b.receive(2, parley.Msg{Kind: group.SnapshotWanted, Origin: 2})
	state := b.effects[0].Msg.Body
	j := newBench(t, doubting(), 1)
	j.receive(1, parley.Msg{Kind: group.SnapshotInstalled, Body: state})
	own = viewed(t, j, 2)
	if own.Body[0] != 2 {
		t.Errorf("who joins says %+v", own)
	}
	j.hear(own, 0, 1, 2)
	if own = viewed(t, j, 3); own.Body[0] != 3 {
		t.Errorf("who has been compared says %+v", own)
	}
}

// Nothing is answered before all have reported. A replica whose state is not chosen never answers what waited.
func TestAnswersWait(t *testing.T) {
	for _, counts := range []bool{true, false} {
		b, own := doubter(t, doubting())
		pack := parley.Msg{Kind: 4, Seq: 7, Body: rsm.AppendCommand(nil, 0, 1, []byte("balance"))}
		answered := func() bool {
			for _, e := range b.effects {
				if e.Op == parley.OpDeliver {
					return true
				}
			}
			return false
		}
		if b.receive(1, pack); answered() {
			t.Error("it answers before it knows")
		}
		other := own
		if !counts {
			other.Value++
		}
		b.receive(1, own)
		b.receive(0, other)
		if b.receive(2, other); answered() != counts || parts(b) == counts {
			t.Errorf("it counts: %t; it sends %+v", counts, b.effects)
		}
	}
}

// A replica that is found to differ between views also fetches the state of the others, and does not stop.
func TestFoundToDiffer(t *testing.T) {
	c := doubting()
	c.Every = 1
	b, own := doubter(t, c)
	b.hear(own, 0, 1, 2)
	b.receive(0, parley.Msg{Kind: 4, Seq: 7, Body: rsm.AppendCommand(nil, 0, 1, []byte("balance"))})
	b.receive(0, parley.Msg{Kind: 2, Seq: 1, Value: 5})
	if b.receive(2, parley.Msg{Kind: 2, Seq: 1, Value: 5}); !parts(b) {
		t.Errorf("it does %+v", b.effects)
	}
}

// If a process may lie, the setup is fixed: a change might leave no process to answer.
func TestSetupIsFixed(t *testing.T) {
	b := newBench(t, doubting(), 1)
	b.receive(0, parley.Msg{Kind: 3, Body: rsm.Setup{Active: parley.SetOf(0)}.Append(nil)})
	if b.refused["setup that is none, or may be that of a liar"] != 1 {
		t.Errorf("refused are %v", b.refused)
	}
}

// garbler is a replica whose first report of view 2 is sent wrongly.
type garbler struct {
	parley.Machine
	done bool
}

func (g *garbler) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	mark := s.Mark()
	g.Machine.Receive(s, from, m)
	for i := mark; i < s.Mark(); i++ {
		if e := &s.Effects[i]; e.Op == parley.OpBroadcast && e.Msg.Kind == 10 && e.Msg.Seq == 2 && !g.done {
			g.done, e.Msg.Seq = true, 7
		}
	}
}

// A report that was sent wrongly once, or that the broadcast below refused, is sent again. Otherwise no
// process would answer until the view ends.
func TestReportIsRepeated(t *testing.T) {
	c := rsm.Config{
		N: 3, Liars: 1, Piece: 16, Retry: 3000, Order: []string{timestamp.OneSequence}, Transfer: true,
		New: func() rsm.Application { return new(echo) },
	}
	copies := rsm.New(c)
	whole := copies.New
	copies.New = func(self parley.ID) parley.Machine {
		if self == 1 {
			return &garbler{Machine: whole(self)}
		}
		return whole(self)
	}
	views := group.Config{N: 3, State: true, Return: true}
	opt := sim.Options{
		Protocol: stack.New(timestamp.New(timestamp.Config{Config: views}), copies), FIFO: true, Until: 60_000,
		Suspicions: []sim.Suspicion{{At: 0, Of: 2, When: 5000}},
	}
	for q := range parley.ID(3) {
		opt.Requests = append(opt.Requests, ask(q, 30_000, fmt.Sprint("c", q)))
	}
	answered := 0
	for _, d := range sim.Run(opt).History.Deliveries {
		if d.Msg.Kind == rsm.Answer && d.At == d.From {
			answered++
		}
	}
	if answered != 3 {
		t.Errorf("%d of 3 commands are answered", answered)
	}
}

// A replica that was found to differ lacks later deliveries. So it weighs less than one whose state came from
// a single sponsor, and one that rejoins has nothing to report before it has a state.
func TestBehindWeighsLess(t *testing.T) {
	b, own := doubter(t, doubting())
	other := own
	other.Value++
	b.receive(1, own)
	b.receive(0, other)
	if b.receive(2, other); !parts(b) {
		t.Fatal("it does not give way to most others")
	}
	own = viewed(t, b, 3)
	if own.Body[0] != 1 {
		t.Errorf("who was found to differ says %+v", own)
	}
	b.receive(1, own)
	b.receive(0, parley.Msg{Kind: 10, Seq: 3, Body: []byte{0}})
	if b.receive(2, parley.Msg{Kind: 10, Seq: 3, Value: other.Value, Body: []byte{2}}); !parts(b) {
		t.Error("it does not give way to a copy that lacks nothing")
	}
	b.receive(1, parley.Msg{Kind: group.Excluded})
	b.receive(1, parley.Msg{Kind: group.SnapshotInstalled, Body: []byte{1}}) // to be fetched
	if own = viewed(t, b, 4); own.Body[0] != 0 {
		t.Errorf("who is to fetch its state says %+v", own)
	}
}

// If no replica is better than one that was found to differ, the service continues from it and indicates that
// something may be lost. A replica that lacks nothing does not indicate that.
func TestReportsPossibleLoss(t *testing.T) {
	for _, differs := range []bool{false, true} {
		b, own := doubter(t, doubting())
		if differs {
			other := own
			other.Value++
			b.hear(own, 1)
			b.hear(other, 0, 2)
			own = viewed(t, b, 3)
		}
		b.receive(1, own)
		b.receive(0, parley.Msg{Kind: 10, Seq: own.Seq, Body: []byte{0}})
		b.receive(2, parley.Msg{Kind: 10, Seq: own.Seq, Body: []byte{0}})
		said := slices.ContainsFunc(b.effects, func(e parley.Effect) bool {
			return e.Op == parley.OpIndicate && e.Msg.Kind == rsm.Lacks
		})
		if said != differs {
			t.Errorf("after it was found to differ %t: says that something may be lost %t", differs, said)
		}
	}
}

// Once a state is chosen, reports on earlier states do not undo it: otherwise all would fetch, and no process
// would have a state.
func TestSettledStays(t *testing.T) {
	c := doubting()
	c.Every = 1
	b, own := doubter(t, c)
	b.receive(0, parley.Msg{Kind: 4, Seq: 7, Body: rsm.AppendCommand(nil, 0, 1, []byte("balance"))})
	other := parley.Msg{Kind: 10, Seq: 2, Value: 99, Body: []byte{2}}
	b.receive(0, other)
	b.receive(2, other)
	b.receive(1, own)
	b.receive(0, parley.Msg{Kind: 2, Seq: 1, Value: 5})
	if b.receive(2, parley.Msg{Kind: 2, Seq: 1, Value: 5}); parts(b) {
		t.Error("the copy that counts gives way to others")
	}
}

// A replica is found to differ once, however many more reports show it.
func TestFoundOnce(t *testing.T) {
	c := doubting()
	c.N, c.Every = 4, 1
	b := newBench(t, c, 1)
	all := parley.Msg{Kind: parley.View, Seq: 2, Body: parley.AppendSet(nil, parley.Everyone(4))}
	b.receive(1, all)
	word := b.effects[0].Msg
	b.hear(word, 0, 1, 2, 3)
	b.receive(0, parley.Msg{Kind: 4, Seq: 7, Body: rsm.AppendCommand(nil, 0, 1, []byte("balance"))})
	for _, from := range []parley.ID{0, 2} {
		b.receive(from, parley.Msg{Kind: 2, Seq: 1, Value: 5})
	}
	if b.receive(3, parley.Msg{Kind: 2, Seq: 1, Value: 5}); !parts(b) {
		t.Fatal("it does not give way to three others")
	}
	all.Seq = 3
	b.receive(1, all)
	if b.receive(1, parley.Msg{Kind: 2, Seq: 1, Value: 9}); parts(b) {
		t.Error("it is found to differ twice")
	}
}

// A process that misses a report asks for it, and the reporter sends it again, even if it misses none itself.
func TestMissingWord(t *testing.T) {
	b, own := doubter(t, doubting())
	b.receive(0, own)
	said := func() (list []string) {
		for _, e := range b.effects {
			if e.Op == parley.OpBroadcast {
				list = append(list, fmt.Sprint(e.Msg.Kind, e.Msg.Seq, e.Msg.Value == own.Value, e.Msg.Value))
			}
		}
		return list
	}
	word, asks := fmt.Sprint(own.Kind, 2, true, own.Value), fmt.Sprint(parley.Kind(11), 2, false, 2)
	if b.do(func() { b.Timeout(&b.step, 0) }); !slices.Equal(said(), []string{word, asks}) {
		t.Errorf("without its own word and that of process 2 it says %q", said())
	}
	b.receive(1, own)
	b.receive(2, own)
	for _, c := range []struct {
		of, view uint64
		want     []string
	}{{1, 2, []string{word}}, {2, 2, nil}, {1, 1, nil}} {
		if b.receive(0, parley.Msg{Kind: 11, Seq: c.view, Value: c.of}); !slices.Equal(said(), c.want) {
			t.Errorf("asked for the word of process %d in view %d it says %q", c.of, c.view, said())
		}
	}
	if b.receive(2, own); len(b.refused) > 0 {
		t.Errorf("refused are %v", b.refused)
	}
	if b.do(func() { b.Timeout(&b.step, 0) }); len(b.effects) > 0 {
		t.Errorf("with all words it does %+v", b.effects)
	}
}
