package run_test

import (
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/bracha"
	"parley/broadcast/diffusion"
	"parley/broadcast/fifo"
	"parley/run"
)

// answering is a host that gives one answer, and counts the questions.
type answering struct {
	parley.Host
	k, asked, of int
}

func (a *answering) Choose(n int) int {
	a.asked, a.of = a.asked+1, n
	return min(a.k, n-1)
}

// said returns what a protocol sends in place of one honest message.
func said(p parley.Protocol, k int, honest parley.Msg) (out []string, h *answering) {
	h = &answering{k: k}
	s := &parley.Step{N: p.N, Host: h}
	for _, one := range p.Lies(s, &parley.Turn{Self: 1, To: 2, Honest: []parley.Outgoing{{Msg: honest}}}) {
		m := one.Msg
		out = append(out, fmt.Sprintf("%d/%d/%d/%s", m.Origin, m.Seq, m.Value, m.Body))
	}
	if s.Host != h {
		panic("the host is another one")
	}
	return out, h
}

// Each field of a crash protocol's message may be a lie. The first answer is the honest message, and the last
// is silence.
func TestLying(t *testing.T) {
	for _, p := range []parley.Protocol{diffusion.New(diffusion.Config{N: 4}), fifo.Tower(diffusion.Config{N: 4})} {
		p = run.Lying(p)
		body := []byte("0")
		want := [][]string{
			{"1/5/8/0"}, {"1/5/8/1"}, {"1/5/9/0"}, {"1/6/8/0"}, {"2/5/8/0"}, {"1/5/8/0", "1/5/8/0"}, nil,
		}
		for k, w := range want {
			got, h := said(p, k, parley.Msg{Kind: 1, Origin: 1, Seq: 5, Value: 8, Body: body})
			if !slices.Equal(got, w) || h.asked != 1 || h.of != len(want) {
				t.Errorf("%s, answer %d of %d: %q, and it is %q", p.Name, k, h.of, got, w)
			}
		}
		if string(body) != "0" {
			t.Error("the honest message was written into")
		}
		if got, _ := said(p, 1, parley.Msg{Kind: 1, Value: 8}); !slices.Equal(got, []string{"0/0/9/"}) {
			t.Errorf("without a payload: %q", got)
		}
	}
	// A protocol with lies keeps them.
	knows := bracha.New(bracha.Config{N: 4, M: 1})
	honest := parley.Msg{Kind: 1, Origin: 1, Body: []byte("0")}
	for k := range 5 {
		own, h := said(knows, k, honest)
		got, g := said(run.Lying(knows), k, honest)
		if !slices.Equal(own, got) || h.of != g.of {
			t.Errorf("answer %d: %q, and its own are %q", k, got, own)
		}
	}
}
