package explore

import "testing"

// A state that is reached again must be expanded for the deliveries that were asleep and no longer are:
// together with the others if it was not expanded yet, otherwise separately.
func TestAwake(t *testing.T) {
	var v visited
	first := func(i id, isNew bool, awake uint64) id {
		t.Helper()
		if !isNew || awake != 0 {
			t.Fatalf("new: %t, awake: %b", isNew, awake)
		}
		return i
	}
	again := func(at id, sleep, want uint64) {
		t.Helper()
		if i, isNew, awake := v.add(42, 7, 1, sleep); i != at || isNew || awake != want {
			t.Errorf("%d of %d, new: %t, awake: %b of %b", i, at, isNew, awake, want)
		}
	}
	at := first(v.add(42, 5, 3, 0b1111))
	again(at, 0b0111, 0)
	if asleep := v.expand(at); asleep != 0b0111 {
		t.Errorf("asleep: %b", asleep)
	}
	again(at, 0b1110, 0b0001)
	again(at, 0b1110, 0)
	again(at, 0b0010, 0b0100)
	if asleep := v.expand(at); asleep != 0b0010 {
		t.Errorf("asleep: %b", asleep)
	}
	if from, move := v.before(at); from != 5 || move != 3 {
		t.Errorf("before it %d by %d", from, move)
	}
	for k := range uint64(5000) { // the index grows
		first(v.add(spread(k+1000), 0, int(k), k))
	}
	if bytes := v.bytes.Load(); bytes < 5001*28 {
		t.Errorf("5001 states take %d bytes", bytes)
	}
	again(at, 0, 0b0010)
}
