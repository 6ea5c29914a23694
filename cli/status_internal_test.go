package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"parley/catalog"
	"parley/cli/console"
	"parley/cli/local"
)

// leaves returns the commands under cmd that have none below them, each as its words.
func leaves(cmd *cobra.Command, words ...string) (all [][]string) {
	for _, sub := range cmd.Commands() {
		all = append(all, leaves(sub, append(words[:len(words):len(words)], sub.Name())...)...)
	}
	if len(words) > 0 && (len(all) == 0 || cmd.Runnable()) {
		all = append(all, words)
	}
	return all
}

// Every command ends with status 0 if it is called with --help, and with 2 if it gets an unknown argument.
func TestStatusOfEveryCommand(t *testing.T) {
	a := &console.App{Protocols: catalog.All()[:3]}
	commands := leaves(rootCommand(a))
	if len(commands) < 40 {
		t.Fatalf("%d commands: %v", len(commands), commands)
	}
	for _, words := range commands {
		for arg, want := range map[string]int{"--help": console.Fine, "--nonesuch": console.Usage} {
			if words[0] == "completion" || words[0] == "help" {
				continue // the library defines these
			}
			var out, stderr bytes.Buffer
			if status := Run(a.Protocols, append(words[:len(words):len(words)], arg), &out, &stderr); status != want {
				t.Errorf("%s %s: got status %d, want %d\n%s", strings.Join(words, " "), arg, status, want, &stderr)
			}
		}
	}
}

// Commands that call a cluster end with status 3 if no node answers.
func TestStatusWithoutAnswer(t *testing.T) {
	dir := t.TempDir() + "/bank"
	p := local.Plan{N: 3}
	if err := p.Make(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"agree attack", "agree --name v node1=a", "cast total x", "listen total --count 1", "log put table a b",
		"log get table a", "clock", "commit t1 node1=x", "status", "cluster drain node1", "cluster expel node1",
		"cluster forget node1",
	} {
		var out, stderr bytes.Buffer
		args := append(strings.Fields(line), "--dir", dir, "--timeout", "500ms")
		if status := Run(catalog.All(), args, &out, &stderr); status != console.Unfinished || stderr.Len() == 0 {
			t.Errorf("%s: got status %d, want %d\n%s%s", line, status, console.Unfinished, &out, &stderr)
		}
	}
}

// If a line of the standard input gets no answer, each node's error is one line with that line's number, and the exit
// status is the same as for a text in the arguments.
func TestBroadcastLinesWithoutAnswer(t *testing.T) {
	dir := t.TempDir() + "/bank"
	p := local.Plan{N: 3}
	if err := p.Make(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin := os.Stdin
	os.Stdin = r
	t.Cleanup(func() { os.Stdin = stdin; r.Close() })
	if _, err := w.WriteString("a\nb\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	var out, stderr bytes.Buffer
	args := strings.Fields("broadcast total --timeout 500ms --json --dir")
	if status := Run(catalog.All(), append(args, dir), &out, &stderr); status != console.Unfinished || out.Len() > 0 {
		t.Errorf("got status %d, want %d\n%s", status, console.Unfinished, &out)
	}
	node := 0
	for line := range strings.Lines(stderr.String()) {
		node++
		var got console.ErrorOutput
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		name, f := fmt.Sprintf("node%d", node), got.Error
		if f.Node != name || f.Code != "unavailable" || f.Outcome != "" ||
			!strings.HasPrefix(f.Message, "line 1: "+name+": ") || !strings.HasSuffix(f.Message, "; nothing was sent") {
			t.Errorf("got %+v, want that nothing was sent to %s", f, name)
		}
	}
	if node != 3 {
		t.Errorf("got %d errors, want 3:\n%s", node, &stderr)
	}
}

// The help lists the exit statuses.
func TestStatusTable(t *testing.T) {
	var help bytes.Buffer
	if status := Run(catalog.All(), []string{"--help"}, &help, &help); status != console.Fine {
		t.Fatal(status)
	}
	for _, s := range console.Statuses {
		// The help folds long rows.
		row := fmt.Sprintf(" %d %s", s.Status, s.Means)
		if !strings.Contains(strings.Join(strings.Fields(help.String()), " "), row) {
			t.Errorf("parley --help has no row %q", row)
		}
	}
}
