package traitor_test

import (
	"strconv"
	"testing"

	"parley/internal/lab/traitor"
)

// A link names a level by the number that the page shows.
func TestLevelsAreNumbered(t *testing.T) {
	for i, l := range traitor.Levels {
		if l.ID != strconv.Itoa(i+1) {
			t.Errorf("level %d has the id %s", i+1, l.ID)
		}
	}
}
