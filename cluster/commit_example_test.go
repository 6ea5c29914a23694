package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/cluster"
)

// accounts is the bank of one node: a participant that holds what it has promised until it learns the outcome.
type accounts struct {
	mu      sync.Mutex
	balance map[string]int
	held    map[string]change // by transaction
}

// change is a node's part of a transfer.
type change struct {
	Account string
	By      int
}

// Prepare takes a withdrawal out of the account at once, so that nobody else can have it.
func (a *accounts) Prepare(_ context.Context, tx string, body []byte) (bool, error) {
	var c change
	if err := json.Unmarshal(body, &c); err != nil {
		return false, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.balance[c.Account]+c.By < 0 {
		return false, errors.New("not enough money")
	}
	a.balance[c.Account] += min(c.By, 0)
	a.held[tx] = c
	return true, nil
}

// Commit pays a deposit in.
func (a *accounts) Commit(tx string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.balance[a.held[tx].Account] += max(a.held[tx].By, 0)
	delete(a.held, tx)
}

// Abort gives a withdrawal back.
func (a *accounts) Abort(tx string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.balance[a.held[tx].Account] -= min(a.held[tx].By, 0)
	delete(a.held, tx)
}

// Money moves from one bank to another, or not at all.
func ExampleNode_Commit() {
	banks := make(map[string]*accounts)
	nodes, end := several(3, func(c *cluster.Config) { // three processes would each call cluster.Join
		bank := &accounts{balance: map[string]int{"alice": 100, "bob": 100}, held: make(map[string]change)}
		banks[c.Name], c.Participant = bank, bank
	})
	defer end()

	transfer := func(tx string, dollars int) {
		from, err := json.Marshal(change{"alice", -dollars})
		if err != nil {
			fmt.Println(err)
			return
		}
		to, err := json.Marshal(change{"bob", dollars})
		if err != nil {
			fmt.Println(err)
			return
		}
		committed, err := nodes[0].Commit(context.Background(), tx, map[string][]byte{"node2": from, "node3": to})
		if err != nil {
			fmt.Println(err)
			return
		}
		if fmt.Println(dollars, "dollars:", committed); !committed {
			outcome, _ := nodes[0].Outcome(tx)
			fmt.Println(outcome.Why)
		}
	}
	transfer("monday/1", 70)
	transfer("monday/2", 70)
	transfer("monday/3", 30)

	for nodes[0].Status().Commit.Open > 0 { // until all participants have committed
		time.Sleep(time.Millisecond)
	}
	fmt.Println("alice", banks["node2"].balance["alice"], "bob", banks["node3"].balance["bob"])
	// Output:
	// 70 dollars: true
	// 70 dollars: false
	// node2: not enough money
	// 30 dollars: true
	// alice 0 bob 200
}
