//go:build testnet

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"parley/catalog"
	"parley/cli"
)

// asChaos is set in the environment of a process that is this program.
const asChaos = "PARLEY_CHAOS_MAIN"

// The test binary is also the command, for the processes of nodes, and this program.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("PARLEY_NODE") != "":
		cli.Main(catalog.All())
	case os.Getenv(asChaos) != "":
		main()
	default:
		os.Exit(m.Run())
	}
}

// runs makes a run of this program and returns its output.
func runs(t *testing.T, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, append(args, "-parley", self)...)
	cmd.Env = append(os.Environ(), asChaos+"=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// Nothing is lost when networks are cut and slow, and disks full and slow. The test needs Linux and root, and fails
// without them: it must not report success without having tested anything.
func TestNetworksAndDisks(t *testing.T) {
	kinds := []string{"cut-minority", "cut-first", "mute", "delay", "disk-full", "disk-slow", "stop-short"}
	out := runs(t, "-for", "40s", "-heal", "30s", "-seed", "2", "-only", strings.Join(kinds, ","))
	for _, kind := range kinds {
		if !strings.Contains(out, kind) {
			t.Errorf("%s did not befall:\n%s", kind, out)
		}
	}
}
