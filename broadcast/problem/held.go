package problem

import (
	"fmt"
	"strings"

	"parley"
)

// Held describes a message that waits, for [parley.Vars.Derive]. A payload that is no text is described by the
// message's number.
func Held(from parley.ID, seq uint64, body []byte, waits string) parley.Variable {
	x := parley.Variable{Name: "waits", Kind: parley.HeldMessage, From: from, Value: parley.Printable(body), Waits: waits}
	if strings.HasPrefix(x.Value, "0x") {
		x.Value = fmt.Sprintf("#%d", seq)
	}
	return x
}

// Missing describes the messages of a sender from one number up to another one, as in "message 2 of P1". It returns
// "" if there are none.
func Missing(sender string, delivered, last uint64) string {
	switch {
	case last <= delivered:
		return ""
	case last == delivered+1:
		return fmt.Sprintf("message %d of %s", last, sender)
	}
	return fmt.Sprintf("messages %d to %d of %s", delivered+1, last, sender)
}
