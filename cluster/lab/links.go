package lab

import (
	"crypto/ed25519"
	"crypto/tls"
	"fmt"

	"parley"
	"parley/cluster/cert"
	"parley/cluster/link"
)

// carrier carries messages, and counts those that are lost at once.
type carrier member

func (c *carrier) Send(to parley.ID, class link.Class, channel uint32, head, body []byte) bool {
	if c.mesh.Send(to, class, channel, head, body) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counted.Sent[to]--
	if c.up.Has(to) || !c.down.Has(to) {
		c.counted.Lost++
	}
	return false
}

func (c *carrier) Flush(to parley.ID) { c.mesh.Flush(to) }

// handler takes what comes on the links.
type handler member

func (h *handler) Up(id parley.ID, _ uint64) {
	h.mu.Lock()
	h.up.Add(id)
	if h.down.Has(id) { // it begins to count anew, as we do
		h.down.Remove(id)
		h.counted.Sent[id], h.counted.Received[id] = 0, 0
	}
	all := h.up.Len() == h.Header.N-1
	h.mu.Unlock()
	if all {
		(*member)(h).say(answer{Connected: true})
	}
}

func (h *handler) Down(id parley.ID, _ error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.up.Remove(id)
	h.down.Add(id)
}

func (h *handler) Frame(from parley.ID, channel uint32, b []byte) {
	if err := h.host.Frame(from, channel, b); err != nil {
		(*member)(h).say(answer{Failed: fmt.Sprintf("a frame of %s that is no message: %v", name(from), err)})
	}
}

func (h *handler) Burst(parley.ID) { h.host.Flush() }

// identities are who may be at the other end of a link.
type identities member

func (i *identities) Accept() *tls.Config { return i.trust.Accept(i.self, cert.Node) }

func (i *identities) Dial(id parley.ID) *tls.Config {
	return i.trust.Dial(i.self, cert.Identity{Cluster: i.trust.Cluster(), Kind: cert.Node, Name: name(id)})
}

func (i *identities) Who(state tls.ConnectionState) (parley.ID, error) {
	who, err := i.trust.Check(state)
	for id := range parley.ID(i.Header.N) {
		if err == nil && who.Name == name(id) {
			return id, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("%s is no process of this run", who)
	}
	return 0, err
}

func (i *identities) Watch(state tls.ConnectionState, end func(error)) (stop func()) {
	return i.trust.Watch(state, end)
}

func (*identities) Explain(err error) error { return cert.Explain(err) }

// signer signs with the key of this process, and verifies with the public keys of all.
type signer member

func (g *signer) Sign(_ string, b []byte) []byte { return ed25519.Sign(g.signer, b) }

func (g *signer) Verify(_ string, id parley.ID, b, sig []byte) bool {
	return int(id) < len(g.Signers) && ed25519.Verify(g.Signers[id], b, sig)
}
