package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"parley/cluster"
	"parley/replica/bank"
	"parley/replica/keyvalue"
	"parley/replica/rsm"
)

// A command that waits for another command of its session waits until its own context ends.
func TestSessionWaitsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 3, withTable(false))
		client := r.table(0).KeyValue()
		must(t, second(client.Add(soon(t, 10*time.Second), []byte("k"), 1)))
		r.stop(1, 2)
		first := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := client.Add(ctx, []byte("k"), 1)
			first <- err
		}()
		time.Sleep(50 * time.Millisecond)
		_, err := client.Add(soon(t, 50*time.Millisecond), []byte("k"), 1)
		if !refusedInTime(err) {
			t.Errorf("behind another one: %v", err)
		}
		cancel()
		if err := <-first; !errors.Is(err, cluster.ErrUnknown) || !errors.Is(err, context.Canceled) {
			t.Errorf("the other one: %v", err)
		}
		_, err = r.table(0).KeyValue().Add(soon(t, 50*time.Millisecond), []byte("k"), 1) // it opens a session
		if !refusedInTime(err) || strings.Contains(err.Error(), "unknown") {
			t.Errorf("without a session: %v", err)
		}
	})
}

// refusedInTime reports whether nothing was sent before a context ended.
func refusedInTime(err error) bool {
	return errors.Is(err, cluster.ErrRefused) && errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, cluster.ErrUnknown)
}

// A command with an unknown outcome is retried under its number, and applied once.
func TestSessionAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 3, withTable(true))
		ctx := soon(t, 20*time.Second)
		client := r.table(0).KeyValue()
		none := func() {
			t.Helper()
			if _, err := client.Again(ctx); !errors.Is(err, cluster.ErrRefused) || errors.Is(err, cluster.ErrUnknown) {
				t.Errorf("there is nothing to ask again: %v", err)
			}
		}
		none()
		if sum, err := client.Add(ctx, []byte("k"), 1); sum != 1 || err != nil {
			t.Fatal(sum, err)
		}
		none()
		r.stop(1, 2)
		if _, err := client.Add(soon(t, 100*time.Millisecond), []byte("k"), 1); !errors.Is(err, cluster.ErrUnknown) {
			t.Fatal(err)
		}
		if _, err := client.Again(soon(t, 100*time.Millisecond)); !errors.Is(err, cluster.ErrUnknown) {
			t.Errorf("still nobody: %v", err)
		}
		r.start(1, 2)
		if a, err := client.Again(ctx); err != nil || string(a.Value) != "2" {
			t.Errorf("%q, %v", a.Value, err)
		}
		none()
		if sum, err := client.Add(ctx, []byte("k"), 1); sum != 3 || err != nil {
			t.Error(sum, err)
		}
	})
}

// A table with another machine refuses commands of keys and values.
func TestKeyValueOfAnotherMachine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 1, func(c *cluster.Config) {
			c.Tables = []cluster.TableConfig{{Name: "t", New: func() rsm.Application { return bank.New() }}}
		})
		ctx := soon(t, 10*time.Second)
		before, _, err := r.table(0).Inspect(ctx)
		must(t, err)
		client := r.table(0).KeyValue()
		_, put := client.Put(ctx, []byte("k"), nil)
		_, _, get := client.Get(ctx, []byte("k"))
		for _, err := range []error{put, get} {
			if !errors.Is(err, cluster.ErrRefused) || errors.Is(err, cluster.ErrUnknown) {
				t.Error(err)
			}
		}
		if after, _, err := r.table(0).Inspect(ctx); after != before || err != nil {
			t.Errorf("%d commands were carried out, %v", after-before, err)
		}
	})
}

// Two callers wait for one command that is not sent yet; the one that owns the bytes leaves, and reuses them.
func TestSessionCommandSurvivesCanceledCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 3, withTable(true))
		ctx := soon(t, 20*time.Second)
		a := r.table(0)
		session, err := a.Open(ctx)
		must(t, err)
		r.stop(1, 2)
		short := soon(t, 300*time.Millisecond)
		for range 4 { // all batches that may be in flight
			go func() { _, _, _ = a.Query(short, keyvalue.Get([]byte("other"))) }()
			time.Sleep(10 * time.Millisecond)
		}
		own, answer := keyvalue.Put([]byte("k"), []byte("value")), make(chan error, 1)
		leaves, cancel := context.WithCancel(ctx)
		go func() {
			_, _, err := a.Do(leaves, session, 1, own)
			answer <- err
		}()
		time.Sleep(50 * time.Millisecond)
		second, same := make(chan error, 1), bytes.Clone(own)
		go func() {
			_, _, err := a.Do(ctx, session, 1, same)
			for errors.Is(err, cluster.ErrNotMember) { // the other two may install a view before this node is in it
				time.Sleep(50 * time.Millisecond)
				_, _, err = a.Do(ctx, session, 1, same)
			}
			second <- err
		}()
		time.Sleep(50 * time.Millisecond)
		cancel()
		if err := <-answer; !errors.Is(err, cluster.ErrUnknown) {
			t.Errorf("who leaves: %v", err)
		}
		clear(own)
		r.start(1, 2)
		must(t, <-second)
		if value, _, err := a.KeyValue().Get(ctx, []byte("k")); string(value) != "value" || err != nil {
			t.Errorf("%q, %v", value, err)
		}
	})
}
