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

// printed is a text that nodes keep, as it is if a terminal can show it, else quoted.
func printed(text []byte) string {
	s := string(text)
	odd := func(r rune) bool { return r != '\t' && r != '\n' && unicode.IsControl(r) }
	if !utf8.ValidString(s) || strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}

// printProto prints an answer as JSON, as the API itself would write it.
func printProto(a *console.App, m proto.Message) error { return PrintOf(a, "", m) }

// PrintOf is printProto with the name of the node whose answer it is, if there is one.
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

// valueText is a value that may be none.
func valueText(value []byte) string {
	if value == nil {
		return "none"
	}
	return strconv.Quote(string(value))
}
