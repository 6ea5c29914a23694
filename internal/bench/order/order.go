// Package order times the ordered broadcast of a cluster. All nodes are in one process, connected over loopback by
// mutual TLS.
//
// A phase measures the same figures as the benchmarks of other systems. The first figure is the rate at which the
// slowest node delivers while senders keep a fixed number of messages in flight. The second figure is the time from
// submitting a message until the sender delivers it. The third figure is the time until the last node delivers it.
package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/cluster"
	"parley/cluster/cert"
	"parley/cluster/link"
	"parley/faulty"
	"parley/internal/must"
)

// Phases are all phases in their order: the latency of a lone message from the first node and from the second, the
// rates with one sender and with all nodes sending, the latencies at a given rate, from one sender and from all, and
// the rate with one sender before and after m nodes end.
var Phases = []string{"latl", "latf", "one", "many", "open", "openm", "kill"}

// Usual are the default phases.
var Usual = Phases[:4]

// Spec specifies what to measure.
type Spec struct {
	Level    cluster.Level
	N        int
	M        int // how many nodes may be faulty: for Byzantine order
	Silent   int // how many of them are, by sending nothing: the last ones
	Size     int // bytes of a message
	Window   int // messages of a sender in flight
	Rate     int // messages per second of an open loop, of all senders together
	Duration time.Duration
	Phases   []string
	Dir      string // parent folder of the durable state; "": in memory
	// Network returns the network of node 0, 1 and so on. If it is nil, all use loopback. Tests use the network of
	// cluster/link/memory in a bubble of testing/synctest, and measure the bubble's time.
	Network func(node int) link.Network
}

// Check returns an error if a spec is invalid.
func (s Spec) Check() error {
	least, most := 2, 13
	if s.Level == cluster.Byzantine {
		least = 3*s.M + 1
	}
	between := func(flag string, is, least, most int) error {
		if is >= least && is <= most {
			return nil
		}
		return parley.FlagErrorf(flag, "%d: allowed are %d to %d", is, least, most)
	}
	for _, p := range s.Phases {
		if !slices.Contains(Phases, p) {
			return parley.FlagErrorf("phases", "unknown phase %q: allowed are %s", p, strings.Join(Phases, ", "))
		}
	}
	if s.Silent > 0 && s.Level != cluster.Byzantine {
		return parley.FlagErrorf("silent", "a silent node is excluded with this level: use --level byzantine, "+
			"or omit the flag")
	}
	if s.Duration <= 0 || s.Duration > time.Hour {
		return parley.FlagErrorf("dur", "%v: allowed are durations above 0, up to 1h", s.Duration)
	}
	err := errors.Join(between("nodes", s.N, least, most), between("silent", s.Silent, 0, s.M),
		between("sizes", s.Size, headBytes, 32<<10), between("window", s.Window, 1, 1<<20),
		between("rate", s.Rate, 1, 10_000_000))
	if err == nil && slices.Contains(s.Phases, "kill") && (s.Level != cluster.Byzantine || s.Silent > 0 || s.M == 0) {
		return parley.FlagErrorf("phases", "kill ends m nodes: it needs --level byzantine, at least 4 nodes, and no --silent")
	}
	return err
}

// Result is the result of a measurement. Programs that compare systems read its JSON form.
type Result struct {
	System string   `json:"sys"`
	TLS    bool     `json:"tls"`
	N      int      `json:"n"`
	Size   int      `json:"size"`
	One    *Rate    `json:"one,omitempty"`
	Many   *Rate    `json:"many,omitempty"`
	First  *Latency `json:"latl,omitempty"`
	Second *Latency `json:"latf,omitempty"`
	// Open is for one sender, and OpenMany for all nodes.
	Open     *Open `json:"open,omitempty"`
	OpenMany *Open `json:"openm,omitempty"`
	Kill     *Kill `json:"kill,omitempty"`
}

// Rate is the rate of one phase.
type Rate struct {
	PerSecond float64 `json:"msgs_per_s"` // delivered, at the slowest node
	// CPU is the user and system time of all nodes and senders for one million messages, in seconds.
	CPU     float64 `json:"cpu_s_per_million"`
	Same    bool    `json:"same_order"` // all nodes deliver in the same order
	Drained bool    `json:"drained"`    // everything sent was delivered in the end
	Allocs  float64 `json:"allocs_per_msg"`
}

