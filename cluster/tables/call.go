package tables

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"parley"
	"parley/cluster/kernel"
	"parley/replica/rsm"
)

// Commands go to the machine in packs: one message of it has all that were asked for
// while earlier packs of this node were under way.

// callName tells commands in sessions apart.
type callName struct{ session, number uint64 }

// call is one command from when it is asked until it is answered. All but done is under the
// table's mutex until done is closed.
type call struct {
	callName
	command []byte
	sent    bool
	waiters int
	done    chan struct{}
	reply   rsm.Reply
	err     error
}

// Open opens a session, under whose number commands can be asked that are carried out once
// however often they are asked.
func (t *Table) Open(ctx context.Context) (session uint64, err error) { return t.OpenFor(ctx, "") }

// OpenFor is Open in the name of a client of this application. When more sessions are open than the
// table remembers, or their answers take too much room, the client who has most loses the one that
// was silent the longest. All sessions without a name count as one client's. Of a name that is
// longer than [service.MaxOwner] bytes a hash counts.
func (t *Table) OpenFor(ctx context.Context, client string) (session uint64, err error) {
	if err := t.writes(); err != nil {
		return 0, err
	}
	if len(client) > rsm.MaxOwner {
		h := sha256.Sum256([]byte(client))
		client = hex.EncodeToString(h[:])
	}
	r, err := t.ask(ctx, callName{}, []byte(client))
	if err != nil {
		return 0, err
	}
	return rsm.Client(r.Position), nil
}

// Do has a command carried out, and returns the answer with the command's place among all.
// The commands of a session are numbered from 1 on. One that is asked again, at any node,
// gets the answer of before, until a later one of its session is carried out. Ask the next
// one only when the last one is answered or given up: what was overtaken is never done.
func (t *Table) Do(ctx context.Context, session, number uint64, command []byte) (
	answer []byte, position uint64, err error,
) {
	if rsm.Client(session) != session || number == 0 || number >= 1<<63 {
		return nil, 0, fmt.Errorf("%w: no number of a session and of its command: %d, %d", kernel.ErrRefused, session, number)
	}
	if err := t.writes(); err != nil {
		return nil, 0, err
	}
	r, err := t.ask(ctx, callName{session, number}, command)
	if err != nil {
		return nil, 0, err
	}
	switch r.Status {
	case rsm.Applied:
		return r.Answer, r.Position, nil
	case rsm.Old:
		return nil, 0, fmt.Errorf("%w: %w", kernel.ErrUnknown, errOvertaken)
	}
	return nil, 0, fmt.Errorf("%w, and %w", ErrExpired, kernel.ErrUnknown)
}

// Query has a command carried out that changes nothing. It needs no session.
func (t *Table) Query(ctx context.Context, command []byte) (answer []byte, position uint64, err error) {
	r, err := t.ask(ctx, callName{0, 1}, command)
	return r.Answer, r.Position, err
}

// writes tells why the table takes no command that changes something, if it does not. Those that change
// nothing are written too, but are short.
func (t *Table) writes() error {
	if !t.k.Views.Durable {
		return nil
	}
	return t.k.HasRoom()
}

// ask puts a command among those that wait, and waits for its answer.
func (t *Table) ask(ctx context.Context, name callName, command []byte) (rsm.Reply, error) {
	if err := t.k.Takes(false); err != nil {
		return rsm.Reply{}, err
	}
	if len(command) > MaxCommand {
		return rsm.Reply{}, fmt.Errorf("%w: a command of %d bytes: at most %d are allowed", kernel.ErrRefused,
			len(command), MaxCommand)
	}
	select {
	case t.slots <- struct{}{}:
	default:
		select {
		case t.slots <- struct{}{}:
		case <-ctx.Done():
			return rsm.Reply{}, fmt.Errorf("%w: too many commands wait: %w", kernel.ErrRefused, context.Cause(ctx))
		}
	}
	c, err := t.enter(name, command)
	if err != nil {
		return rsm.Reply{}, err
	}
	select {
	case <-c.done:
		return c.reply, c.err
	case <-ctx.Done():
		return t.leave(c, context.Cause(ctx))
	}
}

