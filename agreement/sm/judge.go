package sm

import "parley"

// Why a chain is refused. To the algorithm a chain that is faulty, malicious or
// already known is the same: it is as if it had not arrived.
const (
	malformed         = "malformed"
	oversizedValue    = "oversized-value"
	chainLength       = "chain-length"           // not the r+1 signers of round r
	notFromSource     = "not-from-source"        // the first signer is another process
	unknownSigner     = "unknown-signer"         // not a process of the system
	repeatedSigner    = "repeated-signer"        //
	ownSignature      = "own-signature"          // the receiver has already signed it
	notSender         = "last-signer-not-sender" // the last signer is not the sender
	duplicate         = "duplicate-unverified"   // the value is already in V
	thirdValue        = "third-value"            // RelayTwo: V is full
	afterBadSignature = "after-bad-signature"    // RelayTwo: its sender sent a bad signature in this round
	badSignature      = "bad-signature"
)

// Judge returns how process self judges a body that another process sent to it in a round. The result is the value,
// the signers in order, as far as they could be read, and the reason to refuse the body. The reason is empty if the
// chain counts. Judge does not use what self has received before: a process checks whether the value is new before it
// verifies the signatures.
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

// judge is scratch memory for judging one chain.
type judge struct {
	links   []link
	signers parley.Set
	digest  digest // after verify: what the next process would sign
}

// read checks all that needs no verification of a signature: the size, the
// length of the chain, the first signer, all signers, and the
// last signer.
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

func (j *judge) verify(d digest, ch chain, verify func(id parley.ID, b, sig []byte) bool) string {
	j.digest = d.withValue(ch.value)
	for _, l := range ch.links {
		if !verify(l.signer, j.digest[:], l.sig) {
			return badSignature
		}
		j.digest = j.digest.withLink(l)
	}
	return ""
}
