package cli

import (
	"github.com/spf13/cobra"

	"parley/cli/console"
)

// completionHelp says what to do with the completion script of each shell.
var completionHelp = map[string]string{
	"bash": `Bash prints a script that completes commands, flags, and values in bash. It needs the package
bash-completion. The exit status is 0 unless the output cannot be written.

For this shell only:
    source <(parley completion bash)
For all new shells, on Linux:
    parley completion bash >~/.local/share/bash-completion/completions/parley
On macOS with Homebrew:
    parley completion bash >"$(brew --prefix)/etc/bash_completion.d/parley"`,
	"zsh": `Zsh prints a script that completes commands, flags, and values in zsh. The file ~/.zshrc must run
"autoload -U compinit; compinit". The exit status is 0 unless the output cannot be written.

For this shell only:
    source <(parley completion zsh)
For all new shells, on Linux:
    parley completion zsh >"${fpath[1]}/_parley"
On macOS with Homebrew:
    parley completion zsh >"$(brew --prefix)/share/zsh/site-functions/_parley"`,
	"fish": `Fish prints a script that completes commands, flags, and values in fish. The exit status is 0
unless the output cannot be written.

For this shell only:
    parley completion fish | source
For all new shells:
    parley completion fish >~/.config/fish/completions/parley.fish`,
	"powershell": `Powershell prints a script that completes commands, flags, and values in PowerShell. The exit
status is 0 unless the output cannot be written.

For this shell only:
    parley completion powershell | Out-String | Invoke-Expression
For all new shells, add that line to the file that $PROFILE names.`,
}

// nameCompletion gives cobra's command "completion" help like that of the other commands, and an error for an unknown
// shell.
func nameCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // it was made above
	}
	completion.Short = "Print the script that completes commands in a shell"
	completion.Long = "Completion prints a script for a shell. When the shell has run the script, the tab " +
		"key completes commands, flags, and values. The help for each shell, such as \"parley completion " +
		"bash --help\", says how to install the script."
	completion.Args, completion.RunE = cobra.ArbitraryArgs, console.OneOf
	for _, shell := range completion.Commands() {
		shell.Args = console.NoArgs
		shell.Short = "Print the script for " + shell.Name()
		shell.Long = completionHelp[shell.Name()]
		shell.Args = console.NoArgs
		shell.Example = "  parley completion " + shell.Name()
		if f := shell.Flags().Lookup("no-descriptions"); f != nil {
			f.Usage = "omit the descriptions of completions"
		}
	}
}
