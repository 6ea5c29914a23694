package tetra_test

import (
	"testing"

	"parley/agreement/tetra"
	"parley/parleytest"
)

func TestSuite(t *testing.T) {
	for _, c := range []tetra.Config{{N: 4, M: 1}, {N: 7, M: 2, Source: 3}, {N: 5, M: 1, Wait: 3500}} {
		t.Run("", func(t *testing.T) {
			parleytest.Suite(t, tetra.New(c), parleytest.Options{
				Alphabet: []string{"a", "b"}, Recovers: true,
			})
		})
	}
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, tetra.New(tetra.Config{N: 4, M: 1}))
}
