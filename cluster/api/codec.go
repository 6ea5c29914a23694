package api

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// codec is JSON for people: it writes fields that are 0 or false, and refuses unknown fields, so that a
// misspelled field is not mistaken for an omitted one.
type codec struct{ name string }

func (c codec) Name() string { return c.name }

func (codec) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", v)
	}
	return protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
}

func (codec) Unmarshal(b []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", v)
	}
	return protojson.Unmarshal(b, m)
}
