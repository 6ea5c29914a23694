package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"parley/cli/console"
)

// printed returns a text from a node unchanged if a terminal can show it, and quoted otherwise.
func printed(text []byte) string {
	s := string(text)
	odd := func(r rune) bool { return r != '\t' && r != '\n' && unicode.IsControl(r) }
	if !utf8.ValidString(s) || strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}

// printProto prints an answer in the API's JSON form.
func printProto(a *console.App, m proto.Message) error { return PrintOf(a, "", m) }

// PrintOf is printProto with the name of the answering node. An empty name is omitted.
func PrintOf(a *console.App, node string, m proto.Message) error {
	b := []byte("{}")
	if m != nil {
		var err error
		if b, err = (protojson.MarshalOptions{EmitUnpopulated: true}).Marshal(m); err != nil {
			return err
		}
	}
	var line bytes.Buffer
	if err := json.Compact(&line, b); err != nil {
		return err
	}
	text := line.String()
	if node != "" {
		comma := ","
		if text == "{}" {
			comma = ""
		}
		text = `{"node":` + strconv.Quote(node) + comma + text[1:]
	}
	_, err := fmt.Fprintln(a.Out, text)
	return err
}

// valueText returns a value as text, and "none" for nil.
func valueText(value []byte) string {
	if value == nil {
		return "none"
	}
	return strconv.Quote(string(value))
}
