package rsm_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"parley"
	"parley/membership/group"
	"parley/replica/rsm"
)

// reply has a replica apply a pack of its own, and returns the replies.
func reply(t *testing.T, b *bench, body []byte) []rsm.Reply {
	t.Helper()
	b.receive(b.step.Self, parley.Msg{Kind: 4, Seq: 9, Body: body})
	for _, e := range b.effects {
		if m := e.Msg; e.Op == parley.OpDeliver && m.Kind == rsm.Replies {
			list, ok := rsm.ReadReplies(m.Body)
			if !ok || m.Value != 9 {
				t.Fatalf("%+v", m)
			}
			return list
		}
	}
	t.Fatalf("no replies: %+v", b.effects)
	return nil
}

func show(list []rsm.Reply) (out string) {
	for _, r := range list {
		out += fmt.Sprintf("%d@%d:%s ", r.Status, r.Position, r.Answer)
	}
	return out
}

// Commands of a pack are applied in order, once for each session and number; a command without a session is
// applied at every retry. Only the requester gets the replies.
func TestPack(t *testing.T) {
	b := newBench(t, rsm.Config{N: 3, New: account, Sessions: 2}, 1)
	open := rsm.AppendCommand(nil, 0, 0, nil)
	one := func(client, number uint64, command string) []byte {
		return rsm.AppendCommand(nil, client, number, []byte(command))
	}
	first, second, third := rsm.Client(1), rsm.Client(2), rsm.Client(6)
	both := append(one(first, 1, "deposit 1"), one(second, 7, "deposit 2")...)
	both = append(both, one(first, 1, "deposit 1")...)
	for i, c := range []struct {
		body []byte
		want string
	}{
		{append(bytes.Clone(open), open...), "1@1: 1@2: "},
		{both, "1@3:1001 1@4:1003 1@3:1001 "},
		{one(second, 6, "deposit 4"), "2@0: "},
		{one(0, 1, "balance"), "1@5:1003 "},
		{open, "1@6: "}, // and the first is forgotten
		{one(first, 1, "deposit 1"), "3@0: "},
		{one(first, 2, "deposit 1"), "3@0: "},
		{append(one(third, 1, "withdraw 3"), one(second, 7, "deposit 2")...), "1@7:1000 1@4:1003 "},
	} {
		if got := show(reply(t, b, c.body)); got != c.want {
			t.Errorf("pack %d: %s, not %s", i, got, c.want)
		}
	}
	if b.receive(0, parley.Msg{Kind: 4, Body: both}); len(b.effects) > 0 {
		t.Errorf("what another has asked is answered: %+v", b.effects)
	}
	saved := parley.Save(b, 0, nil)
	for _, bad := range [][]byte{
		nil, both[:len(both)-1], append(bytes.Clone(both), 0), one(0, 2, ""), one(first, 0, ""), one(7, 1, ""), one(1<<63+1, 1, ""),
		append(one(third, 2, "deposit 9"), 1, 1, 0), one(0, 0, strings.Repeat("x", rsm.MaxOwner+1)),
	} {
		b.request(parley.Msg{Kind: rsm.Commands, Body: bad})
		b.receive(0, parley.Msg{Kind: 4, Body: bad})
	}
	if b.refused["request with a pack that is none"] != 9 || b.refused["pack that is none"] != 9 {
		t.Errorf("refused %v", b.refused)
	}
	if !bytes.Equal(parley.Save(b, 0, nil), saved) {
		t.Error("of a pack that is none something was applied")
	}
	if _, ok := rsm.ReadReplies([]byte{1, 1, 5}); ok {
		t.Error("bytes are taken for replies")
	}
}

// A client cannot use an opened session through a Command request.
func TestOpenedSessionsAreApart(t *testing.T) {
	b := newBench(t, rsm.Config{N: 3, New: account}, 0)
	b.request(parley.Msg{Kind: rsm.Command, Value: rsm.Client(1), Seq: 1, Body: []byte("deposit 1")})
	b.receive(1, parley.Msg{Kind: 1, Value: rsm.Client(1), Seq: 1, Body: []byte("deposit 1")})
	if len(b.effects) > 0 || len(b.refused) != 2 {
		t.Errorf("%+v, %v", b.effects, b.refused)
	}
}

