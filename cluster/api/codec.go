package api

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// codec is JSON for people: what is 0 or false is written, and a field that there is not is
// refused, so that a word that is misspelled is not taken for one that is left out.
type codec struct{ name string }

// Name is what the library knows it by.
func (c codec) Name() string { return c.name }

// Marshal writes a message.
func (codec) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", v)
	}
	return protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
}

// Unmarshal reads one.
func (codec) Unmarshal(b []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", v)
	}
	return protojson.Unmarshal(b, m)
}
