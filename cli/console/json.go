package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"parley"
	"parley/internal/input"
)

// JSONVersion is the first key of every JSON object that a command prints. It rises when a key goes or gets another
// meaning. A new key does not raise it.
const JSONVersion = 1

// PrintJSON prints a struct as an indented JSON object that begins with the version.
func (a *App) PrintJSON(v any) error { return a.printJSON(v, "  ") }

// PrintLine is PrintJSON on one line, for commands that print any number of objects.
func (a *App) PrintLine(v any) error { return a.printJSON(v, "") }

func (a *App) printJSON(v any, indent string) error {
	b, err := versioned(v)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if indent == "" {
		err = json.Compact(&out, b)
	} else {
		err = json.Indent(&out, b, "", indent)
	}
	if err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err = a.Out.Write(out.Bytes())
	return err
}

// versioned encodes a struct as a JSON object with the version in front of its own keys.
func versioned(v any) ([]byte, error) {
	var own bytes.Buffer
	enc := json.NewEncoder(&own)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	head, err := json.Marshal(struct {
		Version int `json:"version"`
	}{JSONVersion})
	if err != nil {
		return nil, err
	}
	rest := bytes.TrimPrefix(bytes.TrimSpace(own.Bytes()), []byte("{"))
	if len(rest) > 1 { // more than the closing brace
		rest = append([]byte{','}, rest...)
	}
	return append(bytes.TrimSuffix(head, []byte("}")), rest...), nil
}

// Printed is one form of a command's JSON output: the name of its schema, and a value of its type. The value is a
// struct, or an answer of the API, which the command prints in [Answered].
type Printed struct {
	Schema string
	Value  any
}

// jsonFlag is the value of --json, with what the command then prints.
type jsonFlag struct {
	pflag.Value
	forms []Printed
}

// Prints notes what a command prints with --json, which must be declared, for the reference and its tests.
func Prints(fs *pflag.FlagSet, schema string, value any) {
	f := fs.Lookup("json")
	known, _ := f.Value.(jsonFlag)
	if known.Value == nil {
		known.Value = f.Value
	}
	f.Value = jsonFlag{known.Value, append(known.forms, Printed{schema, value})}
}

// Forms returns what a command prints with --json, as [Prints] has noted it.
func Forms(fs *pflag.FlagSet) []Printed {
	if f := fs.Lookup("json"); f != nil {
		if known, ok := f.Value.(jsonFlag); ok {
			return known.forms
		}
	}
	return nil
}

// Answered is the JSON output of a command that calls a node: the answer is as the API has it.
type Answered struct {
	Node   string          `json:"node"`
	Answer json.RawMessage `json:"answer"`
}

// ErrorOutput is what a command prints on the standard error for an error if it got --json: one object on one line.
type ErrorOutput struct {
	Error Failure `json:"error"`
}

// Failure is an error as a program reads it. What is not known is left out.
type Failure struct {
	Status   int    `json:"status"`             // the exit status that belongs to the error
	Message  string `json:"message"`            // the whole error in words
	Flag     string `json:"flag,omitempty"`     // the flag with the wrong value, without dashes
	Variable string `json:"variable,omitempty"` // the environment variable that has set the flag
	File     string `json:"file,omitempty"`     // the file with the error
	Line     int    `json:"line,omitempty"`     // the line of the file, from 1
	Hint     string `json:"hint,omitempty"`     // the part of the message that says what to do
	Node     string `json:"node,omitempty"`     // the node whose error it is
	Code     string `json:"code,omitempty"`     // the API's code of a node's error, such as unavailable
	Reason   string `json:"reason,omitempty"`   // the API's reason of a node's error
	Outcome  string `json:"outcome,omitempty"`  // "unknown" if the request may have taken effect
}

// Complain prints an error on the standard error: one line of text, or one JSON object if the command got --json.
func (a *App) Complain(status int, err error) {
	f := a.failure(status, err)
	if !a.JSON {
		text := f.Message
		if !strings.HasPrefix(text, "parley ") { // it names its command already
			text = "parley: " + text
		}
		fmt.Fprintln(a.Err, FoldError(text, a.ErrorWidth()))
		return
	}
	b, err := versioned(ErrorOutput{f})
	if err != nil {
		panic(err) // texts and numbers
	}
	fmt.Fprintf(a.Err, "%s\n", b)
}

// failure describes an error.
func (a *App) failure(status int, err error) Failure {
	f := Failure{Status: status, Message: Plain(err)}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		err = &parley.FlagError{Flag: bad.GetFlag().Name, Err: input.ValueError(bad)}
	}
	if about, ok := errors.AsType[*parley.FlagError](err); ok {
		f.Flag, f.Variable = about.Flag, a.variables[about.Flag]
		if f.Variable != "" {
			f.Message = strings.Replace(f.Message, Plain(about), f.Variable+": "+Plain(about.Err), 1)
		}
	}
	if in, ok := errors.AsType[interface {
		error
		Place() (string, int)
	}](err); ok {
		f.File, f.Line = in.Place()
	}
	if said, ok := errors.AsType[*input.HintError](err); ok {
		f.Hint = said.Hint
		f.Flag = cmp.Or(f.Flag, said.Flag)
	}
	if of, ok := errors.AsType[CallError](err); ok {
		f.Node, f.Code, f.Reason, f.Outcome = of.Call()
	}
	return f
}

// Notice prints a line on the standard error that is no error. Programs that asked for JSON do not get it.
func (a *App) Notice(format string, args ...any) {
	if !a.JSON {
		fmt.Fprintf(a.Err, format+"\n", args...)
	}
}

// WantsJSON reports whether a command line, or the environment, sets --json. It does not parse the flags, because it
// must know what to do with an error of that.
func WantsJSON(args []string) bool {
	wants := false
	if i := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") }); i >= 0 {
		for _, name := range Variables("parley "+args[i], &pflag.Flag{Name: "json"}) {
			wants, _ = strconv.ParseBool(os.Getenv(name))
		}
	}
	for _, arg := range args {
		value, given := strings.CutPrefix(arg, "--json=")
		switch {
		case arg == "--":
			return wants
		case arg == "--json":
			wants = true
		case given:
			wants, _ = strconv.ParseBool(value)
		}
	}
	return wants
}