// long answers each command with 100 bytes.
type long struct{}

func (long) Apply([]byte) []byte { return make([]byte, 100) }
func (long) Snapshot() []byte    { return nil }
func (long) Restore([]byte) bool { return true }

// The bytes of kept answers are bounded, also at a replica that took over the state.
func TestAnswersAreBounded(t *testing.T) {
	c := rsm.Config{N: 3, New: func() rsm.Application { return long{} }, Answers: 350, Transfer: true}
	a, b := newBench(t, c, 0), newBench(t, c, 0)
	var open []byte
	for range 9 {
		open = rsm.AppendCommand(open, 0, 0, nil)
	}
	reply(t, a, open)
	for k := range uint64(9) {
		body := rsm.AppendCommand(nil, rsm.Client(1+k), 1, nil)
		if k == 6 {
			b.receive(0, parley.Msg{Kind: group.SnapshotInstalled, Body: stateOf(t, a)})
		}
		if got := reply(t, a, body); got[0].Status != rsm.Applied {
			t.Fatalf("client %d: %+v", k, got)
		}
		if k >= 6 {
			reply(t, b, body)
		}
	}
	if !bytes.Equal(stateOf(t, a), stateOf(t, b)) {
		t.Error("who took over the state remembers others")
	}
	kept := 0
	for k := range uint64(9) {
		if reply(t, a, rsm.AppendCommand(nil, rsm.Client(1+k), 1, nil))[0].Status == rsm.Applied {
			kept++
		}
	}
	if kept != 3 {
		t.Errorf("%d answers of 100 bytes are kept", kept)
	}
}

// An owner that opens more sessions than there is room for loses its own sessions. So does an owner whose
// answers are too long. Other owners keep their sessions, however long they are silent.
func TestSharesOfOwners(t *testing.T) {
	for name, c := range map[string]rsm.Config{
		"sessions": {N: 3, New: func() rsm.Application { return long{} }, Sessions: 6},
		"answers":  {N: 3, New: func() rsm.Application { return long{} }, Answers: 600},
	} {
		b := newBench(t, c, 0)
		asks := func(session uint64) rsm.Status {
			return reply(t, b, rsm.AppendCommand(nil, session, 1, nil))[0].Status
		}
		open := func(owner string) uint64 {
			session := rsm.Client(reply(t, b, rsm.AppendCommand(nil, 0, 0, []byte(owner)))[0].Position)
			if asks(session) != rsm.Applied {
				t.Fatal(name, "a new session is not there")
			}
			return session
		}
		quiet, few := open("quiet"), []uint64{open("few"), open("few")}
		var greedy []uint64
		for range 20 {
			greedy = append(greedy, open("greedy"))
		}
		for _, session := range append(few, quiet, greedy[17], greedy[18], greedy[19]) {
			if asks(session) != rsm.Applied {
				t.Error(name, "session", session, "of who has its share is forgotten")
			}
		}
		if asks(greedy[16]) != rsm.Expired {
			t.Error(name, "who has most loses nothing")
		}
	}
}

// With checked answers, replies wait until enough replicas have the same state.
func TestCheckedPack(t *testing.T) {
	setup := rsm.Setup{Active: parley.Everyone(3), M: 1, Checked: true}
	b := newBench(t, rsm.Config{N: 3, New: account, Setup: setup}, 0)
	body := rsm.AppendCommand(rsm.AppendCommand(nil, 0, 0, nil), 0, 1, []byte("deposit 1"))
	b.receive(0, parley.Msg{Kind: 4, Seq: 5, Body: body})
	if len(b.effects) != 1 || b.effects[0].Op != parley.OpBroadcast {
		t.Fatalf("%+v", b.effects)
	}
	word := b.effects[0].Msg
	b.receive(0, word)
	if len(b.effects) > 0 {
		t.Fatalf("on its own word: %+v", b.effects)
	}
	b.receive(2, word)
	if len(b.effects) != 1 || b.effects[0].Msg.Kind != rsm.Replies || b.effects[0].Msg.Value != 5 {
		t.Errorf("on that of another: %+v", b.effects)
	}
}
