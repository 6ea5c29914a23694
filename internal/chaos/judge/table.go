// Package judge tells whether what the nodes of a cluster answered and delivered fits together: whether the
// answers of a table are linearizable, and whether all nodes deliver the same in the same order.
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

// Verb is what an operation on the table does.
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

// Op is one operation on the table, from when a client asked until it was answered.
type Op struct {
	Client    int
	Verb      Verb
	Key       string
	Value     string // that is put
	Version   uint64 // that is swapped
	By        int64  // that is added
	Call, End time.Duration
	Answer    keyvalue.Answer
	Position  uint64
	Known     bool // it was answered
}

// Command is the operation in the words of the table.
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

// History is all operations on the table.
type History struct {
	mu  sync.Mutex
	ops []*Op
}

// Began notes an operation that is asked for.
func (h *History) Began(o *Op) {
	h.mu.Lock()
	h.ops = append(h.ops, o)
	h.mu.Unlock()
}

// Ended notes its answer.
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

// Answered counts the operations that were answered.
func Answered(ops []Op) (n int) {
	for _, o := range ops {
		if o.Known {
			n++
		}
	}
	return n
}

// Content is what a key has.
type Content struct {
	version uint64
	here    bool
	value   string
}

// Content is what the answer to a get tells.
func (o *Op) Content() Content {
	return Content{o.Answer.Version, o.Answer.Status == keyvalue.Done, string(o.Answer.Value)}
}

// apply carries an operation out on a key alone, and tells whether it may be answered as it
// was. It is written anew, so as to trust nothing of what it judges.
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

// model tells porcupine what a key is. Keys begin as they are given.
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

// Linear tells of the first key of which the operations fit no order that agrees with
// their times, nil if there is none. What has no known outcome may have been done at any
// time since, or never, which is at the very end.
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

// listed shows operations, in the order in which they were asked.
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

// Ordered tells whether the positions of answers agree with their times: what was asked
// after an answer has a later position, and no two have the same.
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
