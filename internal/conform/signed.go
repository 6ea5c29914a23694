package conform

import (
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/agreement/sm"
	"parley/internal/conform/form"
	"parley/lockstep"
	"parley/sim"
	"parley/trace"
)

// signedCase is one Byzantine agreement with signed messages.
type signedCase struct {
	sourced
	Sends []signedSend `json:"sends"`
}

// signedSend is a message of a faulty process: a value with a chain of signatures, one of which may be invalid.
type signedSend struct {
	Round  int      `json:"round"`
	From   string   `json:"from"`
	To     string   `json:"to"`
	Value  string   `json:"value"`
	Chain  []string `json:"chain"`
	BadSig *int     `json:"bad_sig"`
}

type signedExpect struct {
	outcome
	V                map[string][]string `json:"V"`
	MessagesPerRound []uint64            `json:"honest_messages_per_round"`
	Rejected         []rejection         `json:"rejected"`
}

// rejection is a message that a correct process did not accept. Its reason is not compared, only its presence.
type rejection struct {
	To     string   `json:"to"`
	Round  int      `json:"round"`
	Value  string   `json:"value"`
	Chain  []string `json:"chain"`
	Reason string   `json:"reason"`
}

func signed(c signedCase, want signedExpect, report reporter) {
	k, config, sends := c.prepare()
	rounds := sm.Rounds(config)
	rounds.Lies = sm.Script(config, sends)
	made := make(map[parley.ID]lockstep.Rounds) // the inner machines
	inside := rounds.New
	rounds.New = func(self parley.ID) lockstep.Rounds {
		made[self] = inside(self)
		return made[self]
	}
	p := lockstep.Of(rounds, lockstep.Simulated)
	s, log := k.run(p, map[parley.ID]string{config.Source: c.SourceValue})

	names := form.Keys(want.V)
	for i, id := range k.asCorrect("V", names, parley.All) {
		got := []string{}
		for _, v := range sm.Values(made[id]) {
			got = append(got, string(v))
		}
		report("V."+names[i], want.V[names[i]], got)
	}
	sent := messages(s.Stats.Sent, c.M+1)
	report("honest_messages_per_round", byRound(want.MessagesPerRound, sent), sent)
	for i := range want.Rejected {
		want.Rejected[i].Reason = ""
	}
	report("rejected", byPlace(want.Rejected), rejections(config, k, log))
	want.compare(k, config.Source, c.SourceValue, s, report)
}

// maxRelays is the maximum number of messages to which the sends of a case may lead.
const maxRelays = 1_000_000

func (c signedCase) prepare() (cast, sm.Config, []sm.Forged) {
	k, in := c.sourced.prepare()
	if each := (c.N - 1) * (c.N - 1); len(c.Sends) >= maxRelays/each {
		fail("%d sends, which all may relay to all: with n = %d fewer than %d are allowed", len(c.Sends), c.N, maxRelays/each)
	}
	var sends []sm.Forged
	for _, send := range c.Sends {
		within("sends", func() { sends = append(sends, send.forged(c.M, k)) })
	}
	return k, sm.Config{Instance: in}, sends
}

// forged checks and reads a message.
func (send signedSend) forged(m int, k cast) sm.Forged {
	f := sm.Forged{
		Round: send.Round, Value: []byte(send.Value), BadSig: -1,
		From: k.id("", send.From), To: k.id("", send.To), Chain: k.ids("", send.Chain),
	}
	switch {
	case !k.bad(f.From):
		fail("from %q: it is correct and follows the algorithm", send.From)
	case send.Round < 0 || send.Round > m:
		fail("round %d: allowed are 0 to %d", send.Round, m)
	case f.From == f.To:
		fail("%q sends to itself", send.From)
	case len(send.Chain) == 0:
		fail("a chain has at least one signer")
	}
	if bad := send.BadSig; bad != nil {
		if f.BadSig = *bad; *bad < 0 || *bad >= len(send.Chain) {
			fail("bad_sig %d: the chain has the signatures 0 to %d", *bad, len(send.Chain)-1)
		}
	}
	checkWord("value", send.Value)
	return f
}

func byPlace(list []rejection) []rejection {
	slices.SortFunc(list, func(a, b rejection) int {
		return strings.Compare(fmt.Sprint(a.To, a.Round, a.Value, a.Chain), fmt.Sprint(b.To, b.Round, b.Value, b.Chain))
	})
	return list
}

// rejections checks, for every message that a correct process received, whether its chain counts.
func rejections(c sm.Config, k cast, log *trace.Log) []rejection {
	out := []rejection{}
	signer := sim.Ideal(0)
	for _, e := range log.Events {
		if k.bad(e.At) || e.Op != trace.Receive {
			continue
		}
		for _, sent := range lockstep.Open(e.Msg) {
			value, chain, why := sm.Judge(c, e.At, e.Peer, int(e.Msg.Seq), sent.Msg.Body, signer.Verify)
			if why == "" {
				continue
			}
			r := rejection{To: k.names[e.At], Round: int(e.Msg.Seq), Value: string(value)}
			for _, id := range chain {
				r.Chain = append(r.Chain, k.name(id))
			}
			out = append(out, r)
		}
	}
	return byPlace(out)
}

// name returns the name of a process, including one that does not exist.
func (c cast) name(id parley.ID) string {
	if int(id) < len(c.names) {
		return c.names[id]
	}
	return id.String()
}
