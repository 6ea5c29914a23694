package participant_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/cluster"
	"parley/cluster/api/parleyv1"
	"parley/cluster/api/participant"
	"parley/cluster/cert"
	"parley/cluster/link/memory"
)

// mortal is a bank whose process crashes before it applies a decision.
type mortal struct {
	*bank
	end func()
}

func (m mortal) Commit(context.Context, *parleyv1.CommitPartRequest) (*parleyv1.CommitPartResponse, error) {
	m.end()
	return nil, errors.New("it has ended")
}

func openBank(file string) (*bank, error) {
	b := &bank{file: file, Balance: make(map[string]int), Held: make(map[string]held)}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	return b, errors.Join(err, json.Unmarshal(text, b))
}

// branch is a node's bank as a process: everything but its file ends with it.
type branch struct {
	t    *testing.T
	host *memory.Host
	file string

	server *http.Server
	work   sync.WaitGroup // requests in progress
	ended  chan struct{}
}

// start makes the bank listen. If dies is set, it crashes when it is asked to commit.
func (b *branch) start(dies bool) {
	b.t.Helper()
	own, err := openBank(b.file)
	must(b.t, err)
	var service parleyv1.ParticipantServiceHandler = own
	if dies {
		service = mortal{own, b.end}
	}
	mux := http.NewServeMux()
	mux.Handle(parleyv1.NewParticipantServiceHandler(service))
	b.ended = make(chan struct{})
	b.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.work.Add(1)
		defer b.work.Done()
		mux.ServeHTTP(w, r)
	})}
	l, err := b.host.Listen(b.t.Context(), "tcp", b.host.Addr(bankPort))
	must(b.t, err)
	go func(s *http.Server) { _ = s.Serve(l) }(b.server)
}

const bankPort = 8090

// end crashes the process.
func (b *branch) end() {
	_ = b.server.Close()
	close(b.ended)
}

// wait waits for its end.
func (b *branch) wait() {
	<-b.ended
	b.work.Wait()
}

func (b *branch) kill() {
	select {
	case <-b.ended:
	default:
		b.end()
	}
	b.wait()
}

// has returns the free balance of an account, and the transactions that hold something.
func (b *branch) has(account string) (money int, holding []string) {
	in, err := openBank(b.file)
	must(b.t, err)
	return in.Balance[account], slices.Sorted(maps.Keys(in.Held))
}

func (b *branch) await(account string, want int) {
	b.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		money, holding := b.has(account)
		if money == want && len(holding) == 0 {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s has %d, and %q hold something: %d and none were expected", account, money, holding, want)
		}
	}
}

// banks is a cluster in this process with a bank at each node. A bank's account has the name of the node.
type banks struct {
	t        *testing.T
	configs  []cluster.Config
	nodes    []*cluster.Node
	branches []*branch
}

func newBanks(t *testing.T, n int) *banks {
	t.Helper()
	s := &banks{t: t, configs: make([]cluster.Config, n), nodes: make([]*cluster.Node, n)}
	ca, err := cert.NewAuthority("test", time.Hour, nil)
	must(t, err)
	trust, err := cert.NewTrust(ca.Anchors(), nil)
	must(t, err)
	dir, network := t.TempDir(), memory.New(memory.Options{})
	var members []cluster.Member
	for i := range n {
		name := fmt.Sprintf("node%d", i+1)
		issued, err := ca.IssueNode(name, []string{"127.0.0.1"}, time.Hour/2)
		must(t, err)
		host := network.Host(name)
		b := &branch{t: t, host: host, file: filepath.Join(dir, name+".json")}
		text, err := json.Marshal(&bank{Balance: map[string]int{name: 100}, Held: map[string]held{}})
		must(t, err)
		must(t, os.WriteFile(b.file, text, 0o600))
		b.start(false)
		s.branches = append(s.branches, b)
		members = append(members, cluster.Member{Name: name, Address: host.Addr(7000), Signer: issued.SignerKey()})
		s.configs[i] = cluster.Config{
			Name: name, Self: issued.Self(), Trust: trust, Network: host, SignerKey: issued.Signer,
			Dir: filepath.Join(dir, "data-"+name), Participant: participant.NewOn(name, host.Addr(bankPort), host.DialContext),
		}
	}
	t.Cleanup(func() {
		for i := range n {
			if s.nodes[i] != nil {
				_ = s.nodes[i].Close()
			}
			s.branches[i].kill()
		}
	})
	var all sync.WaitGroup
	for i := range n {
		s.configs[i].Members = members
		all.Go(func() { s.join(i) })
	}
	all.Wait()
	return s
}

func (s *banks) join(i int) {
	node, err := cluster.Join(context.Background(), s.configs[i])
	if err != nil {
		s.t.Error(err)
		return
	}
	s.nodes[i] = node
}

// transfer moves money from the first node's account to another one's. The third node coordinates.
func (s *banks) transfer(tx string, money, to int) (bool, string) {
	s.t.Helper()
	part := func(i, by int) []byte { return fmt.Appendf(nil, `{"Account": "node%d", "By": %d}`, i+1, by) }
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	committed, err := s.nodes[2].Commit(ctx, tx, map[string][]byte{
		"node1": part(0, -money), fmt.Sprintf("node%d", to+1): part(to, money),
	})
	must(s.t, err)
	o, err := s.nodes[2].Outcome(tx)
	must(s.t, err)
	return committed, o.Why
}

// Four nodes with banks that crash and restart independently: a transfer happens completely or not at all.
func TestTransfers(t *testing.T) { synctest.Test(t, transfers) }

func transfers(t *testing.T) {
	s := newBanks(t, 4)
	if yes, why := s.transfer("a", 50, 1); !yes {
		t.Fatal(why)
	}
	if yes, why := s.transfer("b", 60, 1); yes || why != "node1: not enough money" {
		t.Fatal(yes, why)
	}
	s.branches[0].await("node1", 50)
	s.branches[1].await("node2", 150)

	// A bank that is down does not vote, and the other one gives its money back.
	s.branches[1].kill()
	if yes, why := s.transfer("c", 10, 1); yes || why == "" {
		t.Fatal(yes, why)
	}
	s.branches[0].await("node1", 50)

	// The bank crashes between its yes and the commit, and is asked again after its restart.
	s.branches[1].start(true)
	if yes, why := s.transfer("d", 10, 1); !yes {
		t.Fatal(why)
	}
	s.branches[1].wait()
	s.branches[0].await("node1", 40)
	// It may also still hold its deposit of transaction b, if it crashed before it learned the outcome.
	if money, holding := s.branches[1].has("node2"); money != 150 || !slices.Contains(holding, "d") {
		t.Fatal(money, holding)
	}
	s.branches[1].start(false)
	s.branches[1].await("node2", 160)

	// The node crashes, too, and asks again in its next incarnation.
	s.branches[1].kill()
	s.branches[1].start(true)
	if yes, why := s.transfer("e", 10, 1); !yes {
		t.Fatal(why)
	}
	s.branches[1].wait()
	must(t, s.nodes[1].Close())
	s.join(1)
	s.branches[1].start(false)
	s.branches[1].await("node2", 170)
	if yes, why := s.transfer("f", 30, 1); !yes {
		t.Fatal(why)
	}
	s.branches[0].await("node1", 0)
	s.branches[1].await("node2", 200)
}
