package bank_test

import (
	"testing"

	"parley/replica/bank"
)

// The lecture's two orders: 1242 and 1230 dollars (causal broadcast, continued).
func TestLecture(t *testing.T) {
	for _, test := range []struct {
		commands []string
		balance  string
	}{
		{[]string{"deposit 150", "interest 8"}, "1242"},
		{[]string{"interest 8", "deposit 150"}, "1230"},
		{[]string{"withdraw 1", "interest 1", "balance"}, "1008.99"},
		{[]string{"withdraw 1001"}, "1000"},
		{[]string{"deposit -1", "deposit x", "deposit", "lend 5", "balance 3", ""}, "1000"},
		{[]string{"interest 1001", "deposit 1099511627775"}, "1000"},
	} {
		a := bank.New()
		for _, c := range test.commands {
			a.Apply([]byte(c))
		}
		if a.String() != test.balance {
			t.Errorf("%q: %s, not %s", test.commands, a, test.balance)
		}
		b := bank.New()
		if !b.Restore(a.Snapshot()) || b.String() != a.String() {
			t.Errorf("%q: restored %s", test.commands, b)
		}
	}
	for _, c := range []string{"", "balance 3", "lend 5", "deposit 1 2"} {
		if got := string(bank.New().Apply([]byte(c))); got != "no such command" {
			t.Errorf("%q: %s", c, got)
		}
	}
	for _, b := range []string{"", "\x01", "\x80", "\x80\x00", "\x02\x02"} {
		if bank.New().Restore([]byte(b)) {
			t.Errorf("%q is taken for a balance", b)
		}
	}
}
