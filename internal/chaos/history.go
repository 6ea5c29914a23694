package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"parley/replica/keyvalue"
)

// verb is what an operation on the table does.
type verb int

const (
	get verb = iota
	put
	swap
	add
	remove
)

var verbs = [...]string{"get", "put", "swap", "add", "delete"}

// op is one operation on the table, from when a client asked until it was answered.
type op struct {
	client    int
	verb      verb
	key       string
	value     string // that is put
	version   uint64 // that is swapped
	by        int64  // that is added
	call, end time.Duration
	answer    keyvalue.Answer
	position  uint64
	known     bool // it was answered
}

// command is the operation in the words of the table.
func (o *op) command() []byte {
	switch o.verb {
	case put:
		return keyvalue.Put([]byte(o.key), []byte(o.value))
	case swap:
		return keyvalue.Swap([]byte(o.key), o.version, []byte(o.value))
	case add:
		return keyvalue.Add([]byte(o.key), o.by)
	case remove:
		return keyvalue.Delete([]byte(o.key))
	}
	return keyvalue.Get([]byte(o.key))
}

// history is all operations on the table.
type history struct {
	mu  sync.Mutex
	ops []*op
}

// began notes an operation that is asked for.
func (h *history) began(o *op) {
	h.mu.Lock()
	h.ops = append(h.ops, o)
	h.mu.Unlock()
}

// ended notes its answer.
func (h *history) ended(o *op, at time.Duration, a keyvalue.Answer, position uint64) {
	h.mu.Lock()
	o.end, o.answer, o.position, o.known = at, a, position, true
	h.mu.Unlock()
}

// all returns copies of all operations.
func (h *history) all() []op {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]op, len(h.ops))
	for i, o := range h.ops {
		out[i] = *o
	}
	return out
}

// content is what a key has.
type content struct {
	version uint64
	here    bool
	value   string
}

// content is what the answer to a get tells.
func (o *op) content() content {
	return content{o.answer.Version, o.answer.Status == keyvalue.Done, string(o.answer.Value)}
}

// apply carries an operation out on a key alone, and tells whether it may be answered as it
// was. It is written anew, so as to trust nothing of what it judges.
func (o op) apply(c content) (bool, content) {
	after, status, answered := c, keyvalue.Done, ""
	change := func(value string, here bool) { after = content{c.version + 1, here, value} }
	switch o.verb {
	case get:
		if !c.here {
			status = keyvalue.Missing
		}
		answered = c.value
	case put:
		change(o.value, true)
	case swap:
		if has := c.version; !c.here && o.version != 0 || c.here && o.version != has {
			status, answered = keyvalue.Changed, c.value
			break
		}
		change(o.value, true)
	case add:
		sum, ok := int64(0), true
		if c.here {
			_, err := fmt.Sscan(c.value, &sum)
			ok = err == nil
		}
		if !ok {
			status = keyvalue.NoNumber
			break
		}
		change(fmt.Sprint(sum+o.by), true)
		answered = after.value
	case remove:
		if !c.here {
			status = keyvalue.Missing
			break
		}
		change("", false)
	}
	if !o.known {
		return true, after
	}
	a := o.answer
	same := a.Status == status && (status == keyvalue.NoNumber || a.Version == after.version)
	if o.verb == get || o.verb == add || status == keyvalue.Changed {
		same = same && string(a.Value) == answered
	}
	return same, after
}

// model tells porcupine what a key is. Keys begin as they are given.
func model(begin map[string]content) porcupine.Model {
	type state struct {
		key string
		content
	}
	return porcupine.Model{
		Partition: func(ops []porcupine.Operation) [][]porcupine.Operation {
			of := make(map[string][]porcupine.Operation)
			var keys []string
			for _, o := range ops {
				key := o.Input.(op).key
				if of[key] == nil {
					keys = append(keys, key)
				}
				of[key] = append(of[key], o)
			}
			out := make([][]porcupine.Operation, len(keys))
			for i, key := range keys {
				out[i] = of[key]
			}
			return out
		},
		Init: func() any { return state{} },
		Step: func(s, input, _ any) (bool, any) {
			was, o := s.(state), input.(op)
			if was.key == "" {
				was = state{o.key, begin[o.key]}
			}
			ok, after := o.apply(was.content)
			return ok, state{o.key, after}
		},
	}
}

// linear tells of the first key of which the operations fit no order that agrees with
// their times, nil if there is none. What has no known outcome may have been done at any
// time since, or never, which is at the very end.
func linear(ops []op, begin map[string]content, limit time.Duration) error {
	m := model(begin)
	var in []porcupine.Operation
	for _, o := range ops {
		if !o.known && o.verb == get {
			continue
		}
		x := porcupine.Operation{ClientId: o.client, Input: o, Call: int64(o.call), Return: int64(o.end)}
		if !o.known {
			x.Return = math.MaxInt64
		}
		in = append(in, x)
	}
	until := time.Now().Add(limit)
	for _, part := range m.Partition(in) {
		one := m
		one.Partition = nil
		switch porcupine.CheckOperationsTimeout(one, part, max(time.Second, time.Until(until))) {
		case porcupine.Illegal:
			return fmt.Errorf("key %s: %d operations fit no order:\n%s", part[0].Input.(op).key, len(part), listed(part))
		case porcupine.Unknown:
			return fmt.Errorf("key %s: %d operations: no order was found within %v", part[0].Input.(op).key, len(part), limit)
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
		fmt.Fprintf(&b, "  %s\n", x.Input.(op))
	}
	return b.String()
}

func (o op) String() string {
	text := fmt.Sprintf("client %d, %v to %v: %s", o.client, o.call, o.end, verbs[o.verb])
	switch o.verb {
	case put:
		text += " " + o.value
	case swap:
		text += fmt.Sprintf(" %d %s", o.version, o.value)
	case add:
		text += fmt.Sprintf(" %d", o.by)
	}
	if !o.known {
		return text + ": unknown"
	}
	if err := o.answer.Status.Err(); err != nil {
		text += ": " + err.Error()
	}
	return fmt.Sprintf("%s: version %d, %q, position %d", text, o.answer.Version, o.answer.Value, o.position)
}

// ordered tells whether the positions of answers agree with their times: what was asked
// after an answer has a later position, and no two have the same.
func ordered(ops []op) error {
	var known []op
	for _, o := range ops {
		if o.known {
			known = append(known, o)
		}
	}
	byEnd := slices.Clone(known)
	slices.SortFunc(byEnd, func(a, b op) int { return int(a.end - b.end) })
	slices.SortFunc(known, func(a, b op) int { return int(a.call - b.call) })
	var last op // of those that had ended, the one with the greatest position
	k := 0
	at := make(map[uint64]op)
	for _, o := range known {
		for ; k < len(byEnd) && byEnd[k].end < o.call; k++ {
			if byEnd[k].position > last.position {
				last = byEnd[k]
			}
		}
		if o.position <= last.position {
			return fmt.Errorf("a later command has an earlier position:\n  %s\n  %s", last, o)
		}
		if other, is := at[o.position]; is {
			return fmt.Errorf("two commands have one position:\n  %s\n  %s", other, o)
		}
		at[o.position] = o
	}
	return nil
}
