package parley_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"parley"
)

// decided makes a history in which each process decides a value, and event 1 is an unrelated request.
func decided(values ...uint64) *parley.History {
	h := &parley.History{N: len(values), Over: true, Requests: []parley.ExternalEvent{{Order: 1}}}
	for i, v := range values {
		h.Deliveries = append(h.Deliveries, parley.ExternalEvent{
			At: parley.ID(i), Order: uint64(i + 2), Msg: parley.Msg{Kind: parley.Decide, Value: v},
		})
	}
	return h
}

var alike = parley.Property{Name: "agreement", Mode: parley.Always, Check: func(h *parley.History) error {
	for i, a := range h.Deliveries {
		for _, b := range h.Deliveries[:i] {
			if a.Msg.Value != b.Msg.Value {
				return fmt.Errorf("%s decided %d and %s decided %d", b.At, b.Msg.Value, a.At, a.Msg.Value)
			}
		}
	}
	return nil
}}

func TestBreachOfAlwaysPropertyIsFirstEventAndWhatItNeeds(t *testing.T) {
	if b := alike.Breach(decided(1, 1, 1)); b != nil {
		t.Errorf("got %+v, want no breach", b)
	}
	b := alike.Breach(decided(1, 1, 0, 0))
	if b == nil || b.First != 4 || !slices.Equal(b.Events, []uint64{2, 4}) || b.Err.Error() != "0 decided 1 and 2 decided 0" {
		t.Errorf("got %+v, want the decisions 2 and 4", b)
	}
}

func TestBreachOfEventuallyPropertyHasNoFirstEvent(t *testing.T) {
	all := parley.Property{Mode: parley.Eventually, Check: func(h *parley.History) error {
		if h.Over && len(h.Requests) > 0 && len(h.Deliveries) < 3 {
			return errors.New("not all decided")
		}
		return nil
	}}
	b := all.Breach(decided(1, 1))
	if b == nil || b.First != 0 || !slices.Equal(b.Events, []uint64{1}) {
		t.Errorf("got %+v, want only the request", b)
	}
}

func TestBreachOfLongHistoryNamesFirstEventOnly(t *testing.T) {
	values := make([]uint64, 1000)
	values[900] = 1
	b := alike.Breach(decided(values...))
	if b == nil || b.First != 902 || !slices.Equal(b.Events, []uint64{902}) {
		t.Errorf("got %+v, want event 902", b)
	}
}
