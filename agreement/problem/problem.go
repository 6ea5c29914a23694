// Package problem states the properties of three agreement problems. Byzantine agreement is agreement on the value of
// one process, the source. Consensus is agreement on one value that is computed from the values of all processes.
// Interactive consistency is agreement on the vector of all values. Other packages have the protocols.
//
// A value is a byte string of at most [MaxValue] bytes. A process gets its initial value by a Request of kind
// Propose. It announces its decision by delivering a message of kind Decide.
//
// # Decisions
//
// Agreement and validity are properties of the lieutenants, that is, of all processes except the source. The decision
// of the source does not count, as in the article (docs/explanation/sources.md). Motive: the worked cases of the
// article and the lecture use these definitions. Cost: a reader may not expect that with n = 3 and m = 1 validity
// breaks, but agreement holds: one correct lieutenant is left, which agrees with itself.
package problem

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"parley"
)

// MaxValue is the size of the largest value, in bytes. For a larger value, agree on its digest.
const MaxValue = 1024

// The names of the properties.
const (
	Agreement   = "agreement"
	Validity    = "validity"
	Termination = "termination"
	Integrity   = "integrity"
)

// Byzantine returns the properties of Byzantine agreement. Agreement is among the lieutenants, as in the article: the
// source knows its own value, and validity says whether the others decide on it. Consider three processes with one
// faulty lieutenant: the only correct lieutenant cannot disagree with another one, so validity breaks instead.
func Byzantine(source parley.ID) []parley.Property {
	return byzantine(source, source, "lieutenant", "lieutenants")
}

// ByzantineOfAll returns the same properties for protocols in which the source decides like all others. Then its
// decision counts, too.
func ByzantineOfAll(source parley.ID) []parley.Property {
	return byzantine(source, parley.All, "process", "processes")
}

// byzantine states the properties for all processes except but.
func byzantine(source, but parley.ID, who, all string) []parley.Property {
	return []parley.Property{
		agreed("value", but, who, all),
		{
			Name: Validity, Says: "if the source is correct, every correct " + who + " decides on its value",
			Mode: parley.Always,
			Check: func(h *parley.History) error {
				value, proposed := proposals(h)[source]
				if !proposed || h.Faulty.Has(source) {
					return nil
				}
				return decidedFor(h, value, but, false)
			},
			Vacuous: func(h *parley.History) string {
				if _, proposed := proposals(h)[source]; !proposed {
					return "the source was given no value"
				}
				if h.Faulty.Has(source) {
					return "the source is faulty"
				}
				return undecided(1, but, who, all)(h)
			},
		},
		termination, integrity,
	}
}

// ByzantineOrNothing returns weaker properties, for agreement without rounds: all processes decide, but they may
// decide on nothing, the empty value, although the source is correct. A process that restarts may announce its
// decision again.
func ByzantineOrNothing(source parley.ID) []parley.Property {
	valid, ends, once := parley.Property{Name: Validity, Mode: parley.Always}, termination, integrity
	valid.Says = "if the source is correct, every correct process decides on its value, or on nothing, shown as \"\""
	valid.Check = func(h *parley.History) error {
		if h.Faulty.Has(source) {
			return nil
		}
		return decidedFor(h, proposals(h)[source], parley.All, true)
	}
	valid.Vacuous = func(h *parley.History) string {
		if h.Faulty.Has(source) {
			return "the source is faulty"
		}
		return integrity.Vacuous(h)
	}
	ends.Says = "every correct process decides"
	once.Says = "no correct process decides twice without a restart in between"
	once.Check = func(h *parley.History) error { return Once(h, parley.Everyone(h.N).Minus(h.Faulty)) }
	return []parley.Property{agreed("value", parley.All, "process", "processes"), valid, ends, once}
}

// decidedFor returns an error if a correct process other than but decided on something else than the value of a
// correct source. The empty value is allowed if orNothing is true.
func decidedFor(h *parley.History, value []byte, but parley.ID, orNothing bool) error {
	decided := Decisions(h)
	for id := range parley.ID(h.N) {
		v, done := decided[id]
		if done && id != but && !bytes.Equal(v, value) && (!orNothing || len(v) > 0) {
			return fmt.Errorf("%s decided %s, but the correct source sent %s",
				h.Name(id), parley.Printable(v), parley.Printable(value))
		}
	}
	return nil
}

// Once returns an error if one of these processes decides twice without a restart in between.
func Once(h *parley.History, who parley.Set) error {
	last := make(map[parley.ID]uint64) // when a process last decided
	for _, d := range h.Deliveries {
		if d.Msg.Kind != parley.Decide || !who.Has(d.At) {
			continue
		}
		before, again := last[d.At]
		back := func(r parley.ExternalEvent) bool { return r.At == d.At && before < r.Order && r.Order < d.Order }
		if again && !slices.ContainsFunc(h.Restarts, back) {
			return fmt.Errorf("%s decided twice", h.Name(d.At))
		}
		last[d.At] = d.Order
	}
	return nil
}

