package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"parley/cli/console"
)

// maker makes schemas.
type maker struct {
	root string // the folder of the module
	// protoComments are the comments on fields of messages, by full name. comments are those on fields of structs, by
	// folder and then TYPE.FIELD.
	protoComments map[string]string
	comments      map[string]map[string]string
	used          map[string]bool // the entries of words that a schema has
}

// schema is a JSON Schema, or a part of one.
type schema map[string]any

const draft = "https://json-schema.org/draft/2020-12/schema"

// document completes a schema as a file of its own.
func document(title string, s schema) []byte {
	s["$schema"], s["title"] = draft, title
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a schema has texts, numbers, lists and mappings
	}
	return b.Bytes()
}

// object returns the schema of an object with exactly these properties.
func object(properties schema, required ...string) schema {
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// outputSchema returns the schema of what a command prints with --json.
func (m *maker) outputSchema(p console.Printed) schema {
	var s schema
	if answer, ok := p.Value.(proto.Message); ok {
		s = m.typeSchema(reflect.TypeFor[console.Answered]())
		s["properties"].(schema)["answer"] = m.messageSchema(answer.ProtoReflect().Descriptor())
	} else {
		s = m.typeSchema(reflect.TypeOf(p.Value))
	}
	properties := s["properties"].(schema)
	if properties["version"] != nil {
		panic(fmt.Sprintf("%s: the key version is taken", p.Schema))
	}
	properties["version"] = schema{"const": console.JSONVersion}
	required, _ := s["required"].([]string)
	s["required"] = append([]string{"version"}, required...)
	return s
}

// typeSchema returns the schema of a type's JSON form.
func (m *maker) typeSchema(t reflect.Type) schema {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return schema{}
	case t == reflect.TypeFor[time.Time]():
		return schema{"type": "string", "format": "date-time"}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return schema{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return schema{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return schema{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return schema{"type": "number"}
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Pointer:
		return m.typeSchema(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return schema{"type": "string", "contentEncoding": "base64"}
		}
		return schema{"type": "array", "items": m.typeSchema(t.Elem())}
	case reflect.Array:
		return schema{"type": "array", "items": m.typeSchema(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": m.typeSchema(t.Elem())}
	case reflect.Struct:
		properties := schema{}
		return object(properties, m.addFields(properties, t)...)
	}
	panic("no schema for " + t.String())
}

// addFields adds the fields of a struct, as encoding/json names them, and returns those that are always there.
func (m *maker) addFields(properties schema, t reflect.Type) (required []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			required = append(required, m.addFields(properties, f.Type)...)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		s := m.typeSchema(f.Type)
		if strings.Contains(options, "string") {
			s = schema{"type": "string", "pattern": "^-?[0-9]+$"}
		}
		if closed := words[t.String()+"."+f.Name]; closed != nil {
			s["enum"] = closed
			m.used[t.String()+"."+f.Name] = true
		}
		if f.Tag.Get("null") != "" {
			s = schema{"anyOf": []schema{s, {"type": "null"}}}
		}
		if text := m.comment(t, f.Name); text != "" {
			s["description"] = text
		}
		if properties[name] = s; !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	return required
}
