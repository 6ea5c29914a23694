package client

import (
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

// printAnswer prints a node's answer in the API's JSON form.
func printAnswer(a *console.App, node string, m proto.Message) error {
	answer, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(m)
	if err != nil {
		return err
	}
	return a.PrintLine(console.Answered{Node: node, Answer: answer})
}

// valueText returns a value as text, and "none" for nil.
func valueText(value []byte) string {
	if value == nil {
		return "none"
	}
	return strconv.Quote(string(value))
}
