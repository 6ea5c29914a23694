package trace

import (
	"encoding/base64"
	"strconv"
)

// appendEvent appends the line of an event, as package encoding/json would write it.
func appendEvent(b []byte, e *Event) []byte {
	b = strconv.AppendUint(append(b, `{"id":`...), e.ID, 10)
	b = number(b, `,"cause":`, e.Cause)
	b = strconv.AppendInt(append(b, `,"t":`...), int64(e.Time), 10)
	b = append(append(b, `,"op":"`...), e.Op.String()...)
	b = strconv.AppendUint(append(b, `","at":`...), uint64(e.At), 10)
	b = number(b, `,"peer":`, uint64(e.Peer))
	b = number(b, `,"epoch":`, uint64(e.Epoch))
	b = number(b, `,"path":`, uint64(e.Path))
	b = number(b, `,"kind":`, uint64(e.Msg.Kind))
	b = number(b, `,"origin":`, uint64(e.Msg.Origin))
	b = number(b, `,"seq":`, e.Msg.Seq)
	b = number(b, `,"value":`, e.Msg.Value)
	if len(e.Msg.Body) > 0 {
		b = base64.StdEncoding.AppendEncode(append(b, `,"body":"`...), e.Msg.Body)
		b = append(b, '"')
	}
	b = number(b, `,"cut":`, uint64(e.Cut))
	return append(b, '}', '\n')
}

// number appends a field, unless it is 0.
func number(b []byte, name string, x uint64) []byte {
	if x == 0 {
		return b
	}
	return strconv.AppendUint(append(b, name...), x, 10)
}
