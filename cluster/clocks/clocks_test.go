package clocks

import (
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/cluster/kernel/kerneltest"
)

// A node that can read no other clock is not synchronized, shows its own date, and logs that once a minute; its
// wake latency is measured anyway.
func TestClockAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		k := kerneltest.New(t, 4, 1)
		k.Log = slog.New(slog.NewTextHandler(&log, nil))
		s, err := Open(k, Config{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		r := s.Now()
		s.Close()
		if r.Synchronized || r.Bound != math.MaxInt64 || r.Offset != 0 {
			t.Errorf("%+v", r)
		}
		if v := s.Look(); v.Read.Len() > 0 || s.Rate() != 0 {
			t.Errorf("%+v", v)
		}
		if l := s.Lateness(); l.Samples < 100 || l.Pauses > 0 {
			t.Errorf("%+v", l)
		}
		if n := strings.Count(log.String(), "clock is not synchronized; too few others"); n != 1 {
			t.Errorf("it says %d times that it is not synchronized: %s", n, log.String())
		}
	})
}

// Clocks that cannot be kept together are refused.
func TestClockPlanFails(t *testing.T) {
	for text, c := range map[string]Config{
		"use 4s":   {Error: 10 * time.Millisecond, Period: time.Millisecond},
		"drift by": {Error: time.Hour},
	} {
		if _, err := c.Plan(4, 1, 100*time.Millisecond); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
