//go:build testnet

package main

import (
	"strings"
	"testing"
)

// Nothing is lost when networks are cut and slow, and disks full and slow. It needs Linux
// and root, and fails where it can not be: who asks for it must not be told that all is
// well.
func TestNetworksAndDisks(t *testing.T) {
	kinds := []string{"cut-minority", "cut-first", "mute", "delay", "disk-full", "disk-slow", "stop-short"}
	out := runs(t, "-for", "40s", "-heal", "30s", "-seed", "2", "-only", strings.Join(kinds, ","))
	for _, kind := range kinds {
		if !strings.Contains(out, kind) {
			t.Errorf("%s did not befall:\n%s", kind, out)
		}
	}
}
