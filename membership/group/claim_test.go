package group_test

import (
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/ballot"
	"parley/membership/group"
)

// later is a decision that claims that a later view exists.
func later(number byte) letter {
	body := value(number, 4, parley.All, 0)
	return letter{epoch: uint32(number) - 1, msg: parley.Msg{Kind: ballot.Decision, Body: body}}
}

// without is a decision on view 2 without process 0, of a group of four with one layer.
func without(change func(lives, disks []byte) parley.Set) []byte {
	lives, disks := make([]byte, 4), []byte{1, 1, 1, 1}
	members := change(lives, disks)
	b := parley.AppendSet([]byte{2}, members)
	for id := range members.All() {
		b = append(b, lives[id])
	}
	b = append(b, disks...)
	return append(parley.AppendSet(b, parley.Set{}), 1, 0)
}

// With one possible liar, a single process cannot make another give up its view: all processes are asked, and
// two equal claims count.
func TestLaterViewOfOne(t *testing.T) {
	p := newPost(t, group.Config{N: 4, Liars: 1, Return: true})
	p.put(3, 0, later(9))
	p.expect(0, "")
	for id := parley.ID(1); id < 4; id++ {
		p.sent(0, id, group.DecisionQuery)
	}
	p.put(3, 0, later(8)) // something else, and then the first again
	p.put(3, 0, later(9))
	p.put(1, 0, later(8))
	p.expect(0, "")
	for id := parley.ID(1); id < 4; id++ {
		p.lose(0, id)
	}
	p.put(1, 0, later(9))
	p.expect(0, "out 0")
	// The claimants are asked again, in that view: a ballot may be in progress there.
	for id, want := range map[parley.ID]bool{1: true, 2: false, 3: true} {
		asked := slices.ContainsFunc(p.links[0][id], func(l letter) bool { return l.msg.Kind == group.DecisionQuery && l.epoch == 9 })
		if asked != want {
			t.Errorf("process %d is asked: %t", id, asked)
		}
	}
}

// A process with a ballot in progress repeats it to a process that asks in the same view.
func TestAskedInTheSameView(t *testing.T) {
	p := newPost(t, group.Config{N: 4, Liars: 1})
	p.suspect(0, 3)
	p.lose(0, 1)
	p.put(1, 0, letter{epoch: 1, msg: parley.Msg{Kind: group.DecisionQuery}})
	p.sent(0, 1, ballot.Prepare)
}

// If no other process says anything, a claim of one process counts when it is the same in three periods.
func TestLaterViewInsists(t *testing.T) {
	p := newPost(t, group.Config{N: 4, Liars: 1, Return: true})
	for range 2 {
		p.put(3, 0, later(9))
		p.put(3, 0, later(9))
		p.period(500, 0)
		if !slices.Contains(p.kinds(0, 3), group.DecisionQuery) {
			t.Error("it does not ask again")
		}
		p.lose(0, 3)
	}
	p.expect(0, "")
	p.put(3, 0, later(9))
	p.expect(0, "out 0")
}

// A process believes one other about how the present view ended if it has accepted that decision itself.
func TestDecisionOfOne(t *testing.T) {
	all := value(2, 4, parley.All, 0)
	decision := letter{epoch: 1, msg: parley.Msg{Kind: ballot.Decision, Body: all}}
	p := newPost(t, group.Config{N: 4, Liars: 1})
	p.put(3, 0, decision)
	p.expect(0, "")

	p = newPost(t, group.Config{N: 4, Liars: 1})
	p.put(3, 0, letter{epoch: 1, msg: parley.Msg{Kind: ballot.Prepare, Seq: 7}})
	p.put(3, 0, letter{epoch: 1, msg: parley.Msg{Kind: ballot.Accept, Seq: 7, Body: all}})
	p.put(3, 0, decision)
	p.expect(0, "view 2 [0 1 2 3]")
}

