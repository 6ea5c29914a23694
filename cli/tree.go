package cli

import (
	"io"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/console"
)

// Tree returns the tree of all commands, for programs that document it. Its commands must not be run: use Run.
func Tree(protocols []parley.Protocol) *cobra.Command {
	root := rootCommand(&console.App{Protocols: protocols, Out: &console.Output{To: io.Discard}, Err: io.Discard})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}
