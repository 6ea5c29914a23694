// Package console holds what all commands share: output, exit statuses, the names of processes, checks of
// arguments, output files, and flags from environment variables.
//
// # Decisions
//
// The environment variable of a flag contains the name of the command. For example, PARLEY_RUN_SEED sets the flag
// --seed of "parley run". A flag that means the same in every command also has a variable without the command's name,
// such as PARLEY_DIR; [Common] marks these flags. Motive: Kubernetes sets variables such as PARLEY_HOST and
// PARLEY_PORT for a service called parley, and these must not change a run. Also, a flag of the same name can mean
// different things: --dir of "parley cert" names another folder than --dir of "parley status". Cost: users often have
// to set several variables instead of one.
//
// With --json an error is an object on the standard error. Motive: everything on the standard output fits one schema,
// even if the command fails after some of its output. Cost: a program that calls the command must read two streams.
package console

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley"
	"parley/internal/input"
	"parley/internal/nearest"
)

// OneOf is the Args function of a command that only groups subcommands: it returns an error that names them.
func OneOf(cmd *cobra.Command, args []string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	of := ""
	if cmd.HasParent() {
		of = cmd.CommandPath() + ": "
	}
	if len(args) > 0 {
		return input.Hint(nearest.Names(args[0], names), "%sunknown command %q", of, args[0])
	}
	return input.Hint(nearest.Names("", names), "%sname a command", of)
}

// UnknownFlag is ParseError as the FlagErrorFunc of the whole command line.
func UnknownFlag(cmd *cobra.Command, err error) error {
	return ParseError(cmd.CommandPath(), cmd.Flags(), err)
}

// ParseError puts an error of parsing flags into words. It suggests the flags that an unknown one may stand for, or
// says where all are listed.
func ParseError(command string, flags *pflag.FlagSet, err error) error {
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return parley.FlagErrorf(missing.GetFlag().Name, "the value is missing: %s", valueHint(missing.GetFlag()))
	}
	if bad, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return fmt.Errorf("%s: %q is not a flag: write --FLAG=VALUE", command, bad.GetSpecifiedFlag())
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	name := "--" + unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		name = name[1:]
	}
	var names []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	hint := fmt.Sprintf("%q lists all", command+" --help")
	if list := nearest.Similar(name, names); len(list) > 0 && len(name) > 3 {
		hint = nearest.Meant(list)
	}
	return &input.HintError{What: "unknown flag " + name, Hint: hint, Flag: strings.TrimLeft(name, "-")}
}

// valueHint says how to write the value of a flag.
func valueHint(f *pflag.Flag) string {
	name := "--" + f.Name
	if len(f.Name) == 1 {
		name = name[1:]
	}
	kind, _ := pflag.UnquoteUsage(f)
	return "write " + name + " " + strings.ToUpper(kind)
}

// Unexpected is the error of a command that got arguments and takes none.
func Unexpected(command string, args []string) error {
	hint := fmt.Sprintf("%q shows what is allowed", command+" --help")
	if slices.Contains([]string{"true", "false"}, args[0]) {
		hint = "a switch takes its value after =, as in --fifo=" + args[0]
	}
	return fmt.Errorf("%s: unexpected argument %.200q: %s", command, args[0], hint)
}

// NoArgs is the check of a command that takes no arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Unexpected(cmd.CommandPath(), args)
	}
	return nil
}

// NoProtocol is the error of a command that was given no protocol.
func NoProtocol(cmd *cobra.Command) error {
	return input.Hint(`"parley list" names all`, "%s: name a protocol", cmd.CommandPath())
}

// Args returns a check for least to most arguments, or for any number from least up if most is 0. The argument
// expected describes the arguments in the error, as in "one NODE was expected".
func Args(least, most int, expected string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if n := len(args); n < least || n > most && most > 0 {
			return fmt.Errorf("%s: %s, and %s given", cmd.CommandPath(), expected, Given(n))
		}
		return nil
	}
}

// Given returns the number of arguments in words, with its verb, as in "2 are".
func Given(n int) string {
	switch n {
	case 0:
		return "none is"
	case 1:
		return "only one is"
	}
	return fmt.Sprintf("%d are", n)
}
