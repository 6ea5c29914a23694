package mesh

import (
	"crypto/ed25519"
	"encoding/binary"

	"parley"
)

// Signer signs with the node's key, and verifies with the keys of the members in the configuration. Signed text
// includes the cluster and the machine, so a signature is not valid in another cluster or machine.
type Signer struct {
	Cluster string
	Key     ed25519.PrivateKey
	Members []ed25519.PublicKey
}

// text returns the signed text.
func (g Signer) text(context string, b []byte) []byte {
	text := []byte("parley/cluster/v1")
	for _, part := range []string{g.Cluster, context} {
		text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	return append(text, b...)
}

// Sign returns the node's signature.
func (g Signer) Sign(context string, b []byte) []byte {
	return ed25519.Sign(g.Key, g.text(context, b))
}

// Verify reports whether sig is the signature of a member.
func (g Signer) Verify(context string, id parley.ID, b, sig []byte) bool {
	if int(id) >= len(g.Members) {
		return false
	}
	key := g.Members[id]
	return len(key) == ed25519.PublicKeySize && ed25519.Verify(key, g.text(context, b), sig)
}
