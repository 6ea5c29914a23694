package scenario

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"parley"
)

// names returns the name of a process.
type names = func(parley.ID) string

// field is one key of a mapping.
type field struct {
	key   string
	read  func(reader, ast.Node) error
	write func(names) string // returns "" for a value that is omitted
}

// kind reads and writes values of one type.
type kind[T any] struct {
	read  func(reader, ast.Node) (T, error)
	write func(names, T) string // like field.write
}

// value returns the field that holds *v.
func value[T any](key string, v *T, k kind[T]) field {
	return field{
		key, func(r reader, n ast.Node) (err error) {
			*v, err = k.read(r, n)
			return err
		},
		func(n names) string { return k.write(n, *v) },
	}
}

// readOnly returns a field that is never written, because a drawn plan does not have it.
func readOnly[T any](key string, v *T, read func(reader, ast.Node, *T) error) field {
	return field{key, func(r reader, n ast.Node) error { return read(r, n, v) }, func(names) string { return "" }}
}

// mapping returns a field whose value is a mapping with fields of its own.
func mapping(key string, fields ...field) field {
	return field{
		key, func(r reader, n ast.Node) error { return r.fields(n, fields) },
		func(n names) string {
			if text := flow(n, fields); text != "{}" {
				return text
			}
			return ""
		},
	}
}

// entry describes a mapping in a list: its fields, the required ones, and a check of all together.
type entry struct {
	fields []field
	needed []string
	check  func() error // nil: no check
}

// list returns a field that holds a list of mappings. entryOf describes the entry v that is being read or written;
// before are the entries read so far.
func list[T any](key string, to *[]T, entryOf func(v *T, before []T) entry) field {
	return field{
		key, func(r reader, n ast.Node) error {
			return r.list(key, n, func(n ast.Node) error {
				var v T
				e := entryOf(&v, *to)
				err := r.fields(n, e.fields, e.needed...)
				if err == nil && e.check != nil {
					err = e.check()
				}
				*to = append(*to, v)
				return err
			})
		},
		func(n names) string {
			var parts []string
			for _, v := range *to {
				parts = append(parts, flow(n, entryOf(&v, nil).fields))
			}
			if len(parts) == 0 {
				return ""
			}
			return "[" + strings.Join(parts, ", ") + "]"
		},
	}
}

// flow writes a mapping in the flow style of YAML.
func flow(n names, fields []field) string {
	var parts []string
	for _, f := range fields {
		if text := f.write(n); text != "" {
			parts = append(parts, f.key+": "+text)
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// at adds the line of a node to an error that has none.
func at(n ast.Node, err error) error {
	if _, placed := errors.AsType[*LineError](err); placed || err == nil {
		return err
	}
	return &LineError{n.GetToken().Position.Line, err}
}

// Pairs returns the keys and values of a mapping. ok is false if the node is none.
func Pairs(n ast.Node) (pairs []*ast.MappingValueNode, ok bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode: // a mapping on one line
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}
