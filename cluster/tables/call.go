package tables

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"slices"

	"parley"
	"parley/cluster/kernel"
	"parley/replica/rsm"
)

// Commands reach the machine in batches: one message of it has all commands that were submitted while earlier
// batches of this node were in flight.

// callName identifies a command of a session.
type callName struct{ session, number uint64 }

// call is a command until it is answered. The table's mutex guards all fields but done until done is closed.
type call struct {
	callName
	command []byte
	sum     uint64 // of the command
	sent    bool
	waiters int
	done    chan struct{}
	reply   rsm.Reply
	err     error
}

// Open opens a session and returns its number. A command with a session and a number is applied at most once, however
// often it is sent.
func (t *Table) Open(ctx context.Context) (session uint64, err error) { return t.OpenFor(ctx, "") }

// OpenFor does the same as Open, for a client of this application. If too many sessions are open, the table forgets a
// session of the client with the most sessions. If the remembered answers take too much memory, the table forgets a
// session of the client whose answers take the most bytes. In both cases, the table compares the sessions of this
// client, and forgets the one that has been without a new command for longest. All sessions without a name count as the
// sessions of one client. A name of more than [rsm.MaxOwner] bytes is replaced by its hash.
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

// Do applies a command, and returns its answer and its position in the order. The commands of a session are numbered
// from 1. If you send a command again, at any node, you get its earlier answer, until a later command of its session
// is applied. Send the next command only when the last command is answered, or when you have given it up. After a
// later command was applied, an earlier command is never applied.
func (t *Table) Do(ctx context.Context, session, number uint64, command []byte) (
	answer []byte, position uint64, err error,
) {
	if rsm.Client(session) != session || number == 0 || number >= 1<<63 {
		return nil, 0, fmt.Errorf("%w: session %d and number %d: both must be at least 1", kernel.ErrRefused, session, number)
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
	case rsm.Taken:
		return nil, 0, fmt.Errorf("%w: %w", kernel.ErrRefused, ErrSessionTaken)
	case rsm.Old:
		if t.order != nil {
			return nil, 0, fmt.Errorf("%w: %w: %w", kernel.ErrUnknown, errOvertaken, ErrSessionTaken)
		}
		return nil, 0, fmt.Errorf("%w: %w", kernel.ErrUnknown, errOvertaken)
	}
	return nil, 0, fmt.Errorf("%w, and %w", ErrExpired, kernel.ErrUnknown)
}

// Query applies a command that should change nothing, and needs no session. Query does not check the command: a
// command that changes the state changes it on all nodes. Because there is no session, a retry after ErrUnknown may
// apply the command twice. Even a node whose disk is nearly full accepts a Query. Use Do for commands that change the
// state.
func (t *Table) Query(ctx context.Context, command []byte) (answer []byte, position uint64, err error) {
	r, err := t.ask(ctx, callName{0, 1}, command)
	return r.Answer, r.Position, err
}

// writes returns an error if the table accepts no command that changes something. Reads are written, too, but are
// short.
func (t *Table) writes() error {
	if !t.k.Views.Durable && t.order == nil {
		return nil
	}
	return t.k.HasRoom()
}

// ask queues a command and waits for its answer.
func (t *Table) ask(ctx context.Context, name callName, command []byte) (rsm.Reply, error) {
	if err := t.k.Takes(t.c.Level == kernel.Byzantine); err != nil {
		return rsm.Reply{}, err
	}
	if len(command) > MaxCommand {
		return rsm.Reply{}, fmt.Errorf("%w: the command has %d bytes: at most %d are allowed", kernel.ErrRefused,
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

var seed = maphash.MakeSeed()

// enter adds a call, or joins the one of the same command that is not answered yet. It takes over a slot.
func (t *Table) enter(name callName, command []byte) (*call, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refuses(); err != nil {
		<-t.slots
		return nil, err
	}
	sum := maphash.Bytes(seed, command)
	switch c := t.calls[name]; {
	case c != nil && c.sum == sum:
		<-t.slots
		c.waiters++
		return c, nil
	case c != nil: // of somebody else, or of a faulty client: its answer is no answer to this command
		<-t.slots
		return nil, fmt.Errorf("%w: another command of the session has the number %d", kernel.ErrRefused, name.number)
	}
	c := &call{callName: name, command: command, sum: sum, waiters: 1, done: make(chan struct{})}
	if name.session != 0 {
		t.calls[name] = c
	}
	t.queue = append(t.queue, c)
	t.flush()
	return c, nil
}

// leave handles a caller that stops waiting. A command without waiting callers that was not sent is dropped.
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
		c.command = slices.Clone(c.command) // the caller that leaves may reuse it
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

// flush sends waiting commands, as long as it may. The lock is held, and released while a batch is sent. One
// caller sends at a time.
func (t *Table) flush() {
	for !t.sends && len(t.queue) > 0 && len(t.batches) < kernel.Packs && t.process != nil && t.refuses() == nil {
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

// room is how many bytes of commands a batch has at most, unless it has a single one.
const room = 60 << 10

// gathered removes the next batch from the queue and returns it. The lock is held.
func (t *Table) gathered() []byte {
	size, k := 0, 0
	for ; k < len(t.queue); k++ {
		size += len(t.queue[k].command) + 3*binary.MaxVarintLen64
		if k > 0 && (size > room || k == rsm.OrderedPack) {
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
	t.batches[t.next] = calls
	return body
}

// replied answers the calls of a batch.
func (t *Table) replied(number uint64, body []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	calls := t.batches[number]
	if calls == nil {
		return // sent by an earlier incarnation, or given up
	}
	delete(t.batches, number)
	list, ok := rsm.ReadReplies(body)
	if !ok || len(list) != len(calls) {
		panic(fmt.Sprintf("table %s: %d replies to %d commands", t.c.Name, len(list), len(calls)))
	}
	for i, c := range calls {
		t.finish(c, list[i], nil)
	}
}

// abandon ends all waiting calls: of sent commands the outcome is unknown. The lock is held.
func (t *Table) abandon(why error) {
	for _, c := range t.queue {
		t.finish(c, rsm.Reply{}, fmt.Errorf("%w: %w", kernel.ErrRefused, why))
	}
	t.queue = nil
	for number, calls := range t.batches {
		delete(t.batches, number)
		for _, c := range calls {
			t.finish(c, rsm.Reply{}, fmt.Errorf("%w: %w", kernel.ErrUnknown, why))
		}
	}
}
