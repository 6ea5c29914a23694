package cli_test

import (
	"strings"
	"testing"
)

// judged is a command line and what its output must and must not contain.
type judged struct {
	line   string // words in '' are one
	status int
	has    []string
	lacks  []string
}

func judge(t *testing.T, list []judged) {
	t.Helper()
	for _, one := range list {
		out, stderr, status := run(words(one.line)...)
		out = strings.Join(strings.Fields(out+stderr), " ") + "\n" + out // folded or not
		if status != one.status {
			t.Errorf("parley %s: got status %d, want %d:\n%s", one.line, status, one.status, out)
		}
		for _, text := range one.has {
			if !strings.Contains(out, text) {
				t.Errorf("parley %s: got\n%s\nwant %q in it", one.line, out, text)
			}
		}
		for _, text := range one.lacks {
			if strings.Contains(out, text) {
				t.Errorf("parley %s: got\n%s\nwant no %q in it", one.line, out, text)
			}
		}
	}
}

// A crash in a round is refused by every command and host if the protocol has no rounds.
func TestCrashInRoundNeedsRounds(t *testing.T) {
	why := "crash@r1:0 names a round, and forwarding has none: write crash@DURATION, as in crash@5000ns"
	var list []judged
	for _, command := range []string{
		"run forwarding --faulty 1=crash@r1 --requests '[{at: 2, when: 1000, broadcast: m}]'",
		"sweep forwarding --faulty 1=crash@r1 --seeds 1..3",
		"explore forwarding --faulty 1=crash@r1 --beyond-bound",
		"run forwarding --host cluster --faulty 1=crash@r1",
	} {
		list = append(list, judged{command, 2, []string{why}, []string{"allowed are", ", and any"}})
	}
	for _, protocol := range []string{"atomic", "vector", "bank", "detector"} {
		list = append(list, judged{"run " + protocol + " --faulty 1=crash@r1", 2, []string{"names a round"}, nil})
	}
	list = append(list, judged{"run eig --faulty 3=crash@r1", 0, []string{"P3 (crash@r1:0)"}, nil})
	judge(t, list)
}

// When a crashed process suspects others, this is not a false suspicion. A crash at a time is a crash: nothing
// happens to the process afterward, and the others detect it.
func TestCrashAtTimeIsCrash(t *testing.T) {
	judge(t, []judged{
		{"run atomic --faulty 1=crash@2000ns --requests '[{at: 2, when: 5000, broadcast: m}]' --seed 2", 0,
			[]string{"✓ validity held ", "✓ agreement held ", "– total order not applicable "}, []string{"P1 ✗: (suspects", "had not crashed"}},
		{"run detector --faulty 1=crash@2000ns", 0, []string{"P2 suspects P1", "✓ detection seen"}, []string{"P1 ✗: (suspects", "VIOLATED"}},
		{"run diffusion -n 3 --faulty 1=crash@2000ns --requests '[{at: 2, when: 5000, broadcast: m}]'", 0, []string{"P1 ✗: nothing"}, nil},
		{"run ballot --faulty 1=crash@1us --seed 1", 0, []string{"✓ termination held"}, nil},
		{"run ballot --crashes '[{process: 1, when: 0}]'", 0,
			[]string{"│ P1 ✗ │ – │ – │ faulty │", "✓ termination held"}, nil},
		{"run ballot --crashes '[{process: 1, when: 0, step: 1}]'", 2, []string{"either step, from 1, or when, from 0"}, nil},
	})
}

// The theorem's count is for the actual number of broadcasts.
func TestNoBroadcastCostsNothing(t *testing.T) {
	judge(t, []judged{
		{"run diffusion --workload '{broadcasts: 0}'", 0,
			[]string{"messages: 0; the theorem says 13 for one broadcast to all, 0 for 0"}, []string{"13 for 1"}},
	})
}

