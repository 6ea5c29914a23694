package byzantine_test

import (
	"testing"

	"parley/broadcast/byzantine"
	"parley/parleytest"
)

func TestSuite(t *testing.T) {
	for _, c := range []byzantine.Config{{N: 4, M: 1}, {N: 4, M: 1, Durable: true}, {N: 5, M: 1, Tenure: 3}} {
		t.Run("", func(t *testing.T) { parleytest.Suite(t, byzantine.New(c), parleytest.Options{Recovers: c.Durable}) })
	}
}
