package main

import (
	"regexp"
	"strings"
)

// protoFile is what the reference needs of a .proto file.
type protoFile struct {
	name     string
	services []*protoType
	types    []*protoType // messages and enumerations
	head     string       // the comment behind the package line that belongs to nothing
}

// protoType is a service, a message or an enumeration.
type protoType struct {
	kind, name, comment string
	fields              []protoField
}

// protoField is a method, a field or a value.
type protoField struct {
	name, comment string
	takes, gives  string // types; of a field only the second
}

var (
	protoOpen   = regexp.MustCompile(`^(service|message|enum) (\w+) \{`)
	protoMethod = regexp.MustCompile(`^rpc (\w+)\((\w+)\) returns \(([\w ]+)\)`)
	protoMember = regexp.MustCompile(`^([\w.]+(?: [\w.]+)?|map<[^>]+>) (\w+) = \d+`)
	protoValue  = regexp.MustCompile(`^([A-Z_0-9]+) = \d+;`)
)

// readProto reads a file in the layout of this module: one declaration a line, comments above.
func readProto(name, text string) *protoFile {
	f := &protoFile{name: name}
	var in *protoType
	var comment []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if said, ok := strings.CutPrefix(line, "//"); ok {
			comment = append(comment, strings.TrimPrefix(said, " "))
			continue
		}
		said := strings.Join(comment, "\n")
		comment = nil
		if m := protoOpen.FindStringSubmatch(line); m != nil {
			in = &protoType{kind: m[1], name: m[2], comment: said}
			if m[1] == "service" {
				f.services = append(f.services, in)
			} else {
				f.types = append(f.types, in)
			}
			continue
		}
		if in == nil {
			if said != "" {
				f.head = said
			}
			continue
		}
		if m := protoMethod.FindStringSubmatch(line); m != nil {
			in.fields = append(in.fields, protoField{m[1], said, m[2], m[3]})
		} else if m := protoValue.FindStringSubmatch(line); m != nil && in.kind == "enum" {
			in.fields = append(in.fields, protoField{name: m[1], comment: said})
		} else if m := protoMember.FindStringSubmatch(line); m != nil && in.kind == "message" {
			in.fields = append(in.fields, protoField{name: m[2], comment: joined(said), gives: m[1]})
		}
	}
	return f
}

// joined puts a comment on one line.
func joined(comment string) string { return strings.Join(strings.Fields(comment), " ") }
