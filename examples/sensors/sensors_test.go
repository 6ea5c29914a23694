package main

import (
	"fmt"
	"testing"

	"parley/cluster/clustertest"
)

// The correct nodes agree on one temperature. It lies between two temperatures that correct nodes measured.
func TestSensors(t *testing.T) {
	clustertest.Run(t, 4, configure, func(t *testing.T, c *clustertest.Cluster) {
		for _, measured := range [][]string{{"20", "21", "23", "22"}, {"20", "20", "20", "99"}, {"18", "25", "25", "1"}} {
			agreed, err := agree(t.Context(), c.Nodes(), fmt.Sprint(measured), measured)
			if err != nil {
				t.Fatal(err)
			}
			if agreed[0] != agreed[1] || agreed[1] != agreed[2] {
				t.Errorf("of %v they make %v", measured, agreed)
			}
			if least, most := measured[0], max(measured[1], measured[2]); agreed[0] < least || agreed[0] > most {
				t.Errorf("of %v they make %s, which no correct node's temperature explains", measured, agreed[0])
			}
		}
	})
}
