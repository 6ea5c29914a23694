package members

import (
	"slices"
	"testing"
	"testing/synctest"

	"parley"
	"parley/cluster/kernel"
	"parley/cluster/kernel/kerneltest"
	"parley/membership/expel"
)

// Votes that arrive while a node starts take effect when it has started, because not all of its groups and tables
// exist before.
func TestExpelledWhileItBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seq, want := range []uint64{expel.Views, expel.All} {
			k := kerneltest.New(t, 4, 1)
			var ended []bool
			_, err := Open(k, func(all bool) { ended = append(ended, all) })
			if err != nil {
				t.Fatal(err)
			}
			for from := range parley.ID(2) {
				told := parley.Encode(nil, parley.Env{}, parley.Msg{Kind: expel.Told, Value: 7, Seq: uint64(seq)})
				err := k.Host.Frame(from+1, kernel.AdminChannel, told)
				if err != nil || k.State() != kernel.Running || from == 0 && k.ShutFrom() != 0 {
					t.Fatal(err, k.State())
				}
			}
			k.Work.Begin()
			if got := k.ShutFrom(); got != want {
				t.Errorf("it is expelled from %d, not %d", got, want)
			}
			k.Work.Wait()
			if k.State() != kernel.Expelled || len(ended) != 1 || ended[0] != (want == expel.All) {
				t.Fatal("it is", k.State(), ended)
			}
			for liars, takes := range map[bool]bool{false: false, true: seq == 0} {
				if err := k.Takes(liars); (err == nil) != takes {
					t.Errorf("told %d, liars %v: %v", seq, liars, err)
				}
			}
		}
	})
}

// A node that is expelled from views and then from everything, before it has started, ends everything.
func TestExpelledTwiceWhileItBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kerneltest.New(t, 4, 1)
		var ended []bool
		_, err := Open(k, func(all bool) { ended = append(ended, all) })
		if err != nil {
			t.Fatal(err)
		}
		for seq := range uint64(2) {
			for from := range parley.ID(2) {
				told := parley.Encode(nil, parley.Env{}, parley.Msg{Kind: expel.Told, Value: 7, Seq: seq})
				if err := k.Host.Frame(from+1, kernel.AdminChannel, told); err != nil {
					t.Fatal(err)
				}
			}
		}
		k.Work.Begin()
		k.Work.Wait()
		if k.State() != kernel.Expelled || len(ended) == 0 || slices.Contains(ended, false) {
			t.Error("it is", k.State(), ended)
		}
	})
}
