package nodefile

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"parley/cluster/cert"
	"parley/internal/lists"
	"parley/internal/nearest"
)

// Error is an error in a file, with its position.
type Error struct {
	File string
	Line int
	Key  string // with its parent keys; empty if the error is about no key
	Text string // what was found, and what is allowed
}

func (e *Error) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text)
	}
	return fmt.Sprintf("%s:%d: %s: %s", e.File, e.Line, e.Key, e.Text)
}

// Place returns the file and the line.
func (e *Error) Place() (file string, line int) { return e.File, e.Line }

// maxFile is the maximum size of a file, in bytes.
const maxFile = 1 << 18

// Read reads and parses a file.
func Read(file string) (*File, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1)) // a device has no size
	if err != nil {
		return nil, err
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("%s: more than %d bytes: no configuration is so long", file, maxFile)
	}
	return Parse(file, b)
}

// value is a part of a file.
type value struct {
	file string
	key  string // with its parent keys
	node ast.Node
}

// document parses YAML.
func document(file string, b []byte) (value, error) {
	tree, err := parser.ParseBytes(b, 0)
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		line, column := 1, 0
		if n, _ := fmt.Sscanf(text, "[%d:%d]", &line, &column); n == 2 {
			_, text, _ = strings.Cut(text, "] ")
		}
		return value{}, &Error{file, line, "", "not YAML: " + text}
	}
	if len(tree.Docs) != 1 || tree.Docs[0].Body == nil {
		line := 1
		if len(tree.Docs) > 1 && tree.Docs[1].Start != nil {
			line = tree.Docs[1].Start.Position.Line
		}
		return value{}, &Error{file, line, "", "one YAML document was expected, with lines \"key: value\""}
	}
	return value{file: file, node: tree.Docs[0].Body}, nil
}

func (v value) line() int { return v.node.GetToken().Position.Line }

// wrong returns an error about the value.
func (v value) wrong(form string, args ...any) error {
	return &Error{v.file, v.line(), v.key, fmt.Sprintf(form, args...)}
}

// expected returns the error of a value of another kind.
func (v value) expected(what string) error {
	var found string
	switch n := v.node.(type) {
	case *ast.NullNode:
		found = "nothing"
	case *ast.SequenceNode:
		found = "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		found = "a mapping"
	case *ast.LiteralNode:
		found = "a block of text"
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		found = strconv.Quote(n.GetToken().Value) + ", which is YAML's own,"
	default:
		found = strconv.Quote(n.GetToken().Value)
	}
	return v.wrong("%s was found: %s was expected", found, what)
}

// key is a possible key of a mapping.
type key struct {
	name   string
	needed bool
	read   func(value) error
}

// mapping returns a function that parses a mapping.
func mapping(keys ...key) func(value) error { return func(v value) error { return v.fields(keys...) } }

// fields parses a mapping.
func (v value) fields(keys ...key) error {
	var pairs []*ast.MappingValueNode
	switch n := v.node.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		return v.expected("\"key: value\"")
	}
	seen := make(map[string]bool)
	for _, pair := range pairs {
		name := pair.Key.GetToken().Value
		i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
		if i < 0 {
			return value{v.file, v.key, pair.Key}.unknown(name, keys)
		}
		seen[name] = true
		if err := keys[i].read(value{v.file, v.under(name), pair.Value}); err != nil {
			return err
		}
	}
	for _, k := range keys {
		if k.needed && !seen[k.name] {
			return value{v.file, v.under(k.name), v.node}.wrong("the key is missing")
		}
	}
	return nil
}

// under returns the name of a key under v.
func (v value) under(name string) string {
	if v.key == "" {
		return name
	}
	return v.key + ": " + name
}

// unknown suggests the keys that a misspelt one may stand for, or lists the allowed ones.
func (v value) unknown(name string, keys []key) error {
	return v.wrong("unknown key %q: %s", name, nearest.Names(name, lists.Of(keys, func(k key) string { return k.name })))
}

// list returns a function that parses a list of at most `most` entries.
func list[T any](to *[]T, what string, least, most int, one func(value) (T, error)) func(value) error {
	return func(v value) error {
		n, ok := v.node.(*ast.SequenceNode)
		if !ok {
			return v.expected("a list, with \"- key: value\" for each,")
		}
		for _, node := range n.Values {
			v := value{v.file, v.key, node}
			x, err := one(v)
			if err == nil && len(*to) == most {
				err = v.wrong("more than %d %s: allowed are %d to %d", most, what, least, most)
			}
			if err != nil {
				return err
			}
			*to = append(*to, x)
		}
		return nil
	}
}

// into returns a function that stores what read returns.
func into[T any](to *T, read func(value) (T, error)) func(value) error {
	return func(v value) (err error) {
		*to, err = read(v)
		return err
	}
}

func (v value) text() (string, error) {
	switch v.node.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.BoolNode, *ast.FloatNode:
		return v.node.GetToken().Value, nil
	}
	return "", v.expected("a plain value")
}

