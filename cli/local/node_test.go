package local

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"parley/cli/console"
)

// Waiting for nodes ends when all are members, when one ends, when the user interrupts it, and after a limit: then with
// an error and a line that names the node and its log.
func TestAwaitMembers(t *testing.T) {
	ended, late := make(chan struct{}, 1), make(chan time.Time, 1)
	ended <- struct{}{}
	late <- time.Time{}
	for what, row := range map[string]struct {
		member, interrupted bool
		gone                <-chan struct{}
		late                <-chan time.Time
		want                bool
		err                 error
		says                string
	}{
		"all are members": {member: true, want: true},
		"a node ends":     {gone: ended},
		"interrupted":     {interrupted: true},
		"late": {late: late, err: console.ExitError(console.Unfinished),
			says: "parley: node1 has not joined the cluster within 1m0s: see bank/log\n"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if row.interrupted {
			cancel()
		}
		var stderr strings.Builder
		n := &Node{Name: "node1", Log: "bank/log", process: &Process{in: make(chan struct{})}}
		if row.member {
			close(n.process.in)
		}
		got, err := awaitMembers(ctx, &console.App{Err: &stderr}, []*Node{n}, row.gone, row.late)
		cancel()
		if got != row.want || !errors.Is(err, row.err) || stderr.String() != row.says {
			t.Errorf("%s: got %v, %v, %q; want %v, %v, %q", what, got, err, stderr.String(), row.want, row.err, row.says)
		}
	}
}
