package participant_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"

	"parley/cluster/api/parleyv1"
	"parley/cluster/api/participant"
)

// bank is the service of one node: its accounts, and the amounts held by transactions, in a file.
type bank struct {
	mu      sync.Mutex
	file    string
	Life    uint64          // largest seen
	Balance map[string]int  // by account
	Held    map[string]held // by transaction
}

type held struct {
	Account string
	By      int    // deposit if positive, withdrawal if negative
	Life    uint64 // of the last request
}

func (b *bank) Prepare(_ context.Context, r *parleyv1.PreparePartRequest) (*parleyv1.PreparePartResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Life < b.Life {
		return &parleyv1.PreparePartResponse{Why: "too late"}, nil
	}
	b.Life = r.Life
	for tx, other := range b.Held {
		if !r.Again && other.Life < r.Life {
			b.end(tx, false) // it was aborted
		}
	}
	h, known := b.Held[r.Transaction]
	if err := json.Unmarshal(r.Body, &h); err != nil {
		return nil, err
	}
	h.Life = r.Life
	switch {
	case known:
		b.Held[r.Transaction] = h
	case r.Again: // it is finished
	case b.Balance[h.Account]+h.By < 0:
		return &parleyv1.PreparePartResponse{Why: "not enough money"}, b.save()
	default: // a withdrawal is held at once
		b.Balance[h.Account] += min(h.By, 0)
		b.Held[r.Transaction] = h
	}
	return &parleyv1.PreparePartResponse{Vote: true}, b.save()
}

func (b *bank) Commit(_ context.Context, r *parleyv1.CommitPartRequest) (*parleyv1.CommitPartResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(r.Transaction, true)
	return &parleyv1.CommitPartResponse{}, b.save()
}

func (b *bank) Abort(_ context.Context, r *parleyv1.AbortPartRequest) (*parleyv1.AbortPartResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(r.Transaction, false)
	return &parleyv1.AbortPartResponse{}, b.save()
}

// end pays a deposit in at a commit, or gives a withdrawal back at an abort.
func (b *bank) end(tx string, commit bool) {
	switch h, known := b.Held[tx]; {
	case known && commit:
		b.Balance[h.Account] += max(h.By, 0)
	case known:
		b.Balance[h.Account] -= min(h.By, 0)
	}
	delete(b.Held, tx)
}

// save writes the file, before an answer.
func (b *bank) save() error {
	text, err := json.Marshal(b)
	if err == nil {
		err = os.WriteFile(b.file+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(b.file+".new", b.file)
	}
	return err
}

// A bank as a participant, called as by a node whose configuration has "participant:" with its address.
func Example() {
	dir, err := os.MkdirTemp("", "bank")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	b := &bank{file: filepath.Join(dir, "bank.json"), Balance: map[string]int{"alice": 100}, Held: make(map[string]held)}
	mux := http.NewServeMux()
	mux.Handle(parleyv1.NewParticipantServiceHandler(b))
	server := httptest.NewServer(mux) // in production: http.ListenAndServe("127.0.0.1:8090", mux)
	defer server.Close()

	node, err := participant.New("node1", server.URL)
	if err != nil {
		panic(err)
	}
	for _, tx := range []string{"monday/1", "monday/2"} {
		fmt.Println(node.Prepare(context.Background(), tx, []byte(`{"Account": "alice", "By": -70}`)))
	}
	node.Abort("monday/1")
	node.Abort("monday/2")
	fmt.Println(node.Prepare(context.Background(), "monday/3", []byte(`{"Account": "alice", "By": -70}`)))
	node.Commit("monday/3")
	fmt.Println(b.Balance)
	// Output:
	// true <nil>
	// false not enough money
	// true <nil>
	// map[alice:30]
}
