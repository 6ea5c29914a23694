package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/catalog"
	"parley/cli"
	"parley/cli/local"
)

// clientCommands are the commands that call a cluster, ordered so that each example reads only what an earlier one
// has written.
var clientCommands = []string{
	"agree", "broadcast", "subscribe", "table put", "table get", "table add", "table delete", "table do", "table query",
	"clock", "commit", "status", "cluster expel", "cluster drain",
	"cluster forget", "cluster leave",
}

// The examples of the commands that call a cluster work on real processes, one of which is Byzantine.
func TestClientExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	patient(t, local.Plan{N: 5, M: 1, Traitors: map[string]string{"4": "twofaced"}}, "bank")
	p, up := clusterOf(t, "-n", "5", "--traitor", "4=twofaced", "--dir", "bank")
	eventually(t, "the clocks are not in step", func() bool {
		_, _, status := run("clock", "--wait", "1m", "--at", "node1,node2,node3", "--dir", "bank")
		return status == 0
	})
	for _, command := range clientCommands {
		if command == "cluster expel" {
			otherCommands(t)
			clientJSON(t)
			listenUnwritten(t)
		}
		if command == "cluster leave" { // node2 has ended
			out, _, _ := run("cluster", "forget", "node2", "--json", "--dir", "bank")
			checkJSON(t, []string{"cluster", "forget"}, out)
		}
		for _, line := range helpExamples(t, command) {
			if other, ok := clientOthers[command]; ok {
				line = strings.ReplaceAll(line, "node3", other)
			}
			out, stderr, status := run(words(line)[1:]...)
			if command == "cluster leave" { // node3 and node2 have left: a majority stays
				if status != 1 || !strings.Contains(stderr, "3 of 5 nodes must stay") {
					t.Errorf("%s: status %d, not 1\n%s%s", line, status, out, stderr)
				}
				continue
			}
			if want := clientExits[line]; status != want || out == "" {
				t.Errorf("%s: status %d, not %d\n%s%s", line, status, want, out, stderr)
			}
			if text := clientPrints[line]; !strings.Contains(out, text) {
				t.Errorf("%s: %q has no %q", line, out, text)
			}
			if strings.Contains(line, "--json") && !json.Valid([]byte(strings.SplitN(out, "\n", 2)[0])) {
				t.Errorf("%s: no JSON: %s", line, out)
			}
		}
	}
	eventually(t, "node2 has not ended", func() bool { return !listens(up.Nodes[1].Address) })
	p.end(os.Interrupt) // nodes have ended before it, so its status is 1
}

// patient makes the folder of a cluster whose rounds are so long that a busy computer delays no node by 1/7 of one. Rounds
// end early when all nodes have sent. "cluster up" with the same flags starts it.
func patient(t *testing.T, p local.Plan, dir string) {
	t.Helper()
	p.Round = 2 * time.Second
	if err := p.Make(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
}

// otherCommands checks the output of commands other than the examples, on the same cluster.
func otherCommands(t *testing.T) {
	t.Setenv("PARLEY_DIR", "bank")
	for line, want := range map[string]struct {
		status int
		prints string // a part of the output
	}{
		"log do bank 'rob the bank'":                                     {1, "table do: table bank refused the command: no such command\n"},
		"log do bank 'rob the bank' --json":                              {1, `"refused":true`},
		"log query table x":                                              {2, "there is no such command"},
		"log put nowhere a b":                                            {2, `there is no table "nowhere"`},
		"log get table nothing":                                          {1, "the key has no value"},
		"agree x -m 2":                                                   {2, "node1: refused: m = 2: "},
		"agree x --algorithm tetra --at node2":                           {0, `node2 decides "x": slot 1 from node2, tetra with m = 1, after `},
		"agree x --algorithm tetra --json --at node3":                    {0, `"algorithm":"ALGORITHM_TETRA","m":1,"slot":"1","value":"eA=="`},
		"agree x --algorithm tetra --evidence":                           {2, "--evidence: tetra has none: omit the flag"},
		"agree --name t --algorithm tetra node1=a":                       {2, "--algorithm: tetra agrees on the value of one node: with --name"},
		"cast total x --level fifo":                                      {2, "no payloads of level fifo"},
		"cast total x --json":                                            {0, `{"version":1,"node":"node1","sent":1,"position":"`},
		"commit t9 node9=x":                                              {2, `there is no member "node9"`},
		"commit t8 node1=x":                                              {1, "t8: aborted: node1: has no participant\n"},
		"agree --name v --json node1=a node2=b":                          {0, `{"version":1,"node":"node2","answer":{"vector":{"name":"v",`},
		"agree --name w --rule maximum node1=-5 node2=-7":                {0, `maximum "0"` + "\na node without a value counts as 0 in the maximum"},
		"agree --name u --rule maximum --otherwise -9 node1=-5 node2=-7": {0, `maximum "-5"`},
		"cluster drain node9":                                            {2, `parley cluster drain: NODE: "node9": allowed are node1, `},
		"cluster leave node9":                                            {2, `parley cluster leave: NODE: "node9": allowed are node1, `},
		"clock --wait 0":                                                 {1, "  not in step  "},
		"clock --wait 10ms --json":                                       {1, `{"version":1,"node":"node4","answer":{"time":`},
		"status":                                                         {1, "\nnode4  not ready\n       - not a member of group byzantine: it rejoins by itself"},
		"status --json":                                                  {1, `"message":"node4: not ready: not a member of group byzantine: `},
		"status --at node2":                                              {0, "healthy: 1 of 1 node\n"},
		"status --at node2 --verbose":                                    {0, "  position "},
		"listen total --from 999999999 --count 1 --timeout 200ms":        {3, "parley: node1: nothing was delivered for as long as"},
	} {
		out, stderr, status := run(words("parley " + line)[1:]...)
		if status != want.status || !strings.Contains(out+stderr, want.prints) || strings.Contains(stderr, "cluster: ") {
			t.Errorf("%s: status %d, not %d\n%s%s", line, status, want.status, out, stderr)
		}
		if strings.HasPrefix(line, "listen ") && strings.Contains(stderr, "node2") {
			t.Errorf("%s: one after the other is waited for: %s", line, stderr)
		}
	}
	for input, want := range map[string]string{
		"a\n" + strings.Repeat("x", 70_000) + "\nc\n": "line 2: it is longer than the 61440 bytes that are allowed; the 1 before it",
		"": "the standard input is empty",
	} {
		cmd := exec.CommandContext(t.Context(), "parley", "cast", "total")
		cmd.Stdin = strings.NewReader(input)
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), want) {
			t.Errorf("%.10q: %s", input, out)
		}
	}
}

