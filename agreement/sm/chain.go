package sm

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"parley"
	"parley/agreement/problem"
)

// maxSignature is the longest signature accepted, in bytes. Ed25519 has 64.
const maxSignature = 128

// chain is the paper's v:0:j1:...:jk, a value and its signers, the
// source first. On the wire it is
//
//	length of the value, the value, number of links,
//	then each link: signer, length of the signature, the signature
//
// with every number a varint in its shortest form: a chain has one encoding.
type chain struct {
	value []byte
	links []link
}

// link is one signature. It covers the value and all links before it.
type link struct {
	signer parley.ID
	sig    []byte
}

func (ch chain) encode() []byte {
	const most = 64 + 2*binary.MaxVarintLen16 // of a link, for signatures as long as Ed25519's
	body := make([]byte, 0, len(ch.value)+2*binary.MaxVarintLen16+len(ch.links)*most)
	body = parley.AppendBytes(body, ch.value)
	body = binary.AppendUvarint(body, uint64(len(ch.links)))
	for _, l := range ch.links {
		body = binary.AppendUvarint(body, uint64(l.signer))
		body = parley.AppendBytes(body, l.sig)
	}
	return body
}

// decode reads a chain, into the memory given for its links. All its parts alias
// body. The reason is empty if the chain is well-formed.
func decode(body []byte, links []link) (ch chain, reason string) {
	r := parley.Reader{Rest: body}
	if ch.value = r.Bytes(); len(ch.value) > problem.MaxValue {
		return ch, oversizedValue
	}
	ch.links = links[:0]
	for i := r.Number(parley.MaxProcesses); i > 0 && !r.Bad; i-- {
		ch.links = append(ch.links, link{r.ID(1 << 16), r.Take(r.Number(maxSignature))})
	}
	if !r.Done() {
		return ch, malformed
	}
	return ch, ""
}

func (ch chain) signers() []parley.ID {
	ids := make([]parley.ID, len(ch.links))
	for i, l := range ch.links {
		ids[i] = l.signer
	}
	return ids
}

func (ch chain) signed(id parley.ID) bool {
	return slices.ContainsFunc(ch.links, func(l link) bool { return l.signer == id })
}

// digest is what the next signature of a chain signs. It covers the
// instance, the value, and every signer and signature so far, so that no chain
// can be cut, spliced or reused in another instance; and it grows link by link,
// so that checking a chain of k links takes k short hashes.
type digest [sha256.Size]byte

// The first byte is the type of what is hashed, so that no input can pass for another type.
const (
	tagInstance = iota
	tagValue
	tagLink
)

// instanceDigest covers what all signatures of an instance have in common.
func instanceDigest(c *Config) digest {
	b := []byte{tagInstance}
	b = append(b, "parley/sm/v1"...)
	b = parley.AppendBytes(b, c.Session)
	b = binary.AppendUvarint(b, uint64(c.N))
	b = binary.AppendUvarint(b, uint64(c.M))
	b = binary.AppendUvarint(b, uint64(c.Source))
	return sha256.Sum256(b)
}

// withValue returns the digest of an instance and a value: what the source signs.
func (d digest) withValue(value []byte) digest {
	var room [1 + sha256.Size + problem.MaxValue]byte
	b := append(room[:0], tagValue)
	b = append(b, d[:]...)
	return sha256.Sum256(append(b, value...))
}

// withLink returns the digest with one more link: what the next process signs. Signer and
// digest have fixed lengths, so the signature is the rest.
func (d digest) withLink(l link) digest {
	var room [1 + sha256.Size + 2 + maxSignature]byte
	b := append(room[:0], tagLink)
	b = append(b, d[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(l.signer))
	return sha256.Sum256(append(b, l.sig...))
}
