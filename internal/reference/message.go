package main

import (
	"google.golang.org/protobuf/reflect/protoreflect"
)

// messageSchema returns the schema of a message in the JSON form of protocol buffers, with all fields that have a
// default written out.
func (m *maker) messageSchema(d protoreflect.MessageDescriptor) schema {
	switch d.FullName() {
	case "google.protobuf.Duration":
		return schema{"type": "string", "pattern": `^-?[0-9]+(\.[0-9]+)?s$`}
	case "google.protobuf.Timestamp":
		return schema{"type": "string", "format": "date-time"}
	}
	properties := schema{}
	var required []string
	fields := d.Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		s := m.fieldSchema(f)
		if text := m.protoComments[string(f.FullName())]; text != "" {
			s["description"] = text
		}
		properties[f.JSONName()] = s
		if f.ContainingOneof() == nil {
			required = append(required, f.JSONName())
		}
	}
	return object(properties, required...)
}

func (m *maker) fieldSchema(f protoreflect.FieldDescriptor) schema {
	switch {
	case f.IsMap():
		return schema{"type": "object", "additionalProperties": m.valueSchema(f.MapValue())}
	case f.IsList():
		return schema{"type": "array", "items": m.valueSchema(f)}
	case f.Message() != nil && f.ContainingOneof() == nil:
		return schema{"anyOf": []schema{m.valueSchema(f), {"type": "null"}}}
	}
	return m.valueSchema(f)
}

// valueSchema returns the schema of one value of a field.
func (m *maker) valueSchema(f protoreflect.FieldDescriptor) schema {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return schema{"type": "boolean"}
	case protoreflect.EnumKind:
		var names []string
		for i := range f.Enum().Values().Len() {
			names = append(names, string(f.Enum().Values().Get(i).Name()))
		}
		return schema{"enum": names}
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Uint32Kind:
		return schema{"type": "integer"}
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Uint64Kind:
		return schema{"type": "string", "pattern": "^-?[0-9]+$"}
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		return schema{"type": "number"}
	case protoreflect.StringKind:
		return schema{"type": "string"}
	case protoreflect.BytesKind:
		return schema{"type": "string", "contentEncoding": "base64"}
	case protoreflect.MessageKind:
		return m.messageSchema(f.Message())
	}
	panic("no schema for " + string(f.FullName()))
}
