// Package goal parses goals. A goal describes a state that a search must find, such as "P2 decided and not P3
// decided".
package goal

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley"
	"parley/explore"
)

// Help explains to users how goals are written.
const Help = `A goal is a sentence about a state. These are the simple sentences about process P2, which
the explanations call "it":
  P2 decided                  it has decided
  P2 decides 0                it has decided this value, such as 0, commit, or {0,1}
  P2 delivered                it has delivered a message
  P2 delivers a               it has delivered a message with the payload a
  P2 delivers a before b      it has delivered a and, after a, also b
  P2 asked                    it has received a request
  P2 asked a                  it has received the request a
  P2 suspects P1              it has reported a suspicion of P1
  P2 says "is blocked"        it has reported a text that contains these words
  P2 down                     it has crashed and not restarted
  P2 correct                  it is neither down nor faulty
  P2.round = 1                its machine has a variable round with the value 1
  over                        the run is over: nothing more is due
Instead of a process you can write all, some, all correct, or some correct, as in "all
correct decided" and "some.round > 2". Combine sentences with "not", "and", "or", and
parentheses. "not" binds most strongly, then "and", then "or".

A value is a word, or text in double quotes.

Write the name of a variable as reports show it, but with _ for each space, as in
P1.also_back and P1.from[0].seq. Compare a variable with = != < <= > >=. Two numbers are
compared as numbers, everything else as text. Write a time relative to the time of the state,
in ticks: 100 means 100 ticks later. If a value is a process, write its number, counted from
0: 0 is P1. A comparison is false if the variable does not exist, because the process is down
or a list is too short. Explore refuses the name of a variable that no process has at the
start. To use such a name, write it in quotes, as in P1."due".`

// Goal is a predicate on states.
type Goal struct {
	Says  string // the text it was parsed from
	Looks bool   // it reads the variables of machines, and needs [explore.View.Vars]
	Holds func(*explore.View) bool
}

// The limits of a goal.
const (
	longest = 4096 // bytes
	deepest = 64   // parentheses and nots around one sentence
)

// Parse parses a goal about the processes of p, in the syntax that [Help] describes. The function naming parses the
// names of processes, and name returns them. An error contains the column, counted in characters from 1, and what was
// expected there. If a name is unknown, the error also contains similar names.
func Parse(text string, p parley.Protocol, naming parley.Naming, name func(parley.ID) string) (Goal, error) {
	tokens, err := scan(text)
	if err != nil {
		return Goal{}, err
	}
	r := reader{p: p, naming: naming, name: name, tokens: tokens}
	holds, err := r.either()
	if t := r.next(); err == nil && t.kind != end {
		err = t.wrong("and, or or the end")
	}
	if err != nil {
		return Goal{}, err
	}
	return Goal{Says: strings.TrimSpace(text), Looks: r.looks, Holds: holds}, nil
}

// token is one word, sign or quotation of a goal.
type token struct {
	kind kind
	text string // without the quotes
	at   int    // its column
}

type kind uint8

const (
	end kind = iota
	word
	quote
	sign // a parenthesis or a comparison
)

func (t token) is(text string) bool {
	return t.kind != end && t.kind != quote && t.text == text
}

func (t token) opens(with string) bool {
	return t.kind == word && strings.HasPrefix(t.text, with)
}

func (t token) errorf(format string, args ...any) error {
	return fmt.Errorf("column %d: %w", t.at, fmt.Errorf(format, args...))
}

// wrong returns the error that something else was expected.
func (t token) wrong(expected string) error {
	return t.errorf("%s was expected, not %s", expected, t)
}

func (t token) String() string {
	if t.kind == end {
		return "the end"
	}
	return fmt.Sprintf("%.40q", t.text)
}

// tokenAt returns the kind and the length in bytes of the token that a text begins with: a word, a quotation or a sign.
// The length is 0 if it begins with none. A regular expression would say the same, and package regexp makes the lab's
// engine for the browser 3 % larger.
func tokenAt(text string) (kind, int) {
	switch c := text[0]; {
	case strings.IndexByte("()=<>", c) >= 0:
		if (c == '<' || c == '>') && strings.HasPrefix(text[1:], "=") {
			return sign, 2
		}
		return sign, 1
	case strings.HasPrefix(text, "!="):
		return sign, 2
	case c == '"':
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case '"':
				return quote, i + 1
			}
		}
		return end, 0
	}
	n := strings.IndexAny(text, " \t\r\n\f()\"'=<>!")
	if n < 0 {
		n = len(text)
	}
	return word, n
}

// scan splits a goal into tokens. The last one is the end.
func scan(text string) ([]token, error) {
	if len(text) > longest {
		return nil, fmt.Errorf("the goal has %d bytes: at most %d are allowed", len(text), longest)
	}
	var list []token
	for rest := text; ; {
		rest = strings.TrimLeft(rest, " \t\r\n\f") // what \s stands for
		t := token{at: utf8.RuneCountInString(text[:len(text)-len(rest)]) + 1}
		if rest == "" {
			return append(list, t), nil
		}
		var n int
		if t.kind, n = tokenAt(rest); n == 0 {
			return nil, t.errorf("%.1q begins nothing: quotes are double and closed, comparisons are = != < <= > >=", rest)
		}
		if t.text = rest[:n]; t.kind == quote {
			var err error
			if t.text, err = strconv.Unquote(t.text); err != nil {
				return nil, t.errorf("in quotes a line does not end, and a \\ is part of \\\", \\\\, \\n or \\x00")
			}
		}
		list, rest = append(list, t), rest[n:]
	}
}

// reader parses the tokens of a goal.
type reader struct {
	p      parley.Protocol
	naming parley.Naming
	name   func(parley.ID) string
	tokens []token
	depth  int
	looks  bool
	vars   *variables
}

func (r *reader) next() token { return r.tokens[0] }

// take returns the next token and advances past it, but not past the end.
func (r *reader) take() token {
	t := r.tokens[0]
	r.tokens = r.tokens[min(1, len(r.tokens)-1):]
	return t
}

// either: both { "or" both }.
func (r *reader) either() (func(*explore.View) bool, error) {
	return r.joined("or", r.both)
}

// both: one { "and" one }.
func (r *reader) both() (func(*explore.View) bool, error) {
	return r.joined("and", r.one)
}

func (r *reader) joined(by string, read func() (func(*explore.View) bool, error)) (func(*explore.View) bool, error) {
	var parts []func(*explore.View) bool
	for {
		part, err := read()
		if err != nil {
			return nil, err
		}
		if parts = append(parts, part); !r.next().is(by) {
			break
		}
		r.take()
	}
	return func(v *explore.View) bool {
		for _, holds := range parts {
			if holds(v) == (by == "or") {
				return by == "or"
			}
		}
		return by == "and"
	}, nil
}

// one: "not" one | "(" either ")" | "over" | sentence.
func (r *reader) one() (func(*explore.View) bool, error) {
	t := r.take()
	if r.depth++; r.depth > deepest {
		return nil, t.errorf("parentheses and nots are more than %d deep", deepest)
	}
	defer func() { r.depth-- }()
	switch {
	case t.is("not"):
		holds, err := r.one()
		return func(v *explore.View) bool { return !holds(v) }, err
	case t.is("("):
		holds, err := r.either()
		if closing := r.take(); err == nil && !closing.is(")") {
			err = closing.wrong("and, or or )")
		}
		return holds, err
	case t.is("over"):
		return func(v *explore.View) bool { return v.History.Over }, nil
	case t.kind == word:
		return r.sentence(t)
	}
	return nil, t.wrong("a process, all, some, over, not or (")
}
