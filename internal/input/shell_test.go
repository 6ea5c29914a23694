package input_test

import (
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"parley/internal/input"
)

// A quoted argument has no control characters, which would reach the terminal, and a shell reads it as it was.
func TestQuoteControlCharacters(t *testing.T) {
	for _, arg := range []string{"a b", "it's", "\x1b[31mred\a", "a\nb", "\x01'\"\\", "\x7fé\u0085", "\t\""} {
		quoted := input.Quote(arg)
		if strings.ContainsFunc(quoted, unicode.IsControl) {
			t.Errorf("%q: got %q, want no control characters", arg, quoted)
		}
		bash, err := exec.LookPath("bash")
		if err != nil {
			continue // no shell here reads them
		}
		cmd := exec.Command(bash, "-c", "printf %s "+quoted)
		cmd.Env = []string{"LC_ALL=C.UTF-8"}
		if out, err := cmd.Output(); err != nil || string(out) != arg {
			t.Errorf("%s: the shell read %q, want %q: %v", quoted, out, arg, err)
		}
	}
}