// A process does not accept a view that no correct process would choose: one with too few members, with a
// member in an impossible incarnation, or with a changed disk of a process outside.
func TestInsaneView(t *testing.T) {
	for name, c := range map[string]struct {
		change func(lives, disks []byte) parley.Set
		sane   bool
	}{
		"without one":  {func(_, _ []byte) parley.Set { return parley.SetOf(1, 2, 3) }, true},
		"joins again":  {func(lives, _ []byte) parley.Set { lives[1] = 1; return parley.SetOf(1, 2, 3) }, true},
		"too few":      {func(_, _ []byte) parley.Set { return parley.SetOf(2, 3) }, false},
		"no disk":      {func(_, disks []byte) parley.Set { disks[1] = 0; return parley.SetOf(1, 2, 3) }, false},
		"outside":      {func(_, disks []byte) parley.Set { disks[0] = 2; return parley.SetOf(1, 2, 3) }, false},
		"another disk": {func(_, disks []byte) parley.Set { disks[1] = 2; return parley.SetOf(1, 2, 3) }, true},
	} {
		p := newPost(t, group.Config{N: 4, Liars: 1})
		p.put(3, 0, letter{epoch: 1, msg: parley.Msg{Kind: ballot.Prepare, Seq: 7}})
		p.put(3, 0, letter{epoch: 1, msg: parley.Msg{Kind: ballot.Accept, Seq: 7, Body: without(c.change)}})
		if got := p.heard(0); (got == "") != c.sane {
			t.Errorf("%s: it says %q", name, got)
		}
	}
}

// A process to which a view ascribes another incarnation joins in a later one. If a view ascribes another
// disk to it, its votes still count, unless it has restarted and was no member since.
func TestOutnumbers(t *testing.T) {
	wrong := without(func(lives, disks []byte) parley.Set { lives[1], disks[1] = 50, 7; return parley.SetOf(1, 2, 3) })
	for _, back := range []bool{false, true} {
		p := newPost(t, group.Config{N: 4, Liars: 1, Return: true, Durable: true})
		disk, votes := uint64(7), []parley.Kind{ballot.Promise}
		if back {
			p.restart(1)
			p.down(1)
			p.heard(1)
			disk, votes = 8, nil
		}
		for _, from := range []parley.ID{2, 3} {
			p.put(from, 1, letter{epoch: 1, msg: parley.Msg{Kind: ballot.Decision, Body: wrong}})
		}
		p.expect(1, "out 0")
		at := slices.IndexFunc(p.links[1][2], func(l letter) bool { return l.msg.Kind == group.Join })
		if at < 0 {
			t.Fatalf("it does not ask process 2, which told it, but sends %v", p.kinds(1, 2))
		}
		if join := p.links[1][2][at].msg; join.Seq != 51 || join.Value != disk {
			t.Errorf("it asks with %+v", join)
		}
		p.down(1)
		p.put(2, 1, letter{epoch: 2, msg: parley.Msg{Kind: ballot.Prepare, Seq: 6}})
		if k := p.kinds(1, 2); !slices.Equal(k, votes) {
			t.Errorf("it came back: %t; it votes by %v", back, k)
		}
	}
	p := newPost(t, group.Config{N: 4, Liars: 1, Return: true})
	p.put(1, 2, letter{epoch: 1, msg: parley.Msg{Kind: group.Join, Seq: 1<<62 - 1, Value: 8}})
	p.expect(2, "refused: no incarnation")
}

// A liar has joined in the name of a process with a false disk. The process restarts with an empty disk and
// knows neither that view nor that disk number. The others inform it and admit it.
func TestRejoinsAfterALiar(t *testing.T) {
	p := newPost(t, group.Config{N: 4, Liars: 1, Return: true, Durable: true})
	p.put(3, 0, letter{epoch: 1, msg: parley.Msg{Kind: group.Join, Seq: 50, Value: 7000}})
	p.put(3, 0, letter{epoch: 1, msg: parley.Msg{Kind: group.Ready, Seq: 50}})
	p.all(10, 0, 1, 2)
	p.expect(0, "view 2 [0 1 2 3]; suspects 3; view 3 [0 1 2]")
	p.down(3)
	p.logs[3], p.state[3], p.said[3] = nil, nil, nil
	p.restart(3)
	p.all(22, 0, 1, 2, 3) // 8 more if it waits for its whole timeout
	if got := p.heard(3); !strings.Contains(got, "[0 1 2 3]") {
		t.Errorf("process 3 says %q; process 0 %q", got, p.heard(0))
	}
}

