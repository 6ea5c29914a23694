package input

import (
	"strconv"
	"strings"
	"unicode"
)

// Program is the name of the running command, for command lines that repeat a run: a module with a protocol of its own
// has a command of its own.
var Program = "parley"

// Command returns the command line of "run" with arguments quoted for a shell, after the words in lead. It breaks
// lines only between arguments and with backslashes, so that a copy remains one command.
func Command(lead string, args []string, width int) string {
	line := lead + Program + " run"
	var out strings.Builder
	for _, arg := range args {
		arg = Quote(arg)
		if len(line)+1+len(arg)+2 > width {
			out.WriteString(line + " \\\n")
			line = "   "
		}
		line += " " + arg
	}
	return out.String() + line
}

// Quote quotes an argument so that a shell reads it as one word.
func Quote(arg string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.ContainsRune("-_=,.:@/%+", c)
	}
	if arg != "" && strings.IndexFunc(arg, func(c rune) bool { return !plain(c) }) < 0 {
		return arg
	}
	if strings.ContainsFunc(arg, unicode.IsControl) { // they would reach the terminal
		escaped := strconv.Quote(arg)
		return "$'" + strings.ReplaceAll(escaped[1:len(escaped)-1], "'", `\'`) + "'"
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