// A property that demands nothing of a run is "not applicable", in text and in JSON, and no promise.
func TestNotApplicableIsAVerdict(t *testing.T) {
	judge(t, []judged{
		{"run eig -n 4 -m 1 --faulty 1=twofaced", 0,
			[]string{"– validity not applicable", "decides on its value not applicable: the source is faulty"}, []string{"nothing is demanded"}},
		{"run eig -n 4 -m 1 --faulty 1=twofaced --json", 0,
			[]string{`"outcome": "not applicable", "because": "the source is faulty"`}, nil},
		{"run twophase --values no", 0, []string{"– commit validity not applicable", "no process commits"}, nil},
		{"run diffusion --workload '{broadcasts: 0}'", 0,
			[]string{"– validity not applicable", "no correct process broadcasts anything", "No process delivers anything."}, nil},
		{"run convergence --begin cold", 0, []string{"adjusts by"}, []string{"starts with"}},
		{"run convergence --until 1000", 0, []string{"– clock bound not applicable", "no correct clock is resynchronized"}, nil},
		{"run detector", 0, []string{"– completeness not applicable", "no process crashes before its last heartbeat"}, nil},
	})
}

// An exhausted search names the properties that no run promised and those that were never tested. The default search
// of the news includes reading a response.
func TestExploreSaysWhichPromisesWereTested(t *testing.T) {
	judge(t, []judged{
		{"explore news-fifo --beyond-bound --property understanding", 1, []string{"found: understanding breaks, which is not promised"}, nil},
		{"explore news-fifo --beyond-bound --property understanding --requests '[{at: 1, broadcast: article a}]'", 0,
			[]string{"never tested: understanding (no response is read"}, []string{"In every state"}},
		{"explore news", 0, []string{"In every state: applied once, understanding.",
			"promised in no run: replica consistency and as one machine ("}, []string{"wherever it is promised"}},
		{"explore fifo", 0, []string{"In every state: integrity, FIFO order.", "terminal state"}, []string{"never tested"}},
		{"explore detector", 0, []string{"never tested: completeness (no process crashes before its last heartbeat)"}, nil},
		{"explore diffusion -n 3 --losses 1", 0, []string{"Where it is promised: validity, agreement.",
			"promised only in some runs: validity and agreement (a link lost messages"}, nil},
		{"explore news --json", 0, []string{`"property": "understanding", "promised": true,`, `"tested": true`}, nil},
	})
}

// With a graph, the promise covers two correct processes that are connected through correct ones, on every host:
// nothing is promised where the graph is cut, and everything where a crash leaves it connected, which is then tested.
func TestPromiseFollowsEdges(t *testing.T) {
	cut := []string{"not promised: broken", "some correct processes are not connected through correct processes"}
	held := []string{"✓ validity held", "✓ agreement held"}
	request := " --requests '[{at: 1, when: 5, broadcast: a}]'"
	judge(t, []judged{
		{"run diffusion -n 4 --edges 1-2,3-4" + request, 0, cut, []string{"VIOLATED"}},
		{"run diffusion -n 4 --edges 1-2,2-3,3-4 --crashes '[{process: 4, when: 0}]'" + request, 0, held, nil},
		{"run diffusion -n 4 --edges 1-2,2-3,3-4 --crashes '[{process: 2, when: 0}]'" + request, 0, cut, []string{"VIOLATED"}},
		{"run diffusion -n 4 --edges 1-2,2-3,3-4 --graph '{1: [3], 2: [3, 4]}'" + request, 0, cut, []string{"VIOLATED"}},
		{"explore diffusion -n 4 --edges 1-2,2-3,3-4 --crashes 1", 0, []string{"Where it is promised: validity, agreement.",
			"promised only in some runs: validity and agreement (some correct processes are not connected through correct processes)"}, nil},
		{"explore diffusion -n 4 --edges 1-2,2-3,3-4,4-1 --crashes 1", 0,
			[]string{"In every state: integrity. In all 144 terminal states: validity, agreement."}, []string{"not promised"}},
		{"explore diffusion -n 4 --edges 1-2,3-4", 0, []string{"promised in no run: validity and agreement (some correct processes are not"}, nil},
		{"run diffusion -n 4 --edges 1-2,3-4 --host cluster" + request, 0, cut, []string{"VIOLATED"}},
		{"run diffusion -n 4 --edges 1-2,2-3,3-4 --crashes '[{process: 4, when: 0}]' --host cluster" + request, 0, held, nil},
	})
}

