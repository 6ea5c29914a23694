package console

import (
	"bytes"
	"encoding/json"

	"github.com/spf13/pflag"
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