// enter makes a call, or finds that of who has asked the same and was not answered. It
// takes over a slot.
func (t *Table) enter(name callName, command []byte) (*call, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refuses(); err != nil {
		<-t.slots
		return nil, err
	}
	if c := t.calls[name]; c != nil {
		<-t.slots
		c.waiters++
		return c, nil
	}
	c := &call{callName: name, command: command, waiters: 1, done: make(chan struct{})}
	if name.session != 0 {
		t.calls[name] = c
	}
	t.queue = append(t.queue, c)
	t.flush()
	return c, nil
}

// refuses tells why a command would not be carried out. The lock is held.
func (t *Table) refuses() error {
	switch {
	case t.closed != nil:
		return t.closed
	case t.stopped != nil:
		return fmt.Errorf("%w: %w", kernel.ErrRefused, t.stopped)
	case !t.serving:
		return kernel.ErrNotMember
	}
	return nil
}

// leave is for who waits no longer. What nobody waits for and was not sent is not sent.
func (t *Table) leave(c *call, why error) (rsm.Reply, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-c.done:
		return c.reply, c.err
	default:
	}
	if c.waiters--; c.waiters == 0 && !c.sent {
		t.queue = slices.DeleteFunc(t.queue, func(x *call) bool { return x == c })
		t.finish(c, rsm.Reply{}, fmt.Errorf("%w: %w", kernel.ErrRefused, why))
		return c.reply, c.err
	}
	if !c.sent {
		c.command = slices.Clone(c.command) // it may be that of who leaves
	}
	return rsm.Reply{}, fmt.Errorf("%w: %w", kernel.ErrUnknown, why)
}

// finish answers a call. The lock is held.
func (t *Table) finish(c *call, r rsm.Reply, err error) {
	c.reply, c.err = r, err
	if c.session != 0 {
		delete(t.calls, c.callName)
	}
	close(c.done)
	<-t.slots
}

// flush sends what waits, as long as it may. The lock is held, and let go while something
// is sent; one caller sends at a time.
func (t *Table) flush() {
	for !t.sends && len(t.queue) > 0 && len(t.packs) < kernel.Packs && t.process != nil && t.refuses() == nil {
		body := t.gathered()
		number := t.next
		t.sends = true
		t.mu.Unlock()
		err := t.process.Request(parley.Msg{Kind: rsm.Commands, Seq: number, Body: body})
		t.mu.Lock()
		t.sends = false
		if err != nil {
			t.end(fmt.Errorf("%w: %w", kernel.ErrClosed, err))
		}
	}
}

// room is how many bytes of commands a pack has at most, unless there is but one.
const room = 60 << 10

// gathered makes the next pack of what waits. The lock is held.
func (t *Table) gathered() []byte {
	size, k := 0, 0
	for ; k < len(t.queue); k++ {
		size += len(t.queue[k].command) + 3*binary.MaxVarintLen64
		if k > 0 && size > room {
			break
		}
	}
	body := make([]byte, 0, min(size, room+MaxCommand))
	calls := slices.Clone(t.queue[:k])
	t.queue = slices.Delete(t.queue, 0, k)
	for _, c := range calls {
		c.sent = true
		body = rsm.AppendCommand(body, c.session, c.number, c.command)
	}
	t.next++
	t.packs[t.next] = calls
	return body
}

// replied answers the calls of a pack.
func (t *Table) replied(number uint64, body []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	calls := t.packs[number]
	if calls == nil {
		return // it was asked in a life before, or given up
	}
	delete(t.packs, number)
	list, ok := rsm.ReadReplies(body)
	if !ok || len(list) != len(calls) {
		panic(fmt.Sprintf("table %s: %d replies to %d commands", t.c.Name, len(list), len(calls)))
	}
	for i, c := range calls {
		t.finish(c, list[i], nil)
	}
}

// abandon ends all that waits: of what was sent nobody knows. The lock is held.
func (t *Table) abandon(why error) {
	for _, c := range t.queue {
		t.finish(c, rsm.Reply{}, fmt.Errorf("%w: %w", kernel.ErrRefused, why))
	}
	t.queue = nil
	for number, calls := range t.packs {
		delete(t.packs, number)
		for _, c := range calls {
			t.finish(c, rsm.Reply{}, fmt.Errorf("%w: %w", kernel.ErrUnknown, why))
		}
	}
}