// Consensus returns the properties of consensus.
func Consensus() []parley.Property {
	return []parley.Property{
		agreed("value", parley.All, "process", "processes"),
		{
			Name: Validity, Says: "if all correct processes start with the same value, they decide on it",
			Mode:    parley.Always,
			Check:   func(h *parley.History) error { _, err := unanimous(h); return err },
			Vacuous: func(h *parley.History) string { vacuous, _ := unanimous(h); return vacuous },
		},
		termination, integrity,
	}
}

// undecided returns the Vacuous of a property that demands something once the given number of
// correct processes, without but, have decided.
func undecided(number int, but parley.ID, who, all string) func(h *parley.History) string {
	why := "fewer than " + strconv.Itoa(number) + " correct " + all + " decide"
	switch {
	case number == 1:
		why = "no correct " + who + " decides"
	case but != parley.All:
		why += ", not counting the source"
	}
	return func(h *parley.History) string {
		decided := Decisions(h)
		if delete(decided, but); len(decided) < number {
			return why
		}
		return ""
	}
}

// unanimous checks the validity of consensus: it returns why it demands nothing, or what
// breaks it.
func unanimous(h *parley.History) (vacuous string, broken error) {
	var common []byte
	first := true
	proposed, decided := proposals(h), Decisions(h)
	for id := range parley.ID(h.N) {
		v, given := proposed[id]
		if !given || h.Faulty.Has(id) {
			continue
		}
		if !first && !bytes.Equal(v, common) {
			return "correct processes start with different values", nil
		}
		common, first = v, false
	}
	if first {
		return "no correct process was given a value", nil
	}
	if len(decided) == 0 {
		return "no correct process decides", nil
	}
	for id := range parley.ID(h.N) {
		if v, done := decided[id]; done && !bytes.Equal(v, common) {
			return "", fmt.Errorf("%s decided %s, but all correct processes started with %s",
				h.Name(id), parley.Printable(v), parley.Printable(common))
		}
	}
	return "", nil
}

var termination = parley.Property{
	Name: Termination, Says: "every correct process decides by the end of the last round", Mode: parley.Eventually,
	Check: func(h *parley.History) error {
		if !h.Over {
			return nil
		}
		decided := Decisions(h)
		for id := range parley.Everyone(h.N).Minus(h.Faulty).All() {
			if _, done := decided[id]; !done {
				return fmt.Errorf("%s did not decide", h.Name(id))
			}
		}
		return nil
	},
}

var integrity = parley.Property{
	Name: Integrity, Says: "no correct process decides twice", Mode: parley.Always,
	Check: func(h *parley.History) error {
		var once parley.Set
		for _, d := range h.Deliveries {
			if d.Msg.Kind == parley.Decide && h.Correct(d.At) && !once.Add(d.At) {
				return fmt.Errorf("%s decided twice", h.Name(d.At))
			}
		}
		return nil
	},
	Vacuous: undecided(1, parley.All, "process", "processes"),
}

// agreed returns the property that correct processes other than but agree.
func agreed(what string, but parley.ID, who, all string) parley.Property {
	return parley.Property{
		Name: Agreement, Says: "all correct " + all + " decide on the same " + what, Mode: parley.Always,
		Check: func(h *parley.History) error {
			var first *parley.ExternalEvent
			for i := range h.Deliveries {
				d := &h.Deliveries[i]
				switch {
				case d.Msg.Kind != parley.Decide || !h.Correct(d.At) || d.At == but:
				case first == nil:
					first = d
				case !bytes.Equal(first.Msg.Body, d.Msg.Body):
					return fmt.Errorf("%s decided %s and %s decided %s",
						h.Name(first.At), parley.Printable(first.Msg.Body), h.Name(d.At), parley.Printable(d.Msg.Body))
				}
			}
			return nil
		},
		Vacuous: undecided(2, but, who, all),
	}
}

// Decisions returns each correct process's first decision.
func Decisions(h *parley.History) map[parley.ID][]byte {
	out := firsts(h.Deliveries, parley.Decide)
	for id := range h.Faulty.All() {
		delete(out, id)
	}
	return out
}

func proposals(h *parley.History) map[parley.ID][]byte { return firsts(h.Requests, parley.Propose) }

// firsts returns the body of the first message of a kind at each process.
func firsts(list []parley.ExternalEvent, kind parley.Kind) map[parley.ID][]byte {
	out := make(map[parley.ID][]byte)
	for _, x := range list {
		if _, again := out[x.At]; x.Msg.Kind == kind && !again {
			out[x.At] = x.Msg.Body
		}
	}
	return out
}
