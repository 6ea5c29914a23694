package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/cli/child"
	"parley/cli/client"
	"parley/cluster/api/participant"
	"parley/cluster/cert"
	"parley/faulty"
)

// Plan describes a local cluster.
type Plan struct {
	N, M     int           // of the N nodes, M may lie
	Traitors behaviors     // by the number of the node, from 1
	Traces   bool          // the nodes write traces
	Round    time.Duration // 0: the default
	Durable  bool          // deliveries are synced to disk before they are acknowledged
	// Level is the level of the only group, which has the name of its level; there are no tables. If it is empty, there
	// is a group named total, a group named byzantine if n allows one, and two tables.
	Level string
	// Via returns the address by which a node reaches another one. If it is nil, each node is reached at its own
	// address.
	Via func(from, to int) string

	// participant is the address of the service that carries out all nodes' parts of transactions.
	participant string
}

// behaviors are the behaviors of nodes, as the value of a flag.
type behaviors map[string]string

// Set and String and Type make it a flag.
func (b *behaviors) Set(text string) error {
	if *b == nil {
		*b = make(behaviors)
	}
	for one := range strings.SplitSeq(text, ",") {
		node, how, ok := strings.Cut(one, "=")
		if !ok {
			return errors.New("NODE=BEHAVIOR was expected, as in 3=twofaced")
		}
		if _, twice := (*b)[node]; twice {
			return fmt.Errorf("node %s is named twice", node)
		}
		(*b)[node] = how
	}
	return nil
}

func (b *behaviors) String() string { return "" }

// Type is what the help calls the value.
func (b *behaviors) Type() string { return "string" }

// maxByzantine is the maximum number of nodes of a local cluster with a Byzantine order.
const maxByzantine = 13

// check checks the flags, and fills in m if it is not given.
func (p *Plan) check(given bool) error {
	if p.N < 1 || p.N > child.Most {
		return parley.FlagErrorf("n", "%d nodes: allowed are 1 to %d", p.N, child.Most)
	}
	most := (p.N - 1) / 3
	if given && (p.M > most || p.M < min(1, most)) {
		allowed := fmt.Sprintf("allowed are 1 to %d", most)
		if most < 2 {
			allowed = fmt.Sprintf("allowed is %d", most)
		}
		return parley.FlagErrorf("m", "%d faulty nodes of %d: %s, because n > 3m", p.M, p.N, allowed)
	}
	if !given {
		p.M = most
	}
	if len(p.Traitors) > p.M {
		return parley.FlagErrorf("traitor", "%d nodes: with m = %d at most %[2]d may lie", len(p.Traitors), p.M)
	}
	if p.Round != 0 && (p.Round < 10*time.Millisecond || p.Round > time.Hour) {
		return parley.FlagErrorf("round", "%s: allowed are 10ms to 1h", p.Round)
	}
	if p.participant != "" {
		if err := participant.CheckAddress(p.participant); err != nil {
			return parley.FlagErrorf("participant", "%w", err)
		}
	}
	for id, how := range p.Traitors { // order: any of the errors will do
		if i, err := strconv.Atoi(id); err != nil || strconv.Itoa(i) != id || i < 1 || i > p.N {
			return parley.FlagErrorf("traitor", "%q is not a node: allowed are 1 to %d", id, p.N)
		}
		if _, err := faulty.Parse(how); err != nil {
			return parley.FlagErrorf("traitor", "%w", err)
		}
	}
	return nil
}

// Make creates the folder of a cluster with its authority, certificates and configurations.
func (p *Plan) Make(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	whole := cert.Whole{
		Cluster: "local", Clients: []string{"admin"}, Hosts: []string{"localhost", "127.0.0.1"}, Valid: 365 * 24 * time.Hour,
	}
	for i := range p.N {
		whole.Nodes = append(whole.Nodes, client.NodeName(i))
	}
	signers, err := whole.Create(filepath.Join(dir, "certs"))
	if err != nil {
		return err
	}
	addresses, err := freeAddresses(ctx, 3*p.N)
	if err != nil {
		return err
	}
	for i := range p.N {
		var members strings.Builder
		for j, key := range signers {
			address := addresses[j]
			if p.Via != nil && i != j {
				address = p.Via(i, j)
			}
			fmt.Fprintf(&members, "  - name: %s\n    address: %s\n    signer: %s\n",
				client.NodeName(j), address, cert.FormatSigner(key))
		}
		file := client.ConfigOf(dir, client.NodeName(i))
		if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(p.config(i, addresses[p.N:], members.String())), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// config returns the configuration of a node. addresses has the addresses of all APIs, followed by those for metrics.
func (p *Plan) config(i int, addresses []string, members string) string {
	text := fmt.Sprintf("cluster: local\nname: %s\napi: %s\ncertificates: ../certs\ndata: data\n"+
		"durable: %v\nm: %d\nmetrics: %s\n", client.NodeName(i), addresses[i], p.Durable, p.M, addresses[p.N+i])
	levels := []string{p.Level}
	if p.Level == "" {
		levels = []string{"total"}
		if p.N >= 4 && p.N <= maxByzantine {
			levels = append(levels, "byzantine")
		}
	}
	text += "groups:\n"
	for _, level := range levels {
		text += fmt.Sprintf("  - name: %s\n    level: %[1]s\n", level)
	}
	if p.Level == "" {
		text += "tables:\n  - name: table\n    state: keyvalue\n  - name: bank\n    state: bank\n"
	}
	if how, lies := p.Traitors[strconv.Itoa(i+1)]; lies {
		text += fmt.Sprintf("lab: true\ntraitor: %s\n", how)
	}
	if p.participant != "" {
		text += "participant: " + strconv.Quote(p.participant) + "\n"
	}
	if p.Traces {
		text += "traces: traces\n"
	}
	if p.Round > 0 {
		text += fmt.Sprintf("round: %s\n", p.Round)
	}
	return text + "members:\n" + members
}

// freeAddresses returns loopback addresses with unused ports. The ports are below the range from which systems assign
// ports to outgoing connections, so that none is taken before its use.
func freeAddresses(ctx context.Context, n int) ([]string, error) {
	var out []string
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for range 1000 {
		port, err := rand.Int(rand.Reader, big.NewInt(22_000))
		if err != nil {
			return nil, err
		}
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+port.Int64())
		l, err := listen(ctx, address)
		if err != nil {
			continue
		}
		held, out = append(held, l), append(out, address)
		if len(out) == n {
			return out, nil
		}
	}
	return nil, errors.New("this computer has no free ports from 10000 to 31999")
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", address)
}
