package group_test

import (
	"testing"

	"parley"
	"parley/agreement/ballot"
	"parley/membership/group"
)

// A lying member must not bring others to a decision that none of them can read, not even by an accepted
// value in its promise.
func TestGarbage(t *testing.T) {
	p := newPost(t, group.Config{N: 3})
	p.suspect(0, 1) // PREPARE, of ballot 3
	promise := parley.Msg{Kind: ballot.Promise, Seq: 3, Value: 3, Body: []byte{1, 'x'}}
	p.put(2, 0, letter{epoch: 1, msg: promise})
	p.expect(0, "refused: decision that cannot be read")
	for _, kind := range []parley.Kind{ballot.Accept, ballot.Decision} {
		m := parley.Msg{Kind: kind, Body: []byte("x")}
		if kind == ballot.Accept {
			m.Seq = 5
		}
		p.put(2, 0, letter{epoch: 1, msg: m})
		p.expect(0, "refused: decision that cannot be read")
	}
	p.put(2, 0, letter{epoch: 1, msg: parley.Msg{Kind: ballot.Accepted, Seq: 3}})
	p.arrive(0, 2, 1)
	p.arrive(2, 0, 1)
	p.settle(0, 2)
	p.expect(0, "view 2 [0 2]")
}

// A request too long for a cut that holds everything in flight is refused at once.
func TestTooLong(t *testing.T) {
	p := newPost(t, group.Config{N: 3, Payload: 3})
	p.cast(0, "abcd")
	p.expect(0, "refused: request that is too long")
	p.deliver(0, "abc", 0, 1, 2)
	p.expect(1, "1:abc")
}

// Times that would overflow when they are doubled, and limits that admit nothing.
func TestConfig(t *testing.T) {
	for _, bad := range []group.Config{
		{}, {N: 257}, {N: 3, M: 3}, {N: 3, Initial: parley.SetOf(3)}, {N: 3, Wait: 2500}, {N: 3, Wait: 1 << 60},
		{N: 3, Stagger: -1}, {N: 3, Stagger: 1 << 60}, {N: 3, Admit: 1 << 60}, {N: 3, Flush: -1}, {N: 3, Queue: -1},
		{N: 3, Payload: -1}, {N: 3, Compact: -1},
	} {
		if bad.Check() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// A joiner abandons a lying sponsor, and delivers nothing in the name of a process that does not exist.
func TestForwardOfUnknownMessageIsRefused(t *testing.T) {
	p := joiner(t, group.Config{})
	p.arrive(1, 3, 1)
	p.put(1, 3, letter{epoch: 1, msg: parley.Msg{Kind: group.Forward, Origin: 4, Seq: 3, Value: 1, Body: []byte{'x'}}})
	p.sent(3, 2, group.Join)
}

// A joiner keeps a bounded number of messages of the next view, and of bytes, whoever sends them.
func TestEarlyIsBounded(t *testing.T) {
	for _, c := range []struct{ size, kept int }{{1, 8}, {20, 2}, {41, 0}} {
		p := joiner(t, group.Config{Queue: 8, Payload: 5})
		p.arrive(1, 3, 1)
		for range c.kept {
			p.put(2, 3, letter{epoch: 2, path: 1, msg: parley.Msg{Kind: 1, Body: make([]byte, c.size)}})
		}
		p.expect(3, "")
		p.put(2, 3, letter{epoch: 2, path: 1, msg: parley.Msg{Kind: 1, Body: make([]byte, c.size)}})
		p.expect(3, "refused: too many messages of the next view")
	}
}

// value encodes a decision of a group with one layer: n processes continue in their first incarnations,
// except for one that joins.
func value(number byte, n int, joins parley.ID, cut ...byte) []byte {
	b := parley.AppendSet([]byte{number}, parley.Everyone(n))
	for id := range parley.ID(n) {
		life := byte(0)
		if id == joins {
			life = 1
		}
		b = append(b, life)
	}
	for id := range parley.ID(n) {
		disk := byte(1)
		if id == joins {
			disk = 2
		}
		b = append(b, disk)
	}
	b = parley.AppendSet(b, parley.Set{}) // no process was excluded on request
	return append(append(b, byte(len(cut))), cut...)
}

// A decision that does not make the next view does not belong to this one.
func TestDecisionOfAnotherView(t *testing.T) {
	for number, want := range map[byte]string{
		2: "view 2 [0 1 2]", 1: "refused: decision that cannot be read", 3: "refused: decision that cannot be read",
	} {
		p := newPost(t, group.Config{N: 3})
		p.put(2, 0, letter{epoch: 1, msg: parley.Msg{Kind: ballot.Decision, Body: value(number, 3, parley.All, 0)}})
		p.expect(0, want)
	}
}

// A joiner checks what its sponsor sends as members check what they decide on. It gives up on a cut that a
// layer cannot read, or a view that does not follow.
func TestInstallOfGarbage(t *testing.T) {
	for _, c := range []struct {
		value []byte
		want  string
	}{
		{value(2, 4, 3, 0), "restored 2 ; view 2 [0 1 2 3]"}, {value(2, 4, 3, 9), ""}, {value(3, 4, 3, 0), ""}, {[]byte{1}, ""},
	} {
		p := joiner(t, group.Config{})
		p.arrive(1, 3, 1)
		body := append([]byte{byte(len(c.value))}, c.value...)
		p.put(1, 3, letter{epoch: 1, msg: parley.Msg{Kind: group.Install, Seq: 2, Value: 1, Body: append(body, 2, 2, 2)}})
		p.expect(3, c.want)
		if gaveUp := len(p.links[3][2]) > 0; gaveUp == (c.want != "") {
			t.Errorf("after %x it asks another: %v", c.value, gaveUp)
		}
	}
}

// A process ignores non-members: in the view, and in what a joiner kept.
func TestNoMember(t *testing.T) {
	data := letter{epoch: 1, path: 1, msg: parley.Msg{Kind: 1, Seq: 1, Value: 1, Body: []byte{0, 0, 0, 'x'}}}
	p := joiner(t, group.Config{})
	p.put(3, 0, data)
	p.expect(0, "refused: message of no member")

	p = newPost(t, group.Config{N: 5, Initial: parley.SetOf(0, 1, 2)})
	p.settle(1, 3)
	p.period(500, 1)
	p.period(7500, 1)
	data.epoch, data.msg.Body = 2, []byte{0, 0, 0, 0, 'x'}
	p.put(4, 3, data)
	p.heard(3)
	p.settle(0, 1, 2, 3)
	p.expect(3, "restored 0 ; view 2 [0 1 2 3]")
	p.deliver(0, "a", 0, 1, 2, 3)
	p.expect(3, "1:a")
}
