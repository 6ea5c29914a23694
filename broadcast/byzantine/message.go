package byzantine

import (
	"fmt"
	"strings"

	"parley"
	"parley/agreement/tetra"
)

// The messages. Those of package tetra come first: Seq is the slot, Value the view and the phase, see slot.run. Body
// is a cut in PROPOSE, a report in ENTER, and otherwise the digest of a cut.
const (
	// Batch carries a batch, in Body.
	Batch parley.Kind = tetra.Decided + 1 + iota
	// Fetch requests batches of lane Origin: the batch of number Seq with the digest in Body, and those before it down
	// to number Value. Seq 0 requests the cut with the digest in Body, for slot Value.
	Fetch
	// Cut carries a cut of slot Seq, in Body.
	Cut
	// Tips says which batches its sender holds, in Body: a cut. It is sent if a batch waits for long. If Value is 1, it
	// answers the Tips of an owner.
	Tips
	// Ask requests the decisions of slots from Seq on, and the receiver's own batches that are not ordered.
	Ask
	// Answer carries the decisions of slots from Seq on: each cut with its length.
	Answer
	// Snapshot answers Ask, too: the checkpoint after slot Seq, in Body. The receiver takes it over if it gets no further
	// otherwise.
	Snapshot
	// Knock asks for admission number Seq, in the life of name Value. Its sender restarted without its state.
	Knock
)

// The indications.
const (
	// Out indicates that this process takes no part until it indicates Admitted.
	Out parley.Kind = parley.Indication + 0x38 + iota
	// Admitted indicates that this process takes part again after a restart: all deliveries that it has kept, or that
	// are older than its admission, came before. Value is the life in which it was admitted, 0 if it has its state.
	Admitted
	// Skipped indicates that the next delivery is the one after position Seq. The process missed the deliveries before
	// it, and the others do not keep them. Its own requests may be among them. Admitted follows if it takes part.
	Skipped
	// Repeats indicates that this process has restarted, and delivers again what it has kept: everything after position
	// Seq. A process without its state has kept nothing, and fetches what the others have kept.
	Repeats
)

// The timers.
const (
	viewTimer parley.Timer = 1 + iota
	lookTimer              // looks for what waits for long, see look
)

// The types of log records. A record has its type, a slot, which is 0 if it has none, and a body.
const (
	batchRecord  = 1 + iota
	cutRecord    // a cut
	slotRecord   // a record of an agreement
	ledgerRecord // a checkpoint that was adopted
	memberRecord // this process takes part: it is no longer joining
)

// mostSlot is greater than every slot.
const mostSlot = 1 << 40

// explain writes a message for people. A digest is shortened to its first four bytes.
func explain(n int, m parley.Msg, name func(parley.ID) string) string {
	switch m.Kind {
	case Batch:
		source, b, ok := readBatch(m.Body, n)
		if !ok {
			return "a batch that cannot be read"
		}
		return fmt.Sprintf("batch %d of %s: %s", b.number, name(source), contents(b, n, name))
	case Fetch:
		if m.Seq == 0 {
			return fmt.Sprintf("send me the cut %s of slot %d", short(m.Body), m.Value)
		}
		return fmt.Sprintf("send me batches %d to %d of %s", m.Value, m.Seq, name(m.Origin))
	case Cut:
		return fmt.Sprintf("cut of slot %d: %s", m.Seq, tipsOf(m.Body, n, name))
	case Tips:
		return "holds " + tipsOf(m.Body, n, name)
	case Ask:
		return fmt.Sprintf("send me the decisions from slot %d on", m.Seq)
	case Answer:
		return fmt.Sprintf("the decisions from slot %d on", m.Seq)
	case Snapshot:
		return fmt.Sprintf("the checkpoint after slot %d", m.Seq)
	case Knock:
		return fmt.Sprintf("admit me, admission %d, life %d", m.Seq, m.Value)
	}
	text := fmt.Sprintf("slot %d", m.Seq)
	if view := m.Value >> viewShift; view > 0 {
		text += fmt.Sprintf(", view %d", view)
	}
	switch m.Kind {
	case tetra.Wish, tetra.Enter:
		return text
	case tetra.Witness:
		text += ", claim of " + name(m.Origin)
	case tetra.Vote:
		text += fmt.Sprintf(", phase %d", m.Value&(1<<viewShift-1))
	}
	switch {
	case len(m.Body) == 0:
		return text + ": nothing"
	case m.Kind == tetra.Proposal:
		return text + ": " + tipsOf(m.Body, n, name)
	}
	return text + ": cut " + short(m.Body)
}

// contents lists the requests and welcomes of a batch.
func contents(b batch, n int, name func(parley.ID) string) string {
	var items []string
	b.visit(n, func(request []byte) { items = append(items, parley.Printable(request)) },
		func(w welcome) {
			items = append(items, fmt.Sprintf("admit %s, admission %d, life %d", name(w.who), w.number, w.name))
		})
	return strings.Join(items, ", ")
}

// tipsOf lists the batches of a cut.
func tipsOf(body []byte, n int, name func(parley.ID) string) string {
	c, ok := readCut(body, n)
	if !ok {
		return "a cut that cannot be read"
	}
	var items []string
	for i, t := range c {
		if t.number > 0 {
			items = append(items, fmt.Sprintf("%s up to %d", name(parley.ID(i)), t.number))
		}
	}
	if items == nil {
		return "no batch"
	}
	return strings.Join(items, ", ")
}

func short(digest []byte) string { return fmt.Sprintf("%x", digest[:min(4, len(digest))]) }