// A process that hears of the view that admits it before INSTALL arrives waits for INSTALL. If it sent
// another request, that would not be the admitted incarnation, and this would repeat forever.
func TestHearsOfItsViewFirst(t *testing.T) {
	p := newPost(t, group.Config{N: 4, Liars: 1, Return: true, Durable: true})
	p.logs[3], p.state[3], p.said[3] = nil, nil, nil
	p.restart(3)
	asked := func() (list []parley.Msg) {
		for to := range parley.ID(3) {
			for _, l := range p.links[3][to] {
				if l.msg.Kind == group.Join {
					list = append(list, l.msg)
				}
			}
		}
		return list
	}
	first := asked()
	if len(first) != 1 {
		t.Fatalf("it asks %v", first)
	}
	let := without(func(lives, disks []byte) parley.Set {
		lives[3], disks[3] = byte(first[0].Seq), byte(first[0].Value)
		return parley.Everyone(4)
	})
	for from := range parley.ID(2) {
		p.put(from, 3, letter{epoch: 1, msg: parley.Msg{Kind: ballot.Decision, Body: let}})
	}
	if again := asked(); len(again) != 1 {
		t.Errorf("it asks %v", again)
	}
}

// A report that its member cannot give, such as one of another incarnation, does not count: the others make
// the view. One report alone expels no member, except the proposer's own.
func TestFalseReport(t *testing.T) {
	const life, exclude = 1, 4 // offsets in a promise
	none, second := parley.AppendSet(nil, parley.Set{}), parley.AppendSet(nil, parley.SetOf(2))
	for name, c := range map[string]struct {
		change func(b []byte) []byte
		want   string
	}{
		"true":         {func(b []byte) []byte { return b }, "view 2 [0 1 2 3]"},
		"another life": {func(b []byte) []byte { b[life] = 9; return b }, "view 2 [0 2 3]"},
		"expels": {func(b []byte) []byte {
			return slices.Concat(b[:exclude], second, b[exclude+len(none):])
		}, "view 2 [0 1 2 3]"},
	} {
		p := newPost(t, group.Config{N: 4, Liars: 1, Return: true})
		p.suspect(0, 3)
		for to := parley.ID(1); to < 4; to++ {
			p.arrive(0, to, 1) // PREPARE
		}
		said := p.lose(1, 0)[0]
		said.msg.Body = c.change(slices.Clone(said.msg.Body))
		p.put(1, 0, said)
		p.arrive(3, 0, 1)
		p.settle(0, 2, 3)
		if got := p.heard(0); got != c.want {
			t.Errorf("%s: process 0 says %q, expected %q", name, got, c.want)
		}
	}
}

// A process may be excluded on request after it asked to join with another disk. The next view then names its
// old disk: the others accept no view that names a new disk for a process outside.
func TestExcludesLearner(t *testing.T) {
	p := newPost(t, group.Config{N: 4, Liars: 1, Return: true})
	p.ask(0, parley.Msg{Kind: group.Exclude, Origin: 3})
	p.put(3, 0, letter{epoch: 1, msg: parley.Msg{Kind: group.Join, Seq: 1, Value: 2}})
	p.put(3, 0, letter{epoch: 1, msg: parley.Msg{Kind: group.Ready, Seq: 1}})
	p.all(10, 0, 1, 2)
	if got := p.heard(1); !strings.HasPrefix(got, "view 2 [0 1 2]; excludes 3") {
		t.Errorf("process 1 says %q", got)
	}
}

// However many tries have failed, the next one comes soon.
func TestTriesAgainSoon(t *testing.T) {
	p := newPost(t, group.Config{N: 4, Liars: 1})
	p.suspect(0, 3)
	last := p.now
	for range 400 {
		p.period(500, 0)
		if slices.Contains(p.kinds(0, 1), ballot.Prepare) {
			last = p.now
		}
		p.lose(0, 1)
		if p.now-last > 4*5000+500 {
			t.Fatalf("at %d it has not tried again since %d", p.now, last)
		}
	}
}