// failover pauses the last node of a cluster and then kills it: commands call other nodes instead, and a subscription
// continues at the next node.
func failover(t *testing.T, dir string, up upJSON) {
	if _, stderr, status := run("cast", "total", "first", "--dir", dir); status != 0 {
		t.Fatal(stderr)
	}
	p := begin(t, "first", "listen", "total", "--from", "1", "--at", "node4,node1", "--dir", dir)
	pid := up.Nodes[3].PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"log put table a b", "log get table a", "cast total second"} {
		args := append(strings.Fields(line), "--at", "node4,node1", "--timeout", "2s", "--dir", dir)
		if out, stderr, status := run(args...); status != 0 {
			t.Errorf("%s: status %d, %s%s", line, status, out, stderr)
		}
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.wait("second")
	if status := p.end(os.Interrupt); status != 0 || strings.Count(p.printed(), "\n") != 2 {
		t.Errorf("status %d: %s", status, p.printed())
	}
}

// clientPrints maps examples to a part of their output.
var clientPrints = map[string]string{
	"parley agree attack --dir bank": `decides "attack"`,
	"parley agree --name temperature --rule median node1=20 node2=21 node4=99 --dir bank": `node2  node1 "20", node2 "21"`,
	"parley subscribe total --from 1 --count 1 --dir bank":                                "node1  first, and the same everywhere\n",
	"parley table get table greeting --dir bank":                                          "hello\n",
	"parley table add table visits 1 --dir bank":                                          "1\n",
	"parley table query bank balance --dir bank":                                          "1150\n",
	"parley cluster expel node3 --dir bank":                                               "node1 has expelled node3\n",
	"parley cluster forget node2 --dir bank":                                              "node1 has forgotten node2\n",
	"parley status --dir bank":                                                            "UNHEALTHY: only 4 of 5 nodes healthy\n",
}

// clientOthers are the nodes that stand in for node3 in the examples, because node3 has left by then. The node that
// "cluster forget" names must have ended.
var clientOthers = map[string]string{"cluster drain": "node2", "cluster forget": "node2", "cluster leave": "node1"}

// clientExits are the exit statuses of the examples that do not exit with 0.
var clientExits = map[string]int{
	"parley clock --dir bank":                 1, // the Byzantine node's clock is out of step
	"parley clock --wait 0 --json --dir bank": 1,
	"parley status --dir bank":                1, // and it is no member of the group byzantine
	"parley status --verbose --dir bank":      1,
	// Nodes without a participant vote no.
	"parley commit transfer-1 'node1=withdraw 100' 'node2=deposit 100' --dir bank": 1,
}

// listenUnwritten listens with an output that cannot be written: the error does not blame the nodes, and the command
// calls no further node.
func listenUnwritten(t *testing.T) {
	var stderr strings.Builder
	status := cli.Run(catalog.All(), words("listen total --from 1 --count 1"), unwritable{syscall.ENOSPC}, &stderr)
	if want := "parley: write report.txt: no space left on device\n"; status != 3 || stderr.String() != want {
		t.Errorf("listen: status %d, %q; want 3, %q", status, stderr.String(), want)
	}
}
