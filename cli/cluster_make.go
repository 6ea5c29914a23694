package cli

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// localPlan is what a local cluster is to be.
type localPlan struct {
	n, m     int
	durable  bool
	traitors map[string]string // behaviours, by the number of the node
	traces   bool              // the nodes write down all that happens
	round    time.Duration     // 0: the default
	// participant is the address of the service that does all nodes' parts of transactions.
	participant string
}

// maxByzantine is the most nodes of a local cluster with a Byzantine order.
const maxByzantine = 13

// check looks at the flags, and fills in m unless it is given.
func (p *localPlan) check(given bool) error {
	if p.n < 1 || p.n > child.Most {
		return parley.FlagErrorf("n", "%d nodes: allowed are 1 to %d", p.n, child.Most)
	}
	most := (p.n - 1) / 3
	if given && (p.m > most || p.m < min(1, most)) {
		return parley.FlagErrorf("m", "%d liars among %d nodes: allowed are %d to %d, for n > 3m", p.m, p.n, min(1, most),
			most)
	}
	if !given {
		p.m = most
	}
	if len(p.traitors) > p.m {
		return parley.FlagErrorf("traitor", "%d traitors: allowed are m = %d", len(p.traitors), p.m)
	}
	if p.participant != "" {
		if err := participant.CheckAddress(p.participant); err != nil {
			return parley.FlagErrorf("participant", "%w", err)
		}
	}
	for id, how := range p.traitors { // order: whichever error comes first will do
		if i, err := strconv.Atoi(id); err != nil || strconv.Itoa(i) != id || i < 1 || i > p.n {
			return parley.FlagErrorf("traitor", "%q is no node: allowed are 1 to %d", id, p.n)
		}
		if _, err := faulty.Parse(how); err != nil {
			return parley.FlagErrorf("traitor", "%w", err)
		}
	}
	return nil
}

// make makes the folder of a cluster: its authority, certificates and configurations.
func (p *localPlan) make(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	whole := cert.Whole{
		Cluster: "local", Clients: []string{"admin"}, Hosts: []string{"localhost", "127.0.0.1"}, Valid: 365 * 24 * time.Hour,
	}
	for i := range p.n {
		whole.Nodes = append(whole.Nodes, client.NodeName(i))
	}
	signers, err := whole.Create(filepath.Join(dir, "certs"))
	if err != nil {
		return err
	}
	addresses, err := freeAddresses(ctx, 3*p.n)
	if err != nil {
		return err
	}
	var members strings.Builder
	for i, key := range signers {
		fmt.Fprintf(&members, "  - name: %s\n    address: %s\n    signer: %s\n",
			client.NodeName(i), addresses[i], cert.FormatSigner(key))
	}
	for i := range p.n {
		file := client.ConfigOf(dir, client.NodeName(i))
		if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(p.config(i, addresses[p.n:], members.String())), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// config is the configuration of a node. The addresses are those of all APIs, and then
// those for watchers.
func (p *localPlan) config(i int, addresses []string, members string) string {
	text := fmt.Sprintf("cluster: local\nname: %s\napi: %s\ncertificates: ../certs\ndata: data\n"+
		"durable: %v\nm: %d\nmetrics: %s\n", client.NodeName(i), addresses[i], p.durable, p.m, addresses[p.n+i])
	text += "groups:\n  - name: total\n    level: total\n"
	if p.n >= 4 && p.n <= maxByzantine {
		text += "  - name: byzantine\n    level: byzantine\n"
	}
	text += "tables:\n  - name: table\n    state: keyvalue\n  - name: bank\n    state: bank\n"
	if how, lies := p.traitors[strconv.Itoa(i+1)]; lies {
		text += fmt.Sprintf("lab: true\ntraitor: %s\n", how)
	}
	if p.participant != "" {
		text += "participant: " + strconv.Quote(p.participant) + "\n"
	}
	if p.traces {
		text += "traces: traces\n"
	}
	if p.round > 0 {
		text += fmt.Sprintf("round: %s\n", p.round)
	}
	return text + "members:\n" + members
}

// freeAddresses are loopback addresses with ports that nobody listens on, below those
// that systems give to who dials, so that nobody takes them before they are used.
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
	return nil, errors.New("this machine has no free ports from 10000 to 31999")
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", address)
}

// control is how "cluster down" finds the process that runs a cluster: an address, and
// what to say there. It is in a file that only the owner can read.
type control struct {
	Address string `json:"address"`
	Token   string `json:"token"`
}

func controlFile(dir string) string { return filepath.Join(dir, "running.json") }

// What a running cluster is asked: whether it runs, or to end.
const (
	askRuns = '?'
	askEnd  = '!'
)

// openControl answers whether the cluster runs, and has end called when somebody asks for the
// end, who is answered when the returned function is called.
func openControl(ctx context.Context, dir string, end func()) (ended func(), err error) {
	l, err := listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := control{l.Addr().String(), rand.Text()}
	b, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(controlFile(dir), b, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			who, err := l.Accept()
			if err != nil {
				return
			}
			said := make([]byte, 1+len(c.Token))
			_ = who.SetDeadline(time.Now().Add(time.Second))
			_, err = io.ReadFull(who, said)
			known := err == nil && subtle.ConstantTimeCompare(said[1:], []byte(c.Token)) == 1
			switch {
			case known && said[0] == askRuns:
				_, _ = io.WriteString(who, itRuns)
			case known && said[0] == askEnd:
				end()
				<-over
				_ = who.SetDeadline(time.Now().Add(time.Second))
				_, _ = io.WriteString(who, theEnd)
			}
			_ = who.Close()
		}
	}()
	return func() {
		_ = os.Remove(controlFile(dir))
		close(over)
		_ = l.Close()
		<-done
	}, nil
}

// What it answers.
const (
	itRuns = "runs"
	theEnd = "ended"
)

// running is a connection to the process that runs a cluster.
type running struct {
	net.Conn
	token string
}

// dialControl connects to the process that runs the cluster in a folder.
func dialControl(ctx context.Context, dir string) (*running, error) {
	b, err := os.ReadFile(controlFile(dir))
	var c control
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	var conn net.Conn
	if err == nil {
		conn, err = (&net.Dialer{Timeout: 3 * time.Second}).DialContext(ctx, "tcp", c.Address)
	}
	if err != nil {
		return nil, fmt.Errorf("no cluster runs in %s: %w", dir, err)
	}
	return &running{conn, c.Token}, nil
}

// runs returns nil if the cluster runs: another program may have got its port.
func (c *running) runs() error { return c.ask(askRuns, itRuns, 3*time.Second) }

// awaitEnd asks for the end, and waits for it.
func (c *running) awaitEnd() error { return c.ask(askEnd, theEnd, 45*time.Second) }

// ask asks something and demands an answer.
func (c *running) ask(what rune, want string, limit time.Duration) error {
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, string(what)+c.token); err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(c, 64))
	if err == nil && string(b) != want {
		err = fmt.Errorf("%q was answered", b)
	}
	return err
}
