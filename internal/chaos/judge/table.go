// Package judge checks the answers and deliveries of a cluster: whether the answers of a table are linearizable,
// and whether all nodes deliver the same payloads in the same order.
package judge

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"parley/replica/keyvalue"
)

// Verb is the kind of an operation on the table.
type Verb int

// The verbs.
const (
	Get Verb = iota
	Put
	Swap
	Add
	Remove
)

var verbs = [...]string{"get", "put", "swap", "add", "delete"}

// Op is one operation on the table, from the client's call to the answer.
type Op struct {
	Client    int
	Verb      Verb
	Key       string
	Value     string // the value to put
	Version   uint64 // the version to swap
	By        int64  // the number to add
	Call, End time.Duration
	Answer    keyvalue.Answer
	Position  uint64
	Known     bool // it was answered
}

// Command returns the operation as a command of the table.
func (o *Op) Command() []byte {
	switch o.Verb {
	case Put:
		return keyvalue.Put([]byte(o.Key), []byte(o.Value))
	case Swap:
		return keyvalue.Swap([]byte(o.Key), o.Version, []byte(o.Value))
	case Add:
		return keyvalue.Add([]byte(o.Key), o.By)
	case Remove:
		return keyvalue.Delete([]byte(o.Key))
	}
	return keyvalue.Get([]byte(o.Key))
}

// History holds all operations on the table.
type History struct {
	mu  sync.Mutex
	ops []*Op
}

// Began records the call of an operation.
func (h *History) Began(o *Op) {
	h.mu.Lock()
	h.ops = append(h.ops, o)
	h.mu.Unlock()
}

// Ended records the answer of an operation.
func (h *History) Ended(o *Op, at time.Duration, a keyvalue.Answer, position uint64) {
	h.mu.Lock()
	o.End, o.Answer, o.Position, o.Known = at, a, position, true
	h.mu.Unlock()
}

// All returns copies of all operations.
func (h *History) All() []Op {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]Op, len(h.ops))
	for i, o := range h.ops {
		out[i] = *o
	}
	return out
}

// Answered returns the number of answered operations.
func Answered(ops []Op) (n int) {
	for _, o := range ops {
		if o.Known {
			n++
		}
	}
	return n
}

// Content is the state of a key.
type Content struct {
	version uint64
	here    bool
	value   string
}

// Content returns the state of the key according to the answer of a get.
func (o *Op) Content() Content {
	return Content{o.Answer.Version, o.Answer.Status == keyvalue.Done, string(o.Answer.Value)}
}

// apply applies an operation to a single key, and reports whether its actual answer is possible. It is an independent
// implementation, so as to trust nothing of what it judges.
func (o Op) apply(c Content) (bool, Content) {
	after, status, answered := c, keyvalue.Done, ""
	change := func(value string, here bool) { after = Content{c.version + 1, here, value} }
	switch o.Verb {
	case Get:
		if !c.here {
			status = keyvalue.Missing
		}
		answered = c.value
	case Put:
		change(o.Value, true)
	case Swap:
		if has := c.version; !c.here && o.Version != 0 || c.here && o.Version != has {
			status, answered = keyvalue.Changed, c.value
			break
		}
		change(o.Value, true)
	case Add:
		sum, ok := int64(0), true
		if c.here {
			_, err := fmt.Sscan(c.value, &sum)
			ok = err == nil
		}
		if !ok {
			status = keyvalue.NoNumber
			break
		}
		change(fmt.Sprint(sum+o.By), true)
		answered = after.value
	case Remove:
		if !c.here {
			status = keyvalue.Missing
			break
		}
		change("", false)
	}
	if !o.Known {
		return true, after
	}
	a := o.Answer
	same := a.Status == status && (status == keyvalue.NoNumber || a.Version == after.version)
	if o.Verb == Get || o.Verb == Add || status == keyvalue.Changed {
		same = same && string(a.Value) == answered
	}
	return same, after
}

