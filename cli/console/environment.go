package console

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Environment says how variables of the environment set flags.
const Environment = `A flag that is not given on the command line takes its value from the environment variable
PARLEY_COMMAND_FLAG. COMMAND is the first word after parley. FLAG is the long name of the flag.
Both are in capitals, with _ in place of -. For example, PARLEY_RUN_SEED sets --seed of "parley
run", and PARLEY_CLUSTER_DIR sets --dir of all commands below "parley cluster".

Flags that say how to call a cluster and how to print also have a second variable, which is the
same for all commands: PARLEY_DIR, PARLEY_AT, PARLEY_AS, PARLEY_CERTIFICATES, PARLEY_TIMEOUT,
PARLEY_COLOR and PARLEY_WIDTH. The second variable counts only if the first one is not set. No
other flag has a variable for all commands. For example, PARLEY_HOST, perhaps set for another
program, does not set --host of "parley run"; only PARLEY_RUN_HOST does.

A flag on the command line takes precedence over a variable. A variable takes precedence over a
scenario file. The flag --scenario itself has no variable. An empty variable counts as not set.
If a value from the environment is wrong, the error names the variable.`

// common marks a flag that has a variable for all commands.
const common = "parley_common_variable"

// Common gives flags a variable for all commands, such as PARLEY_DIR.
func Common(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		if err := fs.SetAnnotation(name, common, []string{"true"}); err != nil {
			panic(err) // the flag is not declared
		}
	}
}

// Variables returns the variables of a flag of a command, which is a full path such as "parley cluster up", in the
// order in which they count. It is empty for flags that have none.
func Variables(command string, f *pflag.Flag) []string {
	words := strings.Fields(command)
	if f.Hidden || len(words) < 2 || slices.Contains([]string{"help", "version", "scenario"}, f.Name) {
		return nil // a scenario names the protocol, and so which flags there are
	}
	name := strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
	out := []string{"PARLEY_" + strings.ToUpper(words[1]) + "_" + name}
	if f.Annotations[common] != nil {
		out = append(out, "PARLEY_"+name)
	}
	return out
}
