package sm

import "parley"

// Why a chain is refused. What is faulty, malicious or merely known already is
// all the same to the algorithm: it is as if it had not come.
const (
	malformed         = "malformed"
	oversizedValue    = "oversized-value"
	chainLength       = "chain-length"           // not the r+1 signers of round r
	notFromSource     = "not-from-source"        // the first signer is another
	unknownSigner     = "unknown-signer"         // not a process of the system
	repeatedSigner    = "repeated-signer"        //
	ownSignature      = "own-signature"          // the receiver has signed it before
	notSender         = "last-signer-not-sender" // the last signer is not who sent it
	duplicate         = "duplicate-unverified"   // the value is in V already
	thirdValue        = "third-value"            // RelayTwo: V is full
	afterBadSignature = "after-bad-signature"    // RelayTwo: its sender is caught lying in this round
	badSignature      = "bad-signature"
)

// Judge tells what process self is to think of a body that another process sent
// it in a round: the value, the signers in order as far as they could be read,
// and the reason to refuse it, empty if it is a chain that counts. It knows
// nothing of what self has heard before: whether the value is new, a process
// asks itself before it has the signatures verified.
func Judge(c Config, self, from parley.ID, round int, body []byte,
	verify func(id parley.ID, b, sig []byte) bool,
) (value []byte, signers []parley.ID, reason string) {
	var j judge
	ch, why := j.read(&c, self, from, round, body)
	if why == "" {
		why = j.verify(instanceDigest(&c), ch, verify)
	}
	return ch.value, ch.signers(), why
}

// judge is the memory that judging one chain takes.
type judge struct {
	links   []link
	signers parley.Set
	digest  digest // after verify: what the next process would sign
}

// read checks all that can be seen without verifying a signature: size, then
// the length of the chain, who signed it first, who signed it at all, and who
// signed it last.
func (j *judge) read(c *Config, self, from parley.ID, round int, body []byte) (chain, string) {
	ch, why := decode(body, j.links)
	j.links = ch.links
	switch {
	case why != "":
		return ch, why
	case len(ch.links) != round+1:
		return ch, chainLength
	case ch.links[0].signer != c.Source:
		return ch, notFromSource
	}
	j.signers = parley.Set{}
	for _, l := range ch.links {
		switch {
		case int(l.signer) >= c.N:
			return ch, unknownSigner
		case !j.signers.Add(l.signer):
			return ch, repeatedSigner
		}
	}
	switch {
	case j.signers.Has(self):
		return ch, ownSignature
	case ch.links[round].signer != from:
		return ch, notSender
	}
	return ch, ""
}

// verify checks the signatures in their order.
func (j *judge) verify(d digest, ch chain, verify func(id parley.ID, b, sig []byte) bool) string {
	j.digest = d.with(ch.value)
	for _, l := range ch.links {
		if !verify(l.signer, j.digest[:], l.sig) {
			return badSignature
		}
		j.digest = j.digest.and(l)
	}
	return ""
}
