package cli

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley/catalog"
	"parley/cli/console"
	"parley/internal/input"
)

// allowed are the values that an error lists.
var allowed = regexp.MustCompile(`allowed(?: with \w+)? are (.*?)(?:, with commas between them)?$`)

// A flag with a closed set of values names in its usage, which completion reads, what its error allows.
func TestClosedSets(t *testing.T) {
	a := &console.App{Protocols: catalog.All(), Out: new(bytes.Buffer), Err: new(bytes.Buffer)}
	needs := map[string][]string{"parley agree": {"x"}, "parley broadcast": {"news", "x"}, "parley cert client": {"x"}, "parley trace show": {"x"}}
	sets := 0
	for _, cmd := range commands(rootCommand(a)) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			values := input.Values(f)
			if values == nil {
				return
			}
			sets++
			args := append(strings.Fields(cmd.CommandPath())[1:], needs[cmd.CommandPath()]...)
			var out, stderr bytes.Buffer
			status := Run(a.Protocols, append(args, "--"+f.Name+"=nonsense"), &out, &stderr)
			m := allowed.FindStringSubmatch(strings.TrimSpace(stderr.String()))
			if m == nil || status != console.Usage || !strings.Contains(stderr.String(), "--"+f.Name+": ") {
				t.Errorf("%s --%s=nonsense: status %d, %s", cmd.CommandPath(), f.Name, status, stderr.String())
				return
			}
			said := regexp.MustCompile(`, and |, or |, | and | or `).Split(m[1], -1)
			for i := range said {
				said[i], _, _ = strings.Cut(said[i], " ")
			}
			if !slices.Equal(slices.Sorted(slices.Values(said)), slices.Sorted(slices.Values(values))) {
				t.Errorf("%s --%s: completes %q, allows %q", cmd.CommandPath(), f.Name, values, said)
			}
		})
	}
	if sets < 100 {
		t.Errorf("only %d flags with closed sets", sets)
	}
}

// The shell completes values, the last element of a list, behaviors of a process, protocols, and files elsewhere.
func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"run eig --host ":              "sim cluster :4",
		"run consensus --rule m":       "majority median minimum maximum :4",
		"run eig --show tree,":         "tree,messages tree,spacetime tree,deliveries tree,decisions tree,verdict :6",
		"run eig --faulty 1=fl":        "1=honest 1=silent 1=flip 1=twofaced 1=twin 1=random 1=omit-send 1=omit-receive :6",
		"run eig --faulty 1":           ":4",
		"explore eig --property v":     "agreement validity termination integrity :6",
		"list t":                       "tetra timestamp twophase threephase transactions :4",
		"run eig --trace ":             ":0",
		"run eig --seed ":              ":4",
		"cert client a --rights read,": "read,write read,admin :6",
	} {
		var out bytes.Buffer
		Run(catalog.All(), append([]string{cobra.ShellCompNoDescRequestCmd}, strings.Split(line, " ")...), &out, new(bytes.Buffer))
		got := strings.Fields(out.String())
		if i := slices.Index(got, "Completion"); i >= 0 {
			got = got[:i]
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", line, strings.Join(got, " "), want)
		}
	}
}
