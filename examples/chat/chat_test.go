package main

import (
	"slices"
	"testing"
	"time"

	"parley/cluster"
	"parley/cluster/clustertest"
)

// asked makes Ada ask and Ben answer. Messages from Ada to Cleo take a second.
func asked(t *testing.T, level cluster.Level) (seen []string) {
	clustertest.Run(t, 3, func(c *cluster.Config) {
		configure(c)
		c.Groups[0].Level = level
	}, func(t *testing.T, c *clustertest.Cluster) {
		c.Delay(0, 2, time.Second)
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(say(t.Context(), c.Node(0), "?"))
		_, err := hear(t.Context(), c.Node(1), 1)
		must(err)
		must(say(t.Context(), c.Node(1), "!"))
		seen, err = hear(t.Context(), c.Node(2), 2)
		must(err)
	})
	return seen
}

func TestQuestionComesFirst(t *testing.T) {
	if seen := asked(t, cluster.Causal); !slices.Equal(seen, []string{"Ada: ?", "Ben: !"}) {
		t.Errorf("Cleo sees %q", seen)
	}
}

// With FIFO order, which keeps only the order of each sender, Cleo sees the answer first.
func TestAnswerComesFirstElsewhere(t *testing.T) {
	if seen := asked(t, cluster.FIFO); !slices.Equal(seen, []string{"Ben: !", "Ada: ?"}) {
		t.Errorf("Cleo sees %q", seen)
	}
}