// Kill is what one sender sees when m nodes end.
type Kill struct {
	Before float64 `json:"msgs_per_s_before"` // delivered at the sender
	After  float64 `json:"msgs_per_s_after"`
	Silent float64 `json:"longest_silence_ms"` // at the sender, from when the nodes end
	Lone   float64 `json:"lone_p50_us"`        // latency at the sender of lone messages afterwards
	Lone99 float64 `json:"lone_p99_us"`
}

// Latency describes the latencies of lone messages, in microseconds.
type Latency struct {
	Count  int     `json:"n"`
	OwnP50 float64 `json:"self_p50_us"` // until the sender's node delivers
	OwnP99 float64 `json:"self_p99_us"`
	AllP50 float64 `json:"all_p50_us"` // until the last node does
	AllP99 float64 `json:"all_p99_us"`
}

// Run measures until it is done or the context ends, which is an error.
func Run(ctx context.Context, s Spec) (Result, error) {
	r := Result{System: "parley-" + s.Level.String(), TLS: true, N: s.N, Size: s.Size}
	l := &load{spec: s, correct: s.N - s.Silent}
	nodes, err := l.join(ctx)
	defer func() {
		for _, n := range nodes {
			if n != nil {
				_ = n.Close()
			}
		}
	}()
	if err != nil {
		return r, err
	}
	for i, n := range nodes[:l.correct] {
		l.groups = append(l.groups, n.Group("order"))
		if l.groups[i] == nil {
			return r, errors.New("a node has no group")
		}
	}
	for _, p := range Phases {
		if !slices.Contains(s.Phases, p) {
			continue
		}
		var err error
		switch p {
		case "latl":
			r.First, err = l.latency(ctx, 0)
		case "latf":
			r.Second, err = l.latency(ctx, 1%l.correct)
		case "one":
			r.One, err = l.rate(ctx, 1)
		case "many":
			r.Many, err = l.rate(ctx, l.correct)
		case "open":
			r.Open, err = l.open(ctx, 1)
		case "openm":
			r.OpenMany, err = l.open(ctx, l.correct)
		case "kill":
			r.Kill, err = l.kill(ctx, nodes)
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return r, fmt.Errorf("phase %s: %w", p, err)
		}
	}
	return r, nil
}

// join makes the cluster. Nodes that have not joined are nil.
func (l *load) join(ctx context.Context) (nodes []*cluster.Node, err error) {
	defer must.Return(&err)
	s := l.spec
	authority := must.Get(cert.NewAuthority("bench", 48*time.Hour, nil))
	trust := must.Get(cert.NewTrust(authority.Anchors(), nil))
	configs := make([]cluster.Config, s.N)
	var members []cluster.Member
	for i := range configs {
		listen, at := new(net.ListenConfig).Listen, "127.0.0.1:0"
		if s.Network != nil {
			configs[i].Network = s.Network(i)
			listen, at = configs[i].Network.Listen, ":0"
		}
		listener := must.Get(listen(ctx, "tcp", at))
		name := fmt.Sprintf("n%d", i+1)
		issued := must.Get(authority.IssueNode(name, []string{"127.0.0.1"}, 24*time.Hour))
		members = append(members, cluster.Member{Name: name, Address: listener.Addr().String(), Signer: issued.SignerKey()})
		configs[i] = cluster.Config{
			Name: name, Self: issued.Self(), Trust: trust, Listen: listener, Network: configs[i].Network,
			SignerKey: issued.Signer, M: s.M,
			Groups: []cluster.GroupConfig{{
				Name: "order", Level: s.Level, Deliver: func(d cluster.Delivery) { l.deliver(i, d.Payload) },
			}},
		}
		if i >= l.correct {
			configs[i].FaultInjection = &cluster.FaultInjection{Traitor: faulty.Silent}
		}
		if s.Dir != "" {
			configs[i].Dir, configs[i].Durable = filepath.Join(s.Dir, name), true
			must.Do(os.MkdirAll(configs[i].Dir, 0o700))
		}
	}
	nodes = make([]*cluster.Node, s.N)
	must.Each(s.N, func(i int) (err error) {
		configs[i].Members = members
		nodes[i], err = cluster.Join(ctx, configs[i])
		return err
	})
	return nodes, nil
}
