package nodefile

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"parley/cluster"
	"parley/cluster/cert"
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

// unknown says which keys there are, and first the one that may have been meant.
func (v value) unknown(name string, keys []key) error {
	var names []string
	meant, least := "", 3
	for _, k := range keys {
		names = append(names, k.name)
		if d := nearest.Distance(name, k.name); d < least && d < len(k.name)/2+1 {
			meant, least = k.name, d
		}
	}
	if meant != "" {
		meant = " was " + meant + " meant?"
	}
	return v.wrong("unknown key %q:%s allowed are %s", name, meant, strings.Join(names, ", "))
}

// list goes through a list.
func (v value) list(each func(value) error) error {
	n, ok := v.node.(*ast.SequenceNode)
	if !ok {
		return v.expected("a list, with \"- key: value\" for each,")
	}
	for _, one := range n.Values {
		if err := each(value{v.file, v.key, one}); err != nil {
			return err
		}
	}
	return nil
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

// name reads the name of a cluster, a node, a group or a table.
func (v value) name() (string, error) {
	text, err := v.text()
	if err != nil {
		return "", err
	}
	if err := cert.CheckName(text); err != nil {
		return "", v.wrong("%v", err)
	}
	return text, nil
}

func (v value) folder() (string, error) {
	text, err := v.text()
	if err == nil && (text == "" || strings.ContainsRune(text, 0)) {
		err = v.wrong("%q: the name of a folder was expected", text)
	}
	return text, err
}

// yes reads a truth.
func (v value) yes() (bool, error) {
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

// The least and the longest time that may be configured.
const (
	minTime = time.Millisecond
	maxTime = time.Hour
)

func (v value) time() (time.Duration, error) {
	text, err := v.text()
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < minTime || d > maxTime {
		return 0, v.wrong("%q: allowed are 1ms to 1h, with the unit, as in 100ms or 1.5s", text)
	}
	return d, nil
}

// diskLimit is how long a call of the disk may take.
func (v value) diskLimit() (time.Duration, error) {
	text, err := v.text()
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(text)
	if err != nil || (cluster.Config{DiskLimit: max(d, 1)}).CheckDisk() != nil {
		return 0, v.wrong("%q: allowed are 100ms to 1h, with the unit, as in 5s", text)
	}
	return d, nil
}

// shortest and maxDrift are the limits of what clocks go by.
const (
	shortest = 10 * time.Microsecond
	maxDrift = 100_000
)

// short is a time that may be shorter than others.
func (v value) short() (time.Duration, error) {
	text, err := v.text()
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < shortest || d > time.Second {
		return 0, v.wrong("%q: allowed are 10us to 1s, with the unit, as in 500us or 2ms", text)
	}
	return d, nil
}

// ahead is by how much something is ahead, or behind.
func (v value) ahead() (time.Duration, error) {
	text, err := v.text()
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < -24*maxTime || d > 24*maxTime {
		return 0, v.wrong("%q: allowed are -24h to 24h, with the unit, as in 1.5s or -200ms", text)
	}
	return d, nil
}

// parts is a number of parts in a million.
func (v value) parts(least int64) (int64, error) {
	text, err := v.text()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > maxDrift {
		return 0, v.wrong("%q: a whole number of parts in a million, from %d to %d, was expected", text, least, maxDrift)
	}
	return n, nil
}

func (v value) whole() (int, error) {
	text, err := v.text()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, v.wrong("%q: a whole number from 0 to 65535 was expected", text)
	}
	return int(n), nil
}

// amount reads a number that is not 0.
func (v value) amount(most uint64) (int, error) {
	text, err := v.text()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 || n > most {
		return 0, v.wrong("%q: a whole number from 1 to %d was expected", text, most)
	}
	return int(n), nil
}

// liars is how many may lie. Which numbers are allowed depends on the members.
func (v value) liars() (int, error) {
	text, err := v.text()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, v.wrong("%q: the number of nodes that may lie was expected", text)
	}
	return int(n), nil
}

// dialed reads an address that others connect to, and listened one to listen on.
func (v value) dialed() (string, error)   { return v.address(true) }
func (v value) listened() (string, error) { return v.address(false) }

func (v value) address(dialed bool) (string, error) {
	text, err := v.text()
	if err != nil {
		return "", err
	}
	host, port, err := net.SplitHostPort(text)
	n, bad := strconv.ParseUint(port, 10, 16)
	if err != nil || bad != nil || n == 0 || strconv.Itoa(int(n)) != port {
		return "", v.wrong("%q: HOST:PORT was expected, with a PORT from 1 to 65535", text)
	}
	ip := net.ParseIP(host)
	if host == "" || ip != nil && ip.IsUnspecified() {
		if dialed {
			return "", v.wrong("%q: a HOST that the others can connect to was expected", text)
		}
		return text, nil
	}
	if err := cert.CheckHost(host); err != nil {
		return "", v.wrong("%v", err)
	}
	return text, nil
}

// clash tells whether one process can not listen on both addresses.
func clash(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	all := func(host string) bool { return host == "" || net.ParseIP(host).IsUnspecified() }
	return errors.Join(errA, errB) == nil && portA == portB && (hostA == hostB || all(hostA) || all(hostB))
}
