// Command transfer moves money between accounts on three nodes: all accounts change, or none of them changes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"sync"

	"parley/cluster"
	"parley/examples/nodes"
)

func main() {
	if err := transfers(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// bank is the account of one node. If it has promised to pay an amount, it reserves this amount until it
// learns the outcome.
type bank struct {
	mu      sync.Mutex
	balance int
	held    map[string]int // by transaction: the amount that it adds
}

// Prepare deducts an amount that the account must pay, so that no other transaction can use this amount.
func (b *bank) Prepare(_ context.Context, tx string, part []byte) (bool, error) {
	by, err := strconv.Atoi(string(part))
	if err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.balance+by < 0 {
		return false, errors.New("not enough money")
	}
	b.balance += min(by, 0)
	b.held[tx] = by
	return true, nil
}

// Commit adds an amount that the account receives.
func (b *bank) Commit(tx string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.balance += max(b.held[tx], 0)
	delete(b.held, tx)
}

// Abort adds the amount that Prepare deducted.
func (b *bank) Abort(tx string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.balance -= min(b.held[tx], 0)
	delete(b.held, tx)
}

func (b *bank) has() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.balance
}

// banks are the banks of three nodes, by node name.
type banks map[string]*bank

func opened() banks {
	all := make(banks)
	for i := range 3 {
		all[fmt.Sprintf("node%d", i+1)] = &bank{balance: 100, held: make(map[string]int)}
	}
	return all
}

// configure sets the bank of each node as its participant in transactions.
func (all banks) configure(c *cluster.Config) { c.Participant = all[c.Name] }

// sum returns the money in all banks.
func (all banks) sum() (sum int) {
	for _, b := range all {
		sum += b.has()
	}
	return sum
}

func transfers(ctx context.Context, out io.Writer) error {
	all := opened()
	three, end, err := nodes.Start(ctx, 3, all.configure)
	if err != nil {
		return err
	}
	defer end()
	// The third node gets a fee for each transfer.
	for i, dollars := range []int{69, 69} {
		tx := fmt.Sprintf("monday/%d", i+1)
		committed, why, err := transfer(ctx, three[0], tx, map[string]int{
			"node1": -dollars - 1, "node2": dollars, "node3": 1,
		})
		if err != nil {
			return err
		}
		if committed {
			why = "done"
		}
		fmt.Fprintf(out, "%s: %d dollars and 1 for the bank: %s\n", tx, dollars, why)
	}
	return nil
}

// transfer adds to each account the amount that the map by gives for the account's node. If the transaction
// aborts, transfer returns the reason.
func transfer(
	ctx context.Context, at *cluster.Node, tx string, by map[string]int,
) (committed bool, why string, err error) {
	parts := make(map[string][]byte)
	for node, dollars := range by {
		parts[node] = []byte(strconv.Itoa(dollars))
	}
	if committed, err = at.Commit(ctx, tx, parts); committed || err != nil {
		return committed, "", err
	}
	outcome, err := at.Outcome(tx)
	return false, outcome.Why, err
}
