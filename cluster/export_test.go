package cluster

import "testing"

// CompactEvery lets the state of tables replace their logs after so many records.
func CompactEvery(t *testing.T, records int) {
	before := compactEvery
	compactEvery = records
	t.Cleanup(func() { compactEvery = before })
}

// LongestState lets the state of a table be so long at most.
func LongestState(t *testing.T, bytes int) {
	before := tableLimits
	tableLimits.Snapshot = bytes
	t.Cleanup(func() { tableLimits = before })
}

// CompareEvery has replicas compare their states after so many commands.
func CompareEvery(t *testing.T, commands uint64) {
	before := tableLimits
	tableLimits.Compare = commands
	t.Cleanup(func() { tableLimits = before })
}
