package catalog_test

import (
	"strings"
	"testing"

	"parley"
	"parley/catalog"
)

// The protocols whose source proves a property sketch the proof in a few sentences, and only of what they promise.
func TestProofsAreShortAndOfPromisedProperties(t *testing.T) {
	want := map[string]int{
		"om": 2, "eig": 2, "sm": 2, "phaseking": 2, "diffusion": 2, "fifo": 3, "causal": 3, "atomic": 1, "timestamp": 3,
		"vector": 2, "bracha": 4, "twophase": 2, "threephase": 2, "quorum": 2,
	}
	for _, p := range catalog.All() {
		if p.Promises == nil {
			continue
		}
		n := 0
		for _, promise := range p.Promises(parley.RunConditions{N: p.N, M: p.M}) {
			if promise.Proof == "" {
				continue
			}
			n++
			if !promise.Holds {
				t.Errorf("%s: %s has a proof and is not promised", p.Name, promise.Property)
			}
			if sentences := strings.Count(promise.Proof+" ", ". "); sentences < 1 || sentences > 6 || len(promise.Proof) > 520 {
				t.Errorf("%s: the proof of %s has %d sentences, %d bytes", p.Name, promise.Property, sentences, len(promise.Proof))
			}
		}
		if least := want[p.Name]; n < least {
			t.Errorf("%s: got %d proofs, want at least %d", p.Name, n, least)
		}
		for _, promise := range p.Promises(parley.RunConditions{N: p.N, M: p.M, Faulty: p.N, Network: parley.NetworkFaults{
			Lost: true, Cut: true, Doubled: true, Reordered: true,
		}, Processes: parley.ProcessFaults{LostDisk: true, Suspected: true}}) {
			if !promise.Holds && promise.Proof != "" {
				t.Errorf("%s: %s has a proof and is not promised", p.Name, promise.Property)
			}
		}
	}
}
