package cluster

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"parley/internal/lists"
)

// digest returns a hash of the configuration that all nodes must share. Nodes with different digests refuse each
// other.
func (c Config) digest() [sha256.Size]byte {
	h := sha256.New()
	for _, text := range c.alike() {
		_ = binary.Write(h, binary.BigEndian, uint32(len(text)))
		h.Write([]byte(text))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// alike lists the configuration that all nodes must share. It names every option and no whole struct, because a
// new field of a struct must not refuse a node of the previous version. A new shared option is appended at the
// end, and only if it is not zero: nodes can then be upgraded one by one, and use the option when all know it.
//
// This is version 1 of the list. A change that must keep older nodes out gets a line of its own, as some have
// below.
func (c Config) alike() (list []string) {
	add := func(format string, values ...any) { list = append(list, fmt.Sprintf(format, values...)) }
	for _, m := range c.Members {
		list = append(list, m.Name, string(m.Signer))
	}
	add("groups, by majorities of all") // refuses nodes that decide on views in another way
	for _, g := range c.Groups {
		list = append(list, g.Name, g.Level.String())
	}
	if c.views().Liars > 0 && len(c.Tables) > 0 { // refuses nodes that do not report what they have
		add("tables whose copies are compared in each view")
	}
	add("tables")
	for _, t := range c.Tables {
		t = t.WithDefaults()
		list = append(list, t.Name, strings.TrimSpace(fmt.Sprintf("%v %d %s", t.Level, t.Sessions, t.State)))
	}
	times, clocks := c.Times.WithDefaults(), c.Clocks
	add("%t %d %v {%v %v %v %v} {%v %d %v} %v", c.Durable, c.M, c.Round,
		times.Beat, times.Suspect, times.Flush, times.Retry, clocks.Error, clocks.Drift, clocks.Period, c.Commit.Protocol)
	if k, usual := c.Commit.WithDefaults(), (CommitConfig{}).WithDefaults(); k.Protocol == Agreed &&
		(k.Open != usual.Open || k.Remember != usual.Remember) { // they decide which transactions are accepted
		add("%d %d", k.Open, k.Remember)
	}
	byzantine := slices.ContainsFunc(c.Groups, func(g GroupConfig) bool { return g.Level == Byzantine }) ||
		slices.ContainsFunc(c.Tables, func(t TableConfig) bool { return t.Level == Byzantine })
	if byzantine || c.Commit.Protocol == Agreed { // refuses nodes that make Byzantine orders in timed rounds
		add("orders by cuts")
	}
	if c.Links != Streams {
		add("%v", c.Links)
	}
	if len(c.Agreements) > 0 {
		names := lists.Of(c.Agreements, func(a AgreementConfig) string { return fmt.Sprintf("%v m=%d", a.Algorithm, a.M) })
		add("[%s]", strings.Join(names, " "))
	}
	return list
}
