package lab

import "testing"

// SetUsual changes the default address during a test.
func SetUsual(t *testing.T, address string) {
	before := usual
	t.Cleanup(func() { usual = before })
	usual = address
}
