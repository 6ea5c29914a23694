package eig_test

import (
	"bytes"
	"slices"
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/problem"
)

// host keeps the reasons why input was refused.
type host struct{ refused []string }

func (*host) Choose(int) int                        { return 0 }
func (*host) Sign(parley.ID, []byte) []byte         { return nil }
func (*host) Verify(parley.ID, []byte, []byte) bool { return false }
func (h *host) Refused(_, _ parley.ID, why string)  { h.refused = append(h.refused, why) }

// received runs lieutenant P3 of four on the messages of its rounds, and returns its
// decision and its refusals. P1 is the source; P3 itself relays its order.
func received(orders, levels []parley.Msg) (decided string, refused []string) {
	h := new(host)
	s := parley.Step{Self: 2, N: 4, Host: h}
	p := eig.Rounds(config(4, 1)).New(2)
	for r, round := range [][]parley.Msg{orders, levels} {
		p.Emit(&s, r)
		for _, m := range round {
			p.Absorb(&s, r, parley.ID(r), m) // orders from the source, levels from P2
		}
		p.Close(&s, r)
	}
	for _, e := range s.Effects {
		if e.Op == parley.OpDeliver {
			decided = string(e.Msg.Body)
		}
	}
	return decided, h.refused
}

// order is a message of the source, and level one of P2, which relays one value of one byte.
func order(value []byte) parley.Msg { return parley.Msg{Kind: eig.Order, Body: value} }

func level(value byte) parley.Msg {
	return parley.Msg{Kind: eig.Level, Seq: 1, Body: []byte{1, 1, value, 1}}
}

// The article has a process send one message per round: if a faulty process sends several, only
// the first counts, and an order longer than values may be does not count at all. P3 has
// two votes of three for what P2 relays if the source told P3 the same; P4 is silent.
func TestFirstMessageOfRoundCounts(t *testing.T) {
	const secondOrder, secondLevel = "second or oversized order", "second level of a round"
	largest := bytes.Repeat([]byte("x"), problem.MaxValue)
	oversized := bytes.Repeat([]byte("x"), problem.MaxValue+1)
	for name, c := range map[string]struct {
		orders, levels []parley.Msg
		want           string
		refused        []string
	}{
		"one of each": {[]parley.Msg{order([]byte("1"))}, []parley.Msg{level('1')}, "1", nil},
		"two levels, the second like the order": {
			[]parley.Msg{order([]byte("1"))}, []parley.Msg{level('2'), level('1')}, "0", []string{secondLevel}},
		"two levels, the first like the order": {
			[]parley.Msg{order([]byte("1"))}, []parley.Msg{level('1'), level('2')}, "1", []string{secondLevel}},
		"two orders, the second like the level": {
			[]parley.Msg{order([]byte("2")), order([]byte("1"))}, []parley.Msg{level('1')}, "0", []string{secondOrder}},
		"an oversized order, and a proper one": {
			[]parley.Msg{order(oversized), order([]byte("1"))}, []parley.Msg{level('1')}, "1", []string{secondOrder}},
		"an oversized order after a proper one": {
			[]parley.Msg{order([]byte("1")), order(oversized)}, []parley.Msg{level('1')}, "1", []string{secondOrder}},
		"the largest order": {
			[]parley.Msg{order(largest)},
			[]parley.Msg{{Kind: eig.Level, Seq: 1, Body: slices.Concat([]byte{1, 0x80, 8}, largest, []byte{1})}},
			string(largest), nil},
	} {
		decided, refused := received(c.orders, c.levels)
		if decided != c.want || !slices.Equal(refused, c.refused) {
			t.Errorf("%s: got %.10q (%d bytes), refused %q, want %.10q, refused %q",
				name, decided, len(decided), refused, c.want, c.refused)
		}
	}
}