// model describes a key to porcupine. begin has the initial states of keys.
func model(begin map[string]Content) porcupine.Model {
	type state struct {
		key string
		Content
	}
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, input, _ any) (bool, any) {
			was, o := s.(state), input.(Op)
			if was.key == "" {
				was = state{o.Key, begin[o.Key]}
			}
			ok, after := o.apply(was.Content)
			return ok, state{o.Key, after}
		},
	}
}

// Linear returns an error about the first key whose operations fit no order that agrees with their times, or nil if
// there is none. An operation with an unknown outcome may have taken effect at any time since its call, or never,
// which is the same as at the very end.
func Linear(ops []Op, begin map[string]Content, limit time.Duration) error {
	m := model(begin)
	of := make(map[string][]porcupine.Operation)
	for _, o := range ops {
		if !o.Known && o.Verb == Get {
			continue
		}
		x := porcupine.Operation{ClientId: o.Client, Input: o, Call: int64(o.Call), Return: int64(o.End)}
		if !o.Known {
			x.Return = math.MaxInt64
		}
		of[o.Key] = append(of[o.Key], x)
	}
	until := time.Now().Add(limit)
	for _, key := range slices.Sorted(maps.Keys(of)) {
		part := of[key]
		switch porcupine.CheckOperationsTimeout(m, part, max(time.Second, time.Until(until))) {
		case porcupine.Illegal:
			return fmt.Errorf("key %s: %d operations fit no order:\n%s", key, len(part), listed(part))
		case porcupine.Unknown:
			return fmt.Errorf("key %s: %d operations: no order was found within %v", key, len(part), limit)
		}
	}
	return nil
}

// listed prints operations in the order of their calls.
func listed(part []porcupine.Operation) string {
	var b strings.Builder
	slices.SortFunc(part, func(x, y porcupine.Operation) int { return int(x.Call - y.Call) })
	for i, x := range part {
		if i == 400 {
			fmt.Fprintf(&b, "  and %d more\n", len(part)-i)
			break
		}
		fmt.Fprintf(&b, "  %s\n", x.Input.(Op))
	}
	return b.String()
}

func (o Op) String() string {
	text := fmt.Sprintf("client %d, %v to %v: %s", o.Client, o.Call, o.End, verbs[o.Verb])
	switch o.Verb {
	case Put:
		text += " " + o.Value
	case Swap:
		text += fmt.Sprintf(" %d %s", o.Version, o.Value)
	case Add:
		text += fmt.Sprintf(" %d", o.By)
	}
	if !o.Known {
		return text + ": unknown"
	}
	if err := o.Answer.Status.Err(); err != nil {
		text += ": " + err.Error()
	}
	return fmt.Sprintf("%s: version %d, %q, position %d", text, o.Answer.Version, o.Answer.Value, o.Position)
}

// Ordered returns an error if the positions of answers contradict their times: an operation called after an answer
// must have a later position, and no two may have the same.
func Ordered(ops []Op) error {
	var known []Op
	for _, o := range ops {
		if o.Known {
			known = append(known, o)
		}
	}
	byEnd := slices.Clone(known)
	slices.SortFunc(byEnd, func(a, b Op) int { return int(a.End - b.End) })
	slices.SortFunc(known, func(a, b Op) int { return int(a.Call - b.Call) })
	var last Op // of those that had ended, the one with the greatest position
	k := 0
	at := make(map[uint64]Op)
	for _, o := range known {
		for ; k < len(byEnd) && byEnd[k].End < o.Call; k++ {
			if byEnd[k].Position > last.Position {
				last = byEnd[k]
			}
		}
		if o.Position <= last.Position {
			return fmt.Errorf("a later command has an earlier position:\n  %s\n  %s", last, o)
		}
		if other, is := at[o.Position]; is {
			return fmt.Errorf("two commands have one position:\n  %s\n  %s", other, o)
		}
		at[o.Position] = o
	}
	return nil
}
