// Package term writes runs as text: tables of messages, information trees, decisions,
// verdicts, and pictures made of characters.
//
// Every function is pure: it reads no terminal, no clock and no environment, and the same data give the same bytes.
// The width is a parameter, in columns of a fixed-width font, and no line is wider. If a picture would be too big,
// the package folds or collapses it, or shows numbers in place of its parts. It never refuses to draw a picture.
package term

import (
	"strings"

	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
)

// The colors of text, as ANSI sequences.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// paint colors a text on one line.
func paint(s reading.Style, colour, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// heading returns a bold text, folded.
func heading(s reading.Style, text string) string {
	var out strings.Builder
	for _, line := range prose.Lines(text, s.Columns()) {
		out.WriteString(paint(s, bold, line) + "\n")
	}
	return out.String()
}
