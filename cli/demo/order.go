package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/cli/client"
	"parley/cli/console"
	"parley/cluster/api/parleyv1"
	"parley/internal/draw/prose"
)

// The processes broadcast numbered texts, each with the letter of its sender.
const (
	each     = 6
	pace     = 10 * time.Millisecond
	enough   = 11 // deliveries before a process is killed
	lastWord = "end"
)

// deliveryLog is the list of one process's deliveries.
type deliveryLog struct {
	texts  []string      // may be read after over is closed, like err
	err    error         // why the last text was not delivered
	enough chan struct{} // closed after that many deliveries
	over   chan struct{} // closed when the last text was delivered, or nothing more can be
}

// await waits for a channel to be closed.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// order has all nodes broadcast in one group, kills one of them, and shows the deliveries of each.
func (d *demonstration) order(ctx context.Context, clients []client.Node) error {
	err := d.say("2. One order although a process is killed", fmt.Sprintf("All four processes broadcast at the "+
		"same time in a group with total order: P1 sends a1 to a%[1]d, P2 sends b1 to b%[1]d, and so on. Meanwhile, demo "+
		"kills P4. The others detect the crash, agree on a view without P4, and continue. At the end, P1 sends %[2]q. "+
		"This order tolerates crashes but no lies, so P3 follows the protocol here.", each, lastWord))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	lists := make([]*deliveryLog, len(clients))
	for i, c := range clients {
		if lists[i], err = subscribe(ctx, c); err != nil {
			return client.Said(c, err)
		}
	}
	var sending sync.WaitGroup
	failed := make([]error, len(clients))
	for i, c := range clients {
		sending.Go(func() { failed[i] = broadcasts(ctx, c, string(rune('a'+i))) })
	}
	if err := await(ctx, lists[doomed].enough); err != nil {
		return err
	}
	d.killed = d.nodes[doomed]
	killed, err := os.FindProcess(d.killed.PID)
	if err == nil {
		err = killed.Kill()
	}
	if err != nil {
		return err
	}
	died := time.Now()
	<-d.killed.Ended()
	sending.Wait()
	failed[doomed] = nil // it was killed
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if err := broadcast(ctx, clients[0], lastWord); err != nil {
		return err
	}
	for i, l := range lists {
		if err := await(ctx, l.over); err != nil {
			return err
		}
		if l.err != nil && i != doomed {
			return client.Said(clients[i], l.err)
		}
	}
	return d.compare(lists, time.Since(died))
}

// subscribe records what a node delivers, from the first delivery on.
func subscribe(ctx context.Context, c client.Node) (*deliveryLog, error) {
	stream, err := c.Group.Subscribe(ctx, &parleyv1.SubscribeRequest{Group: group, From: 1})
	if err != nil {
		return nil, err
	}
	l := &deliveryLog{enough: make(chan struct{}), over: make(chan struct{})}
	go func() {
		defer func() { _ = stream.Close() }()
		defer close(l.over)
		for stream.Receive() {
			delivery := stream.Msg().GetDelivery()
			if delivery == nil {
				continue
			}
			text := string(delivery.GetPayload())
			if l.texts = append(l.texts, text); len(l.texts) == enough {
				close(l.enough)
			}
			if text == lastWord {
				return
			}
		}
		l.err = cmp.Or(stream.Err(), io.ErrUnexpectedEOF)
	}()
	return l, nil
}

// group is the name of the group in which the nodes broadcast.
const group = "total"

func broadcast(ctx context.Context, c client.Node, text string) error {
	if _, err := c.Group.Broadcast(ctx, &parleyv1.BroadcastRequest{Group: group, Payload: []byte(text)}); err != nil {
		return client.Said(c, err)
	}
	return nil
}

// broadcasts has a node broadcast its texts, with a pause after each.
func broadcasts(ctx context.Context, c client.Node, letter string) error {
	for k := range each {
		if err := broadcast(ctx, c, fmt.Sprintf("%s%d", letter, k+1)); err != nil {
			return err
		}
		select {
		case <-time.After(pace):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// compare shows the deliveries of each process, and says whether they are correct.
func (d *demonstration) compare(lists []*deliveryLog, after time.Duration) error {
	var own []string // what its own sender delivered, which acknowledges it
	var texts [][]string
	var rows strings.Builder
	for i, l := range lists {
		list := l.texts
		texts = append(texts, list)
		name, tail := fmt.Sprintf("P%d  ", i+1), ""
		if i == doomed {
			name, tail = fmt.Sprintf("P%d ✗", i+1), " ✗ killed"
		}
		row := prose.Fold(strings.Join(list, " ")+tail, d.width-6)
		fmt.Fprintf(&rows, "%s  %s\n", name, strings.ReplaceAll(row, "\n", "\n      "))
		for _, text := range list {
			if text[0] == byte('a'+i) || text == lastWord && i == 0 {
				own = append(own, text)
			}
		}
	}
	first, last := texts[0], texts[doomed]
	d.delivered = len(first)
	same := !slices.ContainsFunc(texts[:doomed], func(l []string) bool { return !slices.Equal(l, first) })
	prefix := len(last) <= len(first) && slices.Equal(first[:len(last)], last)
	lost := slices.DeleteFunc(slices.Clone(own), func(text string) bool { return slices.Contains(first, text) })
	d.verdict(same, "total order: P1, P2 and P3 delivered the same %d messages in the same order", len(first))
	d.verdict(prefix, "uniform: the %d messages that P4 delivered are the first %[1]d of them", len(last))
	d.verdict(len(lost) == 0, "nothing acknowledged is lost: of the %d messages that were acknowledged to their senders, "+
		"the survivors lack %d", len(own), len(lost))
	_, err := fmt.Fprintf(d.Out, "\nDeliveries of each process, in its order:\n%s\n"+
		"P4 was excluded, and everything was delivered, within %.1f ms of the kill\n\n", rows.String(), after.Seconds()*1e3)
	if err == nil && (!same || !prefix || len(lost) > 0) {
		return console.ExitError(console.Violated)
	}
	return err
}

// verdict prints whether a statement holds.
func (d *demonstration) verdict(holds bool, form string, args ...any) {
	mark := "✓"
	if !holds {
		mark = "✗"
	}
	text := prose.Fold(fmt.Sprintf(form, args...), d.width-2)
	fmt.Fprintf(d.Out, "%s %s\n", mark, strings.ReplaceAll(text, "\n", "\n  "))
}
