package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley/catalog"
	"parley/cli"
	"parley/cli/console"
)

// A flag on the command line comes before the command's variable, this before the one for all commands and before a
// scenario, and no other variable counts.
func TestVariablesSetFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("s.yaml", []byte("protocol: eig\nseed: 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		variables, line string
		status          int
		prints          string // on either output
	}{
		{"PARLEY_RUN_SEED=7", "run eig --show verdict", 0, "seed 7"},
		{"PARLEY_RUN_SEED=7", "run eig --show verdict --seed 8", 0, "seed 8"},
		{"PARLEY_RUN_SEED=", "run --scenario s.yaml --show verdict", 0, "seed 5"}, // empty: not set
		{"PARLEY_RUN_SEED=7", "run --scenario s.yaml --show verdict", 0, "seed 7"},
		{"PARLEY_RUN_SEED=7", "run eig --scenario s.yaml --show verdict", 0, "seed 7"},
		{"PARLEY_SWEEP_SEEDS=3..4", "sweep eig", 0, "seeds 3..4"},
		{"PARLEY_SEED=7 PARLEY_N=9 PARLEY_HOST=cluster PARLEY_RUN=x", "run eig --show verdict", 0, "n = 7 processes, m = 2: 2 faults tolerated, seed 1"},
		{"PARLEY_BOUNDS_N=5", "bounds -m 1", 0, "n = 5"},
		{"PARLEY_RUN_BEYOND_BOUND=true", "run om -n 3 -m 1 --show verdict", 0, "beyond the bound"},
		{"PARLEY_LIST_JSON=true", "list om", 0, `{` + "\n" + `  "version": 1,`},
		{"PARLEY_LIST_JSON=true", "list omm", 2, `{"version":1,"error":{"status":2,"message":"unknown protocol \"omm\"`},
		{"PARLEY_RUN_SEED=", "run eig --show verdict", 0, "seed 1;"},
		{"PARLEY_RUN_JSON=1", "run eig --sed 1", 2, `{"version":1,"error":{"status":2,"message":"unknown flag --sed`},
		{"PARLEY_RUN_JSON=1", "run eig --json=0 --sed 1", 2, "parley: unknown flag --sed"},
		{"PARLEY_RUN_JSON=", "run eig --json=T --sed 1", 2, `{"version":1,`},
		{"PARLEY_RUN_SEED=x", "run eig", 2, `parley: PARLEY_RUN_SEED: "x": a whole number from 0 on was expected` + "\n"},
		{"PARLEY_RUN_SEED=x", "run --scenario s.yaml", 2, `parley: PARLEY_RUN_SEED: "x": a whole number from 0 on was expected` + "\n"},
		{"PARLEY_SWEEP_WORKERS=0", "sweep eig", 2, "parley: PARLEY_SWEEP_WORKERS: 0 threads: allowed are 1 to 256\n"},
		{"PARLEY_RUN_SHOW=x", "run eig", 2, `parley: PARLEY_RUN_SHOW: unknown part "x": allowed are messages,`},
		{"PARLEY_RUN_VALUES=1,2", "run eig --json", 2, `"flag":"values","variable":"PARLEY_RUN_VALUES"`},
		{"PARLEY_COLOR=pink", "list", 2, `parley: PARLEY_COLOR: "pink": allowed are auto, always and never` + "\n"},
		{"PARLEY_COLOR=pink PARLEY_LIST_COLOR=never", "list", 0, "protocol"},
		{"PARLEY_WIDTH=10", "run eig", 2, "parley: PARLEY_WIDTH: 10 columns: allowed are 40 or more, or 0 for the width of the terminal\n"},
		{"PARLEY_DIR=none", "status", 2, "parley: PARLEY_DIR: "},
		{"PARLEY_DIR=none PARLEY_STATUS_DIR=nowhere", "status", 2, "parley: PARLEY_STATUS_DIR: open nowhere"},
		{"PARLEY_DIR=none", "cert show --dir c", 2, "parley: --dir: open c"},
		{"PARLEY_CERT_DIR=elsewhere PARLEY_DIR=none", "cert show", 2, "parley: PARLEY_CERT_DIR: open elsewhere"},
		{"PARLEY_TIMEOUT=-1s", "clock --dir x", 2, "parley: PARLEY_TIMEOUT: -1s: a time above 0 was expected\n"},
	} {
		t.Run(c.variables+" "+c.line, func(t *testing.T) {
			for _, v := range strings.Fields(c.variables) {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			out, stderr, status := run(words(c.line)...)
			if status != c.status || !strings.Contains(out+stderr, c.prints) {
				t.Errorf("got status %d, %s%s; want %d, %s", status, out, stderr, c.status, c.prints)
			}
		})
	}
}

// No variable sets two different flags, and help names the rule.
func TestVariablesAreDistinct(t *testing.T) {
	owners := make(map[string]string)
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			for i, name := range console.Variables(cmd.CommandPath(), f) {
				owner := "of all commands --" + f.Name
				if i == 0 {
					owner = strings.Fields(cmd.CommandPath())[1] + " --" + f.Name
				}
				if was := owners[name]; was != "" && was != owner {
					t.Errorf("%s sets %s and %s", name, was, owner)
				}
				owners[name] = owner
				if i > 0 && !strings.Contains(console.Environment, name) {
					t.Errorf("the help does not name %s", name)
				}
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(cli.Commands(catalog.All()))
	if len(owners) < 100 {
		t.Errorf("only %d variables", len(owners))
	}
	for _, line := range []string{"run eig --help", "status --help", "cluster up --help"} {
		if out, _, _ := run(words(line)...); !strings.Contains(out, "parley help environment") {
			t.Errorf("%s: %s", line, out)
		}
	}
	if out, _, status := run("help", "environment"); status != 0 || !strings.Contains(out, "PARLEY_COMMAND_FLAG") {
		t.Errorf("status %d, %s", status, out)
	}
}

// A node that "cluster up" starts takes no flags from the environment.
func TestNodesIgnoreVariables(t *testing.T) {
	t.Setenv("PARLEY_NODE_CONFIG", filepath.Join(t.TempDir(), "none.yaml"))
	t.Setenv("PARLEY_NODE_CHECK", "true")
	p, up := clusterOf(t, "-n", "1", "--dir", t.TempDir())
	if len(up.Nodes) != 1 || up.Nodes[0].State != "in" {
		t.Errorf("%+v", up)
	}
	p.end(os.Interrupt)
}
