package sim

import (
	"crypto/ed25519"
	"encoding/binary"
	"math/bits"

	"parley"
)

// Signer makes and checks the signatures of a run.
type Signer interface {
	// Sign returns the signature of process as on b.
	Sign(as parley.ID, b []byte) []byte
	// Verify reports whether sig is the signature of process id on b.
	Verify(id parley.ID, b, sig []byte) bool
}

// Ideal returns a signer whose signatures are keyed hashes of 8 bytes. They are as fast as a hash, and as
// secure as real signatures against programs that do not search for keys. They have no state, so branches of
// an exploration are independent.
func Ideal(seed uint64) Signer { return ideal(seed) }

type ideal uint64

func (seed ideal) Sign(as parley.ID, b []byte) []byte {
	return binary.LittleEndian.AppendUint64(make([]byte, 0, 8), seed.token(as, b))
}

func (seed ideal) Verify(id parley.ID, b, sig []byte) bool {
	return len(sig) == 8 && binary.LittleEndian.Uint64(sig) == seed.token(id, b)
}

// token mixes the signer's secret and the bytes, eight at a time, with the high and low half of a product.
func (seed ideal) token(id parley.ID, b []byte) uint64 {
	h := mix(uint64(seed)^0x9e3779b97f4a7c15, uint64(id)+0xd1b54a32d192ed03)
	n := uint64(len(b))
	for ; len(b) >= 8; b = b[8:] {
		h = mix(h^binary.LittleEndian.Uint64(b), 0xa0761d6478bd642f)
	}
	var tail [8]byte
	copy(tail[:], b)
	return mix(h^binary.LittleEndian.Uint64(tail[:]), n^0xe7037ed1a0b428db)
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// Ed25519 returns a signer for n processes with real signatures of 64 bytes. The keys are drawn from the seed.
func Ed25519(seed uint64, n int) Signer {
	keys := make(real, n)
	for i := range keys {
		var s [ed25519.SeedSize]byte
		binary.LittleEndian.PutUint64(s[:], seed)
		binary.LittleEndian.PutUint64(s[8:], uint64(i))
		key := ed25519.NewKeyFromSeed(s[:])
		keys[i] = pair{key, key.Public().(ed25519.PublicKey)}
	}
	return keys
}

type real []pair

type pair struct {
	private ed25519.PrivateKey
	public  ed25519.PublicKey
}

func (k real) Sign(as parley.ID, b []byte) []byte { return ed25519.Sign(k[as].private, b) }

func (k real) Verify(id parley.ID, b, sig []byte) bool {
	return int(id) < len(k) && ed25519.Verify(k[id].public, b, sig)
}
