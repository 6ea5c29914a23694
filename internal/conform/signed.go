package conform

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/lockstep"
	"parley/sim"
	"parley/trace"
)

// signedCase is one Byzantine agreement with signed messages.
type signedCase struct {
	head
	N           int          `json:"n"`
	M           int          `json:"m"`
	Processes   []string     `json:"processes"`
	Source      string       `json:"source"`
	SourceValue string       `json:"source_value"`
	Default     string       `json:"default"`
	Faulty      []string     `json:"faulty"`
	Sends       []signedSend `json:"sends"`
}

// signedSend is a message of a faulty process: a value with a chain of
// signatures, of which one may be bad.
type signedSend struct {
	Round  int      `json:"round"`
	From   string   `json:"from"`
	To     string   `json:"to"`
	Value  string   `json:"value"`
	Chain  []string `json:"chain"`
	BadSig *int     `json:"bad_sig"`
}

type signedExpect struct {
	V                map[string][]string `json:"V"`
	Decisions        map[string]string   `json:"decisions"`
	MessagesPerRound []uint64            `json:"honest_messages_per_round"`
	Agreement        *bool               `json:"agreement"`
	Validity         json.RawMessage     `json:"validity"`
	Rejected         []rejection         `json:"rejected"`
}

// rejection is a message that a correct process did not accept. The reason is
// for people: only that there is one is compared.
type rejection struct {
	To     string   `json:"to"`
	Round  int      `json:"round"`
	Value  string   `json:"value"`
	Chain  []string `json:"chain"`
	Reason string   `json:"reason"`
}

func signed(raw []byte, report func(key string, want, got any)) error {
	var c signedCase
	if err := strict(raw, &c); err != nil {
		return err
	}
	var want signedExpect
	if err := strict(c.Expect, &want); err != nil {
		return fmt.Errorf("expect: %w", err)
	}
	k, config, sends, err := c.prepare()
	if err != nil {
		return err
	}
	rounds := sm.Rounds(config)
	rounds.Lies = sm.Script(config, sends)
	p := lockstep.Of(rounds, lockstep.Simulated)
	s, log := k.run(p, map[parley.ID]string{config.Source: c.SourceValue})
	decisions := k.decisions(s, config.Source)

	for _, name := range keys(want.V) {
		id, err := k.asCorrect(name)
		if err != nil {
			return fmt.Errorf("expect: V: %w", err)
		}
		report("V."+name, want.V[name], accepted(s.Machine(id), s.Now()))
	}
	if want.Decisions != nil {
		report("decisions", want.Decisions, decisions)
	}
	if want.MessagesPerRound != nil {
		sent := messages(s.Stats.Sent, c.M+1)
		report("honest_messages_per_round", trimmed(want.MessagesPerRound, sent), sent)
	}
	if want.Agreement != nil {
		report("agreement", *want.Agreement, alike(decisions))
	}
	if want.Validity != nil {
		report("validity", want.Validity, k.validity(config.Source, c.SourceValue, decisions))
	}
	if want.Rejected != nil {
		report("rejected", withoutReasons(want.Rejected), rejections(config, k, log))
	}
	return nil
}

// trimmed brings a list of counts, in which a tail of empty rounds may be left
// out, to the length of another.
func trimmed(want, got []uint64) []uint64 {
	out := slices.Clone(want)
	for len(out) < len(got) {
		out = append(out, 0)
	}
	return out
}

func (c signedCase) prepare() (cast, sm.Config, []sm.Forged, error) {
	config := sm.Config{Instance: problem.Instance{N: c.N, M: c.M, Default: []byte(c.Default)}}
	k, err := newCast(c.N, c.Processes, c.Faulty)
	if err != nil {
		return k, config, nil, err
	}
	if c.M < 0 || c.M > c.N-2 {
		return k, config, nil, errFaults
	}
	if config.Source, err = k.id(c.Source); err != nil {
		return k, config, nil, fmt.Errorf("source: %w", err)
	}
	var sends []sm.Forged
	for _, send := range c.Sends {
		f := sm.Forged{Round: send.Round, Value: []byte(send.Value), BadSig: -1}
		if f.From, err = k.id(send.From); err == nil {
			if f.To, err = k.id(send.To); err == nil {
				f.Chain, err = k.ids(send.Chain)
			}
		}
		if err == nil {
			err = send.check(c.M, k, f)
		}
		if err != nil {
			return k, config, nil, fmt.Errorf("sends: %w", err)
		}
		if send.BadSig != nil {
			f.BadSig = *send.BadSig
		}
		sends = append(sends, f)
	}
	for _, v := range []string{c.SourceValue, c.Default} {
		if err := checkWord(v); err != nil {
			return k, config, nil, err
		}
	}
	return k, config, sends, nil
}

func (send signedSend) check(m int, k cast, f sm.Forged) error {
	_, bad := k.faulty[f.From]
	switch {
	case !bad:
		return fmt.Errorf("from %q: it is correct and follows the algorithm", send.From)
	case send.Round < 0 || send.Round > m:
		return fmt.Errorf("round %d: allowed are 0 to %d", send.Round, m)
	case f.From == f.To:
		return fmt.Errorf("%q sends to itself", send.From)
	case len(send.Chain) == 0:
		return fmt.Errorf("a chain has at least one signer")
	case send.BadSig != nil && (*send.BadSig < 0 || *send.BadSig >= len(send.Chain)):
		return fmt.Errorf("bad_sig %d: the chain has the signatures 0 to %d", *send.BadSig, len(send.Chain)-1)
	}
	return checkWord(send.Value)
}

// accepted reads the set V of a machine.
func accepted(m parley.Machine, now parley.Tick) []string {
	out := []string{}
	for _, v := range parley.Show(m, now) {
		if strings.HasPrefix(v.Name, "rounds.V[") {
			out = append(out, v.Value)
		}
	}
	slices.Sort(out)
	return out
}

func withoutReasons(list []rejection) []rejection {
	out := []rejection{}
	for _, r := range list {
		r.Reason = ""
		out = append(out, r)
	}
	return byPlace(out)
}

func byPlace(list []rejection) []rejection {
	slices.SortFunc(list, func(a, b rejection) int {
		return strings.Compare(fmt.Sprint(a.To, a.Round, a.Value, a.Chain), fmt.Sprint(b.To, b.Round, b.Value, b.Chain))
	})
	return list
}

// rejections asks, for every message that a correct process received, whether
// its chain counts.
func rejections(c sm.Config, k cast, log *trace.Log) []rejection {
	out := []rejection{}
	signer := sim.Ideal(0)
	for _, e := range log.Events {
		if _, bad := k.faulty[e.At]; bad || e.Op != trace.Receive {
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

// name is the name of a process, also of one that is not there.
func (c cast) name(id parley.ID) string {
	if int(id) < len(c.names) {
		return c.names[id]
	}
	return id.String()
}
