package split_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"parley"
	"parley/agreement/eig"
	"parley/explore"
	"parley/parleytest"
)

func search(t *testing.T, o explore.Options) explore.Report {
	t.Helper()
	r, err := explore.Search(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func propose(at parley.ID, value string) explore.Request {
	return explore.Request{At: at, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(value)}}
}

func asking(requests ...explore.Request) []explore.Root { return []explore.Root{{Requests: requests}} }

// liars returns all ways in which m of n processes lie, for each value of the source.
func liars(n, m int, values ...string) []explore.Root {
	return parleytest.Liars(n, m, parleytest.Proposals(values...))
}

func oral(n, m int) eig.Config { return eig.Config{N: n, M: m, Default: []byte("0")} }

// processor returns the processor time that this program has used.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
