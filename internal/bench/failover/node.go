package failover

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"parley/cluster"
	"parley/cluster/cert"
	"parley/cluster/link"
	"parley/internal/must"
)

// order is a message to a node: first where its keys are, then who the members are, then when a member failed.
type order struct {
	Dir, Name      string           `json:",omitempty"`
	Suspect, Every time.Duration    `json:",omitempty"`
	Members        []cluster.Member `json:",omitempty"`
	Failed         time.Time        `json:",omitzero"`
}

// answer is a node's answer to an order.
type answer struct {
	Failed  string        `json:",omitempty"`
	Listens string        `json:",omitempty"`
	First   time.Duration // from the failure to the first delivery of a message that was sent after it
	Silent  time.Duration // the longest time without a delivery
	Lost    int           // own messages that this node did not deliver
}

// node is a node in its own process.
type node struct {
	order
	network link.Network // nil: the system's
	listen  net.Listener
	joined  *cluster.Node
	end     context.CancelFunc
	sending sync.WaitGroup

	mu   sync.Mutex
	came []delivery
	sent int
	mine int   // own messages delivered
	err  error // the first error of sending
}

// delivery is the time when a message was sent, by the clock of its sender, and the time when it was delivered.
type delivery struct{ sent, at time.Time }

// Serve runs a node: it carries out the orders from in until in ends. Tests pass a network; nil means the system's.
func Serve(network link.Network, in io.Reader, out io.Writer) error {
	lines, says := json.NewDecoder(in), json.NewEncoder(out)
	n := &node{network: network, end: func() {}}
	defer n.close()
	for {
		var o order
		if err := lines.Decode(&o); err != nil {
			return nil // the parent process has ended or needs the node no more
		}
		a, err := n.follow(o)
		if err != nil {
			a.Failed = err.Error()
		}
		if err := says.Encode(a); err != nil {
			return err
		}
	}
}

func (n *node) follow(o order) (a answer, err error) {
	switch {
	case o.Name != "":
		n.order = o
		listen := new(net.ListenConfig).Listen
		if n.network != nil {
			listen = n.network.Listen
		}
		if n.listen, err = listen(context.Background(), "tcp", "127.0.0.1:0"); err != nil {
			return a, err
		}
		a.Listens = n.listen.Addr().String()
		return a, nil
	case o.Members != nil:
		return a, n.join(o.Members)
	}
	return n.report(o.Failed)
}

// join joins the cluster and begins to send.
func (n *node) join(members []cluster.Member) (err error) {
	defer must.Return(&err)
	trust := must.Get(cert.LoadTrust(n.Dir, nil))
	self, signer := must.Get2(cert.LoadNode(n.Dir, n.Name))
	s := n.Suspect
	n.joined = must.Get(cluster.Join(context.Background(), cluster.Config{
		Name: n.Name, Members: members, Self: self, Trust: trust, SignerKey: signer, Listen: n.listen, Network: n.network,
		Times:  cluster.Times{Beat: s / 10, Suspect: s, Flush: s / 2, Retry: s},
		Groups: []cluster.GroupConfig{{Name: "order", Level: cluster.Total, Deliver: n.deliver}},
	}))
	ctx, end := context.WithCancel(context.Background())
	n.end = end
	n.sending.Go(func() { n.send(ctx) })
	return nil
}

// send sends a message with the current time in it every Every.
func (n *node) send(ctx context.Context) {
	tick := time.NewTicker(n.Every)
	defer tick.Stop()
	group := n.joined.Group("order")
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		b := append([]byte(nil), n.Name...)
		b = binary.BigEndian.AppendUint64(b, uint64(time.Now().UnixNano()))
		err := group.BroadcastAsync(b)
		n.mu.Lock()
		if err == nil {
			n.sent++
		} else if n.err == nil {
			n.err = err
		}
		n.mu.Unlock()
	}
}

func (n *node) deliver(d cluster.Delivery) {
	at, from := time.Now(), len(d.Payload)-8
	n.mu.Lock()
	defer n.mu.Unlock()
	n.came = append(n.came, delivery{time.Unix(0, int64(binary.BigEndian.Uint64(d.Payload[from:]))), at})
	if string(d.Payload[:from]) == n.Name {
		n.mine++
	}
}

// settle is how long a node waits for the delivery of its last messages.
const settle = 2 * time.Second

// report stops sending, and returns what the failure has cost.
func (n *node) report(failed time.Time) (a answer, err error) {
	n.end()
	n.sending.Wait()
	for end := time.Now().Add(settle); n.waits() && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err != nil {
		return a, n.err
	}
	a.Lost = n.sent - n.mine
	last, first := failed.Add(-100*time.Millisecond), time.Time{}
	for _, d := range n.came {
		if d.at.Before(last) {
			continue
		}
		a.Silent = max(a.Silent, d.at.Sub(last))
		last = d.at
		if first.IsZero() && d.sent.After(failed) {
			first = d.at
		}
	}
	if first.IsZero() {
		return a, fmt.Errorf("%s: nothing that was sent after the failure was delivered", n.Name)
	}
	a.First = first.Sub(failed)
	return a, nil
}

// waits reports whether own messages are in flight.
func (n *node) waits() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mine < n.sent
}

func (n *node) close() {
	n.end()
	n.sending.Wait()
	if n.joined != nil {
		_ = n.joined.Close()
	} else if n.listen != nil {
		_ = n.listen.Close()
	}
}
