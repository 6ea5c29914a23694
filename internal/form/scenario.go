package form

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"parley"
	"parley/internal/input"
	"parley/internal/nearest"
	"parley/internal/scenario"
)

// Scenario is a file of flags: a YAML mapping whose keys are the protocol and the names of its flags. Values of
// the keys of the plan may be lists and mappings.
//
//	protocol: eig
//	n: 7
//	m: 2
//	values: [0]
//	faulty: {1: twofaced, 5: flip}
//	links:
//	  - {from: 2, to: 3, delay: 5000}
type Scenario struct {
	file    string
	entries []entry
}

// entry is one key, its value as flag text, and its line. A key of the plan keeps its YAML node, so that errors about
// its entries name their own lines.
type entry struct {
	key, value string
	node       ast.Node
	line       int
}

// MaxScenario is the largest scenario file, in bytes.
const MaxScenario = 1 << 20

// ParseScenario reads the mapping. Errors name file and line.
func ParseScenario(file string, b []byte) (*Scenario, error) {
	s := &Scenario{file: file}
	tree, err := scenario.YAML(b)
	switch {
	case errors.Is(err, scenario.ErrTooDeep):
		return nil, &input.FileError{File: file, Line: 1, Err: err}
	case err != nil:
		return nil, notYAML(file, err)
	}
	if len(tree.Docs) > 1 {
		return nil, &input.FileError{
			File: file, Line: extraLine(tree),
			Err: errors.New("a second YAML document begins: a scenario has only one, so delete the rest"),
		}
	}
	if len(tree.Docs) == 0 || tree.Docs[0].Body == nil {
		return nil, &input.FileError{
			File: file, Line: 1, Err: errors.New("the file is empty: write lines \"key: value\", such as \"protocol: eig\""),
		}
	}
	pairs, ok := scenario.Pairs(tree.Docs[0].Body)
	if !ok {
		line := tree.Docs[0].Body.GetToken().Position.Line
		return nil, &input.FileError{
			File: file, Line: line,
			Err: errors.New("this is not a mapping: write lines \"key: value\", such as \"protocol: eig\""),
		}
	}
	for _, pair := range pairs {
		line := pair.Key.GetToken().Position.Line
		key := pair.Key.GetToken().Value
		if slices.Contains(scenario.Keys, key) {
			s.entries = append(s.entries, entry{key, scenario.Flow(pair.Value), pair.Value, line})
			continue
		}
		value, err := flagText(key, pair.Value)
		if err != nil {
			return nil, &input.FileError{File: file, Line: lineOf(err, line), Err: err}
		}
		s.entries = append(s.entries, entry{key: key, value: value, line: line})
	}
	return s, nil
}

// notYAML puts an error of the YAML parser into words.
func notYAML(file string, err error) error {
	line, column, twice := scenario.YAMLError(err)
	why := fmt.Errorf("not YAML at column %d: check the indentation, the quotes, and the brackets of this line and "+
		"of the line above", column)
	if twice != "" {
		why = fmt.Errorf("the key %s is given twice: keep one", twice)
	}
	return &input.FileError{File: file, Line: line, Err: why}
}

// extraLine returns the line of what follows the first document, or 1 if nothing does.
func extraLine(tree *ast.File) int {
	if len(tree.Docs) > 1 && tree.Docs[1].Start != nil {
		return tree.Docs[1].Start.Position.Line
	}
	return 1
}

// listKeys are the keys whose value may be a list, apart from those of the plan. The one key whose value may be a
// mapping is faulty.
var listKeys = []string{"values", "alphabet", "show"}