// parsed returns a reader of plain values. If parse fails, the error has its text.
func parsed[T any](parse func(text string) (T, error)) func(value) (T, error) {
	return func(v value) (out T, err error) {
		text, err := v.text()
		if err != nil {
			return out, err
		}
		if out, err = parse(text); err != nil {
			err = v.wrong("%v", err)
		}
		return out, err
	}
}

// fitting returns a reader of plain values. If parse fails, the error says what is expected.
func fitting[T any](expected string, parse func(text string) (T, bool)) func(value) (T, error) {
	return parsed(func(text string) (T, error) {
		out, ok := parse(text)
		if !ok {
			return out, fmt.Errorf("%q: %s", text, expected)
		}
		return out, nil
	})
}

// readName parses the name of a cluster or a node.
var readName = parsed(func(text string) (string, error) { return text, cert.CheckName(text) })

// unusedName returns a reader of names that no entry of a list has.
func unusedName[T any](what string, in []T, nameOf func(T) string) func(value) (string, error) {
	return func(v value) (string, error) {
		name, err := readName(v)
		if slices.ContainsFunc(in, func(one T) bool { return nameOf(one) == name }) {
			err = v.wrong("%q: another %s has this name: each needs its own", name, what)
		}
		return name, err
	}
}

var readFolder = fitting("the name of a folder was expected", func(text string) (string, bool) {
	return text, text != "" && !strings.ContainsRune(text, 0)
})

// readBool parses a boolean.
func readBool(v value) (bool, error) {
	text, err := v.oneOf("true", "false")
	return text == "true", err
}

func (v value) oneOf(words ...string) (string, error) {
	text, err := v.text()
	if err == nil && !slices.Contains(words, text) {
		err = v.wrong("%q: allowed are %s", text, strings.Join(words, ", "))
	}
	return text, err
}

// word returns a reader of words, which parse parses.
func word[T any](parse func(string) (T, error), words ...string) func(value) (T, error) {
	return func(v value) (out T, err error) {
		text, err := v.oneOf(words...)
		if err == nil {
			out, err = parse(text)
		}
		return out, err
	}
}

// duration returns a reader of durations; allowed and example are for its errors.
func duration(least, most time.Duration, allowed, example string) func(value) (time.Duration, error) {
	return fitting("allowed are "+allowed+", with the unit, as in "+example, func(text string) (time.Duration, bool) {
		d, err := time.ParseDuration(text)
		return d, err == nil && d >= least && d <= most
	})
}

// maxDrift is the largest drift of a clock, in parts per million.
const maxDrift = 100_000

// The ranges of durations.
var (
	readTime      = duration(time.Millisecond, time.Hour, "1ms to 1h", "100ms or 1.5s")
	readDiskLimit = duration(100*time.Millisecond, time.Hour, "100ms to 1h", "5s")
	readShort     = duration(10*time.Microsecond, time.Second, "10us to 1s", "500us or 2ms")
	readOffset    = duration(-24*time.Hour, 24*time.Hour, "-24h to 24h", "1.5s or -200ms")
)

// drift returns a reader of parts per million.
func drift(least int64) func(value) (int64, error) {
	expected := fmt.Sprintf("a whole number of parts in a million, from %d to %d, was expected", least, maxDrift)
	return fitting(expected, func(text string) (int64, bool) {
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil && n >= least && n <= maxDrift
	})
}

// number returns a reader of numbers.
func number(least, most uint64, expected string) func(value) (int, error) {
	return fitting(expected+" was expected", func(text string) (int, bool) {
		n, err := strconv.ParseUint(text, 10, 63)
		return int(n), err == nil && n >= least && n <= most
	})
}

// amount returns a reader of positive numbers.
func amount(most uint64) func(value) (int, error) {
	return number(1, most, fmt.Sprintf("a whole number from 1 to %d", most))
}

// readLiars parses the number of faulty nodes. Its limit depends on the members.
var readLiars = number(0, math.MaxUint16, "the number of nodes that may lie")

// readDialed parses an address to connect to, and readListened one to listen on.
var readDialed, readListened = address(true), address(false)

func address(dialed bool) func(value) (string, error) {
	return parsed(func(text string) (string, error) {
		host, port, err := net.SplitHostPort(text)
		n, bad := strconv.ParseUint(port, 10, 16)
		if err != nil || bad != nil || n == 0 || strconv.Itoa(int(n)) != port {
			return "", fmt.Errorf("%q: HOST:PORT was expected, with a PORT from 1 to 65535", text)
		}
		ip := net.ParseIP(host)
		if host != "" && (ip == nil || !ip.IsUnspecified()) {
			return text, cert.CheckHost(host)
		}
		if dialed {
			return "", fmt.Errorf("%q: a HOST that the others can connect to was expected", text)
		}
		return text, nil
	})
}

// clash reports whether one process cannot listen on both addresses.
func clash(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	all := func(host string) bool { return host == "" || net.ParseIP(host).IsUnspecified() }
	return errors.Join(errA, errB) == nil && portA == portB && (hostA == hostB || all(hostA) || all(hostB))
}
