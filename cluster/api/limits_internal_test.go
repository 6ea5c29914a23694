package api

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A client's recent requests and cancellations also count on its next connection. An inactive client takes no
// memory.
func TestAnotherConnectionIsNoNewBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clients
		c.init(Limits{Rate: 10, Resets: 1}.withDefaults())
		visit := func(name string, asks, takes int) (refused, often bool) {
			if !c.know(name, new(conn)) {
				t.Fatal("too many connections")
			}
			for range asks {
				if c.begin(name, false) != nil {
					refused = true
					continue
				}
				c.end(name, false)
			}
			for range takes {
				often = c.took(name)
			}
			c.leave(name)
			return refused, often
		}
		if refused, _ := visit("a", 10, 0); refused {
			t.Error("a client may not ask as often as it may")
		}
		if refused, _ := visit("a", 1, 0); !refused {
			t.Error("a client that connects anew may ask more often")
		}
		if _, often := visit("a", 0, 10); often {
			t.Error("a client may not take back as much as it may")
		}
		if _, often := visit("a", 0, 1); !often {
			t.Error("a client that connects anew may take back more")
		}
		time.Sleep(time.Minute)
		for k := range 100 {
			visit(fmt.Sprint(k), 5, 5)
		}
		time.Sleep(time.Minute)
		if visit("a", 5, 0); len(c.byName) != 1 {
			t.Errorf("%d clients are remembered", len(c.byName))
		}
	})
}