// With fewer than m+1 rounds nothing is promised, and the explorer finds the adversary.
func TestFewerRoundsAreTooFew(t *testing.T) {
	var list []judged
	for _, line := range []string{"eig -n 4 -m 1 --rounds 1", "om -n 4 -m 1 --rounds 1", "sm -n 3 -m 1 --rounds 1", "sm -n 4 -m 2 --rounds 2"} {
		why := "m+1 rounds are necessary (Fischer, Lynch 1982; Dolev, Strong 1983)"
		list = append(list,
			judged{"run " + line, 2, []string{"-m: with --rounds ", why, "--beyond-bound runs it nevertheless"}, nil},
			judged{"run " + line + " --beyond-bound", 0, []string{"✓ agreement not promised: held", why}, nil},
			judged{"sweep " + line + " --seeds 1..2", 2, []string{why}, nil},
			judged{"explore " + line, 2, []string{why}, nil},
			judged{"explore " + line + " --beyond-bound --property agreement", 1,
				[]string{"found: agreement breaks, which is not promised: "}, nil},
			judged{"explore " + strings.Split(line, " --rounds")[0] + " --step round --property agreement", 0,
				[]string{"no promise breaks. In every state: agreement."}, nil},
		)
	}
	list = append(list, judged{"run eig -n 7 -m 2 --rounds 4", 2, []string{"--rounds: 4 rounds: allowed are 1 to m+1 = 3"}, nil})
	judge(t, list)
}

// The explorer says whether the notice of a crash may overtake messages in flight. If it may, there are more states,
// including those in which it does.
func TestExploreNoticeOvertakes(t *testing.T) {
	judge(t, []judged{
		{"explore forwarding -n 3 --crashes 1", 0, []string{"4,244 states,",
			"processes are notified of a crash after all messages of the crashed process have arrived"}, nil},
		{"explore forwarding -n 3 --crashes 1 --overtaking", 0, []string{"7,312 states,",
			"processes are notified of a crash at any time after it, even before earlier messages of the crashed process arrive",
			"In all 61 terminal states: validity, agreement."}, nil},
		{"explore forwarding -n 3 --overtaking", 2, []string{"--overtaking: there is no notice of a crash"}, nil},
		{"explore diffusion -n 3 --crashes 1 --overtaking", 2, []string{"--overtaking: there is no notice of a crash"}, nil},
	})
}

// The measured cost is compared with the theorem's count for values of the proposed size. What faulty processes sent
// is listed separately.
func TestCostComparesLikeWithLike(t *testing.T) {
	judge(t, []judged{
		{"run eig --values attack --show verdict", 0, []string{"│ all │ 222 │ 222 │ 12,510 │ 12,510 │", "values of 48 bits"}, nil},
		{"run interactive --values attack --show verdict", 0, []string{"│ 2,472 │ 2,472 │"}, nil},
		{"run eig -n 4 -m 1 --faulty 1=twofaced --show verdict", 0, []string{"│ all │ 9 │ 12 │ 45 │ 54 │",
			"measured: sent by correct processes; the faulty sent 3 messages, 9 bits"}, nil},
		{"run eig --values attack --json", 0, []string{`"value_bits": 48`}, nil},
	})
}

// The bound of a protocol that tolerates at most one fault is listed for one fault only.
func TestListShowsBound(t *testing.T) {
	judge(t, []judged{
		{"list guard", 0, []string{"Bound: n >= 4 (m=1) Properties"}, nil},
		{"list eig", 0, []string{"Bound: n >= 4 (m=1), 7 (m=2), 10 (m=3) Properties"}, nil},
	})
}