// flagText returns a YAML value as flag text: listKeys with commas, mappings with = and commas. Its errors are
// LineErrors.
func flagText(key string, n ast.Node) (string, error) {
	write := "write one plain value"
	switch {
	case key == "faulty":
		write = "write PROCESS: BEHAVIOR, as in {1: twofaced, 5: flip}"
	case slices.Contains(listKeys, key):
		write = "write one plain value, or a list of plain values"
	}
	wrong := func(at ast.Node, what string) error {
		return &scenario.LineError{
			Line: at.GetToken().Position.Line, Err: fmt.Errorf("%s: %s is not allowed: %s", key, what, write),
		}
	}
	var parts []string
	switch n := n.(type) {
	case *ast.SequenceNode:
		if !slices.Contains(listKeys, key) {
			return "", wrong(n, "a list")
		}
		for _, v := range n.Values {
			text, ok := scalar(v)
			if !ok {
				return "", wrong(v, "a list in a list")
			}
			if strings.Contains(text, ",") {
				return "", &scenario.LineError{
					Line: v.GetToken().Position.Line,
					Err:  fmt.Errorf("%s: %q has a comma, which separates values: write values without commas", key, text),
				}
			}
			parts = append(parts, text)
		}
	case *ast.MappingNode, *ast.MappingValueNode:
		pairs, _ := scenario.Pairs(n)
		if key != "faulty" {
			return "", wrong(n, "a mapping")
		}
		for _, pair := range pairs {
			text, ok := scalar(pair.Value)
			if !ok {
				return "", wrong(pair.Value, "a list or mapping here")
			}
			parts = append(parts, pair.Key.GetToken().Value+"="+text)
		}
	default:
		text, ok := scalar(n)
		if !ok {
			return "", wrong(n, "a YAML anchor, alias, or tag")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ","), nil
}

// scalar returns a plain value as text. A missing value is the empty text.
func scalar(n ast.Node) (text string, ok bool) {
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.BoolNode, *ast.FloatNode:
		return n.GetToken().Value, true
	case *ast.NullNode:
		return "", true
	}
	return "", false
}

// Protocol returns the value of the key protocol.
func (s *Scenario) Protocol() (string, error) {
	for _, e := range s.entries {
		if e.key == "protocol" {
			return e.value, nil
		}
	}
	return "", &input.FileError{
		File: s.file, Line: 1, Err: errors.New("the key \"protocol\" is missing: add a line such as \"protocol: eig\""),
	}
}

// sets reports whether the file has the key.
func (s *Scenario) sets(key string) bool {
	return slices.ContainsFunc(s.entries, func(e entry) bool { return e.key == key })
}

// About adds file and line to an error about a flag that the file sets. s may be nil.
func (s *Scenario) About(err error) error {
	if about, ok := errors.AsType[*parley.FlagError](err); ok && s != nil && s.sets(about.Flag) {
		return s.At(about.Flag, about.Err)
	}
	return err
}

// At adds the file and the line of a key to an error.
func (s *Scenario) At(key string, err error) error {
	for _, e := range s.entries {
		if e.key == key {
			line := e.line
			if e.node != nil {
				line = lineOf(err, line)
			}
			return &input.FileError{File: s.file, Line: line, Err: fmt.Errorf("%s: %w", key, err)}
		}
	}
	return fmt.Errorf("%s: %w", s.file, err)
}

// lineOf returns the line of an error, or the given one if the error has none.
func lineOf(err error, line int) int {
	if placed, ok := errors.AsType[*scenario.LineError](err); ok {
		return placed.Line
	}
	return line
}

// private are the flags that no file may set. A file may come from an untrusted source: it must not write files, run
// programs, or take more memory than its user allows.
var private = []string{
	"scenario", "help", "svg", "trace", "json", "open", "color", "memory", "node", "seeds", "all", "workers",
}

// FileMaySet reports whether a scenario file may set a flag.
func FileMaySet(flag string) bool { return !slices.Contains(private, flag) }

// TakesList reports whether the value of a key may be a list, apart from the keys of the plan.
func TakesList(key string) bool { return slices.Contains(listKeys, key) }

// Apply sets the flags that the command line has not set. s may be nil.
func (s *Scenario) Apply(f *Flags) error {
	if s == nil {
		return nil
	}
	seen := make(map[string]bool)
	for _, e := range s.entries {
		switch g := f.fs.Lookup(e.key); {
		case seen[e.key]:
			return s.At(e.key, errors.New("the key is given twice: keep one"))
		case e.key == "protocol":
			if e.value != f.protocol {
				return s.At(e.key, fmt.Errorf("the file is for %q, but the command names %q: name one protocol", e.value,
					f.protocol))
			}
		case g == nil || slices.Contains(private, e.key):
			allowed := slices.DeleteFunc(Names(f.fs), func(n string) bool { return slices.Contains(private, n) })
			if slices.Contains(private, e.key) {
				return s.At(e.key, fmt.Errorf("it is not allowed in a file: give --%s on the command line", e.key))
			}
			return &input.FileError{File: s.file, Line: e.line, Err: fmt.Errorf("unknown key %q: %s", e.key,
				nearest.Names(e.key, append([]string{"protocol"}, allowed...)))}
		case !g.Changed && e.node != nil:
			if err := f.Plan.set(e.key, e.node); err != nil {
				return s.At(e.key, err)
			}
		case !g.Changed:
			err := f.fs.Set(e.key, e.value)
			if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
				err = input.ValueError(bad)
			}
			if err != nil {
				return s.At(e.key, err)
			}
		}
		seen[e.key] = true
	}
	return nil
}
