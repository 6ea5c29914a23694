package split_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"parley"
	"parley/agreement/eig"
	"parley/explore"
	"parley/faulty"
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

// liars are all ways in which one process of n lies, or more, whatever the source says.
// What a lying source proposes makes no difference.
func liars(n, m int, values ...string) []explore.Root {
	var out []explore.Root
	for set := range 1 << n {
		how := make(map[parley.ID]faulty.Behaviour)
		for id := range n {
			if set>>id&1 == 1 {
				how[parley.ID(id)] = faulty.Any
			}
		}
		if len(how) != m {
			continue
		}
		for i, v := range values {
			if _, lies := how[0]; !lies || i == 0 {
				out = append(out, explore.Root{Faulty: how, Requests: []explore.Request{propose(0, v)}})
			}
		}
	}
	return out
}

func oral(n, m int) eig.Config { return eig.Config{N: n, M: m, Default: []byte("0")} }

// processor is the time that the processor has worked for this program.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
