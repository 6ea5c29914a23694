// Package views has code that is shared by the broadcasts that run in the views of membership/group, such as
// broadcast/timestamp. A view is a set of processes, the members, on which all processes agree. The package keeps
// vectors of acknowledgements, makes the parley.Protocol values of the broadcasts, and computes the promises for a
// run.
//
// Each member reports to the others how many messages of each member it has received. It sends these numbers as a
// vector, with each message and in acknowledgements. Links are FIFO, so a count covers all earlier messages. If a
// member lacks a message, it detects this when it receives the next vector from the message's sender. When all members
// have acknowledged a message, they can drop it.
//
// Source: stability from acknowledgement vectors, Birman, Schiper and Stephenson (1991).
package views

import (
	"fmt"
	"iter"
	"slices"

	"parley"
	"parley/agreement/ballot"
	"parley/broadcast/problem"
	"parley/membership/group"
)

// LayerSpec describes a layer that sends Data and Ack. The function data describes a Data message for readers, from
// the message and the content after its vector. It returns what the message is, or "" if the content is malformed,
// and the payload.
func LayerSpec(
	name string, layer func(self parley.ID, n int) group.Layer,
	data func(m parley.Msg, behind []byte) (what string, payload []byte),
) group.LayerSpec {
	explain := func(m parley.Msg) string {
		vec, behind, ok := ReadVector(nil, m.Body)
		switch {
		case m.Kind != Data && m.Kind != Ack:
			return "a message of no kind"
		case ok && m.Kind == Ack:
			return fmt.Sprintf("holds %d", vec)
		case ok:
			if what, payload := data(m, behind); what != "" {
				return fmt.Sprintf("%s, holds %d: %s", what, vec, parley.Printable(payload))
			}
		}
		return "a message that cannot be read"
	}
	return group.LayerSpec{
		Name: name, Kinds: []string{"", "DATA", "ACK"}, Requests: []parley.Kind{parley.Carried}, New: layer,
		Explain: func(_ parley.Env, m parley.Msg, _ func(parley.ID) string) iter.Seq[string] {
			return slices.Values([]string{explain(m)})
		},
	}
}

// Complete adds to the protocol of a group the properties and promises of its broadcast.
func Complete(
	p *parley.Protocol, c group.Config, properties []parley.Property, promises func(parley.RunConditions) []parley.Promise,
) {
	p.Properties = append(p.Properties, group.InLives(c, properties)...)
	ofViews := p.Promises
	p.Promises = func(a parley.RunConditions) []parley.Promise { return append(ofViews(a), promises(a)...) }
}

// Cost returns the cost of one broadcast when no other process sends: one message to n-1 others, and from each of
// these an acknowledgement to n-1 others. The broadcast takes two message delays.
func Cost(n, _ int) parley.Cost {
	others := uint64(n - 1)
	return parley.Cost{Rounds: 2, PerRound: []parley.Traffic{{Messages: others}, {Messages: others * others}}}
}

// Promises returns which properties of a broadcast hold, including Delivery. The properties in safe hold on links
// that keep the order, for the reason because. The properties in whole hold if no process joins: a process that joins
// does not deliver earlier messages. The properties in live hold if, in addition, no correct process is excluded and
// views can change.
func Promises(c group.Config, a parley.RunConditions, because string, safe, whole, live []string) []parley.Promise {
	c = c.WithDefaults()
	var out []parley.Promise
	lacks := ""
	say := func(properties []string) {
		for _, name := range properties {
			out = append(out, parley.Promised(name, because, lacks))
		}
	}
	if a.Network.Doubled || a.Network.Reordered {
		lacks = "a link doubled messages or changed their order"
	}
	say(safe)
	excluded := a.Processes.Suspected || a.Network.Lost || a.Network.Cut || a.Processes.Paused || a.Network.Late
	if lacks == "" && (a.Processes.Restarted || a.Processes.LostDisk || c.Return && excluded ||
		c.Initial != parley.Everyone(c.N)) {
		lacks = "a process that joins gets the state of a member, and continues from there"
	}
	say(whole)
	switch {
	case lacks != "":
	case excluded:
		lacks = "a process that is up may be excluded, and then receives nothing more"
	case ballot.Bound(a.N, a.Faulty) != nil || a.Processes.Minority || a.Network.Disconnected:
		lacks = "a view needs a majority of all processes, but fewer processes are up and connected"
	}
	say(live)
	return append(out, problem.Promise(a, problem.Delivery, ""))
}
