package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/cli/console"
)

// Each shell has a script, whose help says how it is installed, and no other shell has one.
func TestCompletionScripts(t *testing.T) {
	for shell, has := range map[string]string{
		"bash": "__start_parley", "zsh": "#compdef parley", "fish": "complete -c parley", "powershell": "Register-ArgumentCompleter",
	} {
		out, stderr, status := run("completion", shell)
		if status != 0 || stderr != "" || !strings.Contains(out, has) {
			t.Errorf("%s: status %d, %s%s", shell, status, out, stderr)
		}
		out, _, status = run("completion", shell, "--help")
		if status != 0 || !strings.Contains(out, "    parley completion "+shell) && !strings.Contains(out, "    source <(parley completion ") {
			t.Errorf("%s: status %d, %s", shell, status, out)
		}
	}
	if _, stderr, status := run("completion", "bahs"); status != console.Usage || !strings.Contains(stderr, "allowed are bash, fish, powershell, zsh") {
		t.Errorf("status %d, %s", status, stderr)
	}
}

// bashCompletes is a program for bash that completes a line as the tab key does. The function stands for the package
// bash-completion.
const bashCompletes = `
_get_comp_words_by_ref() { cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}
	words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; }
source "$1"
shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
__start_parley 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"
`

// The script for bash completes a command, a flag and a value.
func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Log("there is no bash, so nothing is tested")
		return
	}
	script, _, _ := run("completion", "bash")
	file := filepath.Join(t.TempDir(), "parley.bash")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"parley stat":             "status",
		"parley run phasek":       "phaseking",
		"parley exercise new tw":  "twophase",
		"parley run eig --host c": "cluster",
		"parley run eig --beyo":   "--beyond-bound",
	} {
		out, err := exec.CommandContext(t.Context(), bash, append([]string{"-c", bashCompletes, "bash", file}, strings.Split(line, " ")...)...).
			CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", line, got, err, want)
		}
	}
}
