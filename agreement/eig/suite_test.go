package eig_test

import (
	"testing"

	"parley/agreement/eig"
	"parley/lockstep"
	"parley/parleytest"
)

func TestSuite(t *testing.T) {
	for _, c := range []eig.Config{
		{N: 4, M: 1, Default: []byte("0")},
		{N: 7, M: 2, Source: 3, Default: []byte("0")},
		{N: 5, M: 1, Source: 2, Default: []byte("retreat"),
			Alphabet: [][]byte{[]byte("attack"), []byte("retreat"), []byte("wait")}},
	} {
		t.Run("", func(t *testing.T) { parleytest.Suite(t, eig.New(c, lockstep.Simulated)) })
	}
	early := lockstep.Simulated
	early.Early = true
	t.Run("early", func(t *testing.T) {
		parleytest.Suite(t, eig.New(eig.Config{N: 7, M: 2, Default: []byte("0")}, early))
	})
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, eig.New(eig.Config{N: 7, M: 2, Default: []byte("0")}, lockstep.Simulated))
}
