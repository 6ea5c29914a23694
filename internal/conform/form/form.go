// Package form decodes JSON strictly. It reports an error for deviations that the standard library's decoder
// tolerates.
package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Strict decodes JSON, and refuses what the decoder tolerates: see reader.
func Strict(b []byte, into any) error {
	if err := Decode(b, into); err != nil {
		return err
	}
	return reader{json.NewDecoder(bytes.NewReader(b))}.check(reflect.TypeOf(into), false)
}

// Decode decodes JSON like the standard library, with errors in the terms of the format.
func Decode(b []byte, into any) error {
	err := json.Unmarshal(b, into)
	var misfit *json.UnmarshalTypeError
	if errors.As(err, &misfit) {
		err = fmt.Errorf("%s, where %s was expected", misfit.Value, kindOf(misfit.Type))
		if misfit.Field != "" {
			err = fmt.Errorf("%s: %w", keys(reflect.TypeOf(into), misfit.Field), err)
		}
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		err = &SyntaxError{syntax}
	}
	return err
}

// SyntaxError is an error of text that is not JSON.
type SyntaxError struct{ *json.SyntaxError }

func (e *SyntaxError) Error() string { return "the text is not JSON" }

// Unwrap returns the error of the decoder.
func (e *SyntaxError) Unwrap() error { return e.SyntaxError }

// keys returns the keys in a path of the decoder, which also names embedded structs.
func keys(t reflect.Type, path string) string {
	var out []string
	for name := range strings.SplitSeq(path, ".") {
		for t.Kind() == reflect.Pointer || nested(t) && t.Kind() != reflect.Struct {
			t = t.Elem()
		}
		if f, is := fieldsOf(t)[name]; is {
			out, t = append(out, name), f.Type
		}
	}
	return strings.Join(out, ".")
}

// kindOf says what JSON a type needs.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Uint64:
		return "a whole number that is not negative"
	}
	return "a whole number"
}

// Listed joins words with commas, and the last with "and".
func Listed(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// reader compares JSON text with the type into which it was decoded, and refuses what the decoder tolerates: unknown
// keys, keys with other letters, duplicate keys, lists whose length differs from the array's, empty objects, and
// null. The tag of a field may allow null or an empty object. A RawMessage is skipped, because it is decoded later;
// so the check goes no deeper than the type, however deep the value is.
type reader struct{ dec *json.Decoder }

var (
	errNull  = errors.New("null is no value here")
	errEmpty = errors.New("an empty object says nothing")
)

// check checks the next value. empty says whether it may be an object without keys.
func (f reader) check(t reflect.Type, empty bool) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !nested(t) {
		value, err := f.skip()
		if err == nil && string(value) == "null" {
			err = errNull
		}
		return err
	}
	open, err := f.dec.Token()
	switch {
	case err != nil:
		return err
	case open == nil:
		return errNull
	case open == json.Delim('['):
		err = f.list(t)
	default:
		err = f.object(t, empty)
	}
	if err == nil {
		_, err = f.dec.Token() // the closing bracket
	}
	return err
}

// nested reports whether a type contains values to check.
func nested(t reflect.Type) bool {
	kinds := []reflect.Kind{reflect.Struct, reflect.Map, reflect.Slice, reflect.Array}
	return slices.Contains(kinds, t.Kind()) && t != reflect.TypeFor[json.RawMessage]()
}

func (f reader) skip() (json.RawMessage, error) {
	var value json.RawMessage
	err := f.dec.Decode(&value)
	return value, err
}

func (f reader) list(t reflect.Type) error {
	n := 0
	for ; f.dec.More(); n++ {
		if err := f.check(t.Elem(), false); err != nil {
			return fmt.Errorf("entry %d: %w", n, err)
		}
	}
	if t.Kind() == reflect.Array && n != t.Len() {
		return fmt.Errorf("a list of %d, where one of %d was expected", n, t.Len())
	}
	return nil
}

func (f reader) object(t reflect.Type, empty bool) error {
	var fields map[string]reflect.StructField
	if t.Kind() == reflect.Struct {
		fields = fieldsOf(t)
	}
	seen := make(map[string]bool)
	for f.dec.More() {
		token, err := f.dec.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		field, known := fields[key]
		switch {
		case seen[key]:
			return fmt.Errorf("key %q is given twice", key)
		case fields != nil && !known:
			return fmt.Errorf("unknown key %q: allowed are %s", key, strings.Join(Keys(fields), ", "))
		case field.Tag.Get("null") == "allowed":
			_, err = f.skip()
		case known:
			err = f.check(field.Type, field.Tag.Get("empty") == "allowed")
		default:
			err = f.check(t.Elem(), false)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		seen[key] = true
	}
	if len(seen) == 0 && !empty {
		return errEmpty
	}
	return nil
}

// fieldsOf returns the fields of a struct by key, including those of embedded structs.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	fields := make(map[string]reflect.StructField)
	for _, f := range reflect.VisibleFields(t) {
		if key := f.Tag.Get("json"); key != "" {
			fields[key] = f
		}
	}
	return fields
}

// Keys returns the sorted keys of an object.
func Keys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
