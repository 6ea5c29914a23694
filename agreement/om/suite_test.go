package om_test

import (
	"testing"

	"parley/agreement/om"
	"parley/lockstep"
	"parley/parleytest"
)

func TestSuite(t *testing.T) {
	small := om.New(om.Config{N: 4, M: 1, Source: 2, Default: []byte("0")}, lockstep.Simulated)
	t.Run("m=1", func(t *testing.T) { parleytest.Suite(t, small) })
	large := om.New(om.Config{N: 7, M: 2, Source: 3, Default: []byte("0")}, lockstep.Simulated)
	large.Rename = nil // a frame has its messages in the order of paths, which renaming changes
	t.Run("m=2", func(t *testing.T) { parleytest.Suite(t, large) })
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, om.New(om.Config{N: 5, M: 2, Default: []byte("0")}, lockstep.Simulated))
}
