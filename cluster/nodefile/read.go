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

// Error is what is wrong with a file, and where.
type Error struct {
	File string
	Line int
	Key  string // with those that it stands under; nothing if it is about no key
	Text string // what was found, and what is allowed
}

func (e *Error) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text)
	}
	return fmt.Sprintf("%s:%d: %s: %s", e.File, e.Line, e.Key, e.Text)
}

// maxFile is how long a file may be, in bytes.
const maxFile = 1 << 18

// Read reads a file.
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
	key  string // with those that it stands under
	node ast.Node
}

// document reads YAML.
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

// wrong is an error about the value.
func (v value) wrong(form string, args ...any) error {
	return &Error{v.file, v.line(), v.key, fmt.Sprintf(form, args...)}
}

// expected is the error of a value of another kind.
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

// key is one that a mapping may have.
type key struct {
	name   string
	needed bool
	read   func(value) error
}

// mapping makes a function that reads a mapping.
func mapping(keys ...key) func(value) error { return func(v value) error { return v.fields(keys...) } }

// fields goes through a mapping.
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

// under is the name of a key that stands under v.
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

// list makes a function that reads a list of at most so many.
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

// into makes a function that stores what it read.
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

// parsed makes a reader of plain values. The error of a value that parse does not take has the text of parse.
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

// fitting makes a reader of plain values. The error of a value that parse does not take says what is expected.
func fitting[T any](expected string, parse func(text string) (T, bool)) func(value) (T, error) {
	return parsed(func(text string) (T, error) {
		out, ok := parse(text)
		if !ok {
			return out, fmt.Errorf("%q: %s", text, expected)
		}
		return out, nil
	})
}

// readName reads the name of a cluster or a node.
var readName = parsed(func(text string) (string, error) { return text, cert.CheckName(text) })

// unusedName makes a reader of names that nothing in a list has.
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

// readBool reads a truth.
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

// word makes a reader of words, which parse understands.
func word[T any](parse func(string) (T, error), words ...string) func(value) (T, error) {
	return func(v value) (out T, err error) {
		text, err := v.oneOf(words...)
		if err == nil {
			out, err = parse(text)
		}
		return out, err
	}
}

// duration makes a reader of durations; allowed and example say which.
func duration(least, most time.Duration, allowed, example string) func(value) (time.Duration, error) {
	return fitting("allowed are "+allowed+", with the unit, as in "+example, func(text string) (time.Duration, bool) {
		d, err := time.ParseDuration(text)
		return d, err == nil && d >= least && d <= most
	})
}

// maxDrift is the largest drift of a clock, in parts in a million.
const maxDrift = 100_000

// What durations are allowed.
var (
	readTime      = duration(time.Millisecond, time.Hour, "1ms to 1h", "100ms or 1.5s")
	readDiskLimit = duration(100*time.Millisecond, time.Hour, "100ms to 1h", "5s")
	readShort     = duration(10*time.Microsecond, time.Second, "10us to 1s", "500us or 2ms")
	readOffset    = duration(-24*time.Hour, 24*time.Hour, "-24h to 24h", "1.5s or -200ms")
)

// drift makes a reader of numbers of parts in a million.
func drift(least int64) func(value) (int64, error) {
	expected := fmt.Sprintf("a whole number of parts in a million, from %d to %d, was expected", least, maxDrift)
	return fitting(expected, func(text string) (int64, bool) {
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil && n >= least && n <= maxDrift
	})
}

// number makes a reader of numbers.
func number(least, most uint64, expected string) func(value) (int, error) {
	return fitting(expected+" was expected", func(text string) (int, bool) {
		n, err := strconv.ParseUint(text, 10, 63)
		return int(n), err == nil && n >= least && n <= most
	})
}

// amount makes a reader of numbers that are not 0.
func amount(most uint64) func(value) (int, error) {
	return number(1, most, fmt.Sprintf("a whole number from 1 to %d", most))
}

// readLiars reads how many nodes may lie. Which numbers are allowed depends on the members.
var readLiars = number(0, math.MaxUint16, "the number of nodes that may lie")

// readDialed reads an address that others connect to, and readListened one to listen on.
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

// clash tells whether one process can not listen on both addresses.
func clash(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	all := func(host string) bool { return host == "" || net.ParseIP(host).IsUnspecified() }
	return errors.Join(errA, errB) == nil && portA == portB && (hostA == hostB || all(hostA) || all(hostB))
}
