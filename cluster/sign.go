package cluster

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"

	"parley"
)

// signer signs with the node's key, and verifies with those that the members pin. What is
// signed has the cluster and the machine in it, and counts in no other.
type signer struct{ n *Node }

func (g signer) text(context string, b []byte) []byte {
	return signed(g.n.c.Trust.Cluster(), context, b)
}

// signed is what a signature is put to.
func signed(cluster, context string, b []byte) []byte {
	text := []byte("parley/cluster/v1")
	for _, part := range []string{cluster, context} {
		text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	return append(text, b...)
}

func (g signer) Sign(context string, b []byte) []byte {
	return ed25519.Sign(g.n.c.SignerKey, g.text(context, b))
}

func (g signer) Verify(context string, id parley.ID, b, sig []byte) bool {
	if int(id) >= len(g.n.c.Members) {
		return false
	}
	key := g.n.c.Members[id].Signer
	return len(key) == ed25519.PublicKeySize && ed25519.Verify(key, g.text(context, b), sig)
}

// checkSigner tells what is wrong with the node's key to sign with.
func (n *Node) checkSigner() error {
	switch key := n.c.SignerKey; {
	case key == nil:
		return nil
	case len(key) != ed25519.PrivateKeySize:
		return errors.New("cluster: the key to sign with is none")
	case !key.Public().(ed25519.PublicKey).Equal(n.c.Members[n.k.Self].Signer):
		return errors.New("cluster: the key to sign with is not the one that the members know of this node")
	}
	return nil
}
