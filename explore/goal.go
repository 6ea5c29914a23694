package explore

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley"
)

// GoalHelp says how goals are written, to people.
const GoalHelp = `A goal describes a state, by what has happened at processes so far:
  P2 decided     P2 decides 0            on anything, or on this: 0, commit, {0,1}
  P2 delivered   P2 delivers a           anything, or this payload
                 P2 delivers a before b  both, and a first
  P2 asked       P2 asked a              from above, for anything or for this
  P2 suspects P1                         it has said so to those above it
  P2 says "is blocked"                   it has told those above it something with these words
  P2 down                                it has crashed, and is not back
  P2 correct                             it is not down, and does not lie
  P2.round = 1                           a variable of its machine has this value
  over                                   nothing more is due
In place of a process also all, some, all correct or some correct may stand, as in "all
correct decided" and "some.round > 2". These are joined by not, and, or and parentheses:
not before and, and that before or.

A value is a word, or stands in double quotes.

A variable has the name that machines are shown with, and _ where that has a space, as in
P1.also_back and P1.from[0].seq. It is compared by = != < <= > >=, as a number if both
sides are, else as text. A time counts in ticks from now. Processes in values count from 0.
If the variable is not there, for the process is down or a list is shorter, the comparison
is false. A name that no process has at the start is refused; in quotes, P1."due", it is
taken as it is, for a variable that is there at times.`

// Goal is a state that somebody describes.
type Goal struct {
	Says  string // as it was written
	Looks bool   // it looks at the variables of machines, and needs View.Vars
	Holds func(*View) bool
}

// What a goal is limited to.
const (
	longestGoal = 4096 // bytes
	deepestGoal = 64   // parentheses and nots around one sentence
)

// ParseGoal reads a goal about the processes of p as [GoalHelp] says. naming reads their
// names, and name is how they are called. An error has the column, counted in characters
// from 1, what was expected there, and the nearest names where there is none like that.
func ParseGoal(text string, p parley.Protocol, naming parley.Naming, name func(parley.ID) string) (Goal, error) {
	tokens, err := scanGoal(text)
	if err != nil {
		return Goal{}, err
	}
	r := goalReader{p: p, naming: naming, name: name, tokens: tokens}
	holds, err := r.either()
	if t := r.next(); err == nil && t.kind != goalEnd {
		err = t.wrong("and, or or the end")
	}
	if err != nil {
		return Goal{}, err
	}
	return Goal{Says: strings.TrimSpace(text), Looks: r.looks, Holds: holds}, nil
}

// goalToken is one word, sign or quotation of a goal.
type goalToken struct {
	kind goalKind
	text string // without quotes
	at   int    // its column
}

type goalKind uint8

const (
	goalEnd goalKind = iota
	goalWord
	goalQuote
	goalSign // a parenthesis or a comparison
)

func (t goalToken) is(text string) bool {
	return t.kind != goalEnd && t.kind != goalQuote && t.text == text
}

func (t goalToken) opens(with string) bool {
	return t.kind == goalWord && strings.HasPrefix(t.text, with)
}

func (t goalToken) errorf(format string, args ...any) error {
	return fmt.Errorf("column %d: %w", t.at, fmt.Errorf(format, args...))
}

// wrong is the error that something else was expected.
func (t goalToken) wrong(expected string) error {
	return t.errorf("%s was expected, not %s", expected, t)
}

func (t goalToken) String() string {
	if t.kind == goalEnd {
		return "the end"
	}
	return fmt.Sprintf("%.40q", t.text)
}

// goalTokens are the kinds of tokens: words, quotations, signs.
var goalTokens = regexp.MustCompile(`^(?:([^\s()"'=<>!]+)|("(?:[^"\\]|\\.)*")|([()]|[!<>]?=|[<>]))`)

// scanGoal takes a goal apart. What comes last is its end.
func scanGoal(text string) ([]goalToken, error) {
	if len(text) > longestGoal {
		return nil, fmt.Errorf("the goal has %d bytes: at most %d are read", len(text), longestGoal)
	}
	var list []goalToken
	for rest := text; ; {
		rest = strings.TrimLeft(rest, " \t\r\n\f") // what \s stands for
		t := goalToken{at: utf8.RuneCountInString(text[:len(text)-len(rest)]) + 1}
		if rest == "" {
			return append(list, t), nil
		}
		found := goalTokens.FindStringSubmatch(rest)
		if found == nil {
			return nil, t.errorf("%.1q begins nothing: quotes are double and closed, comparisons are = != < <= > >=", rest)
		}
		t.kind = goalKind(slices.IndexFunc(found[1:], func(part string) bool { return part != "" }) + 1)
		if t.text = found[0]; t.kind == goalQuote {
			var err error
			if t.text, err = strconv.Unquote(found[0]); err != nil {
				return nil, t.errorf("in quotes a line does not end, and a \\ is part of \\\", \\\\, \\n or \\x00")
			}
		}
		list, rest = append(list, t), rest[len(found[0]):]
	}
}

// goalReader reads a goal from its tokens.
type goalReader struct {
	p      parley.Protocol
	naming parley.Naming
	name   func(parley.ID) string
	tokens []goalToken
	depth  int
	looks  bool
	vars   *goalVars
}

func (r *goalReader) next() goalToken { return r.tokens[0] }

// take returns the next token and goes past it, but not past the end.
func (r *goalReader) take() goalToken {
	t := r.tokens[0]
	r.tokens = r.tokens[min(1, len(r.tokens)-1):]
	return t
}

// either: both { "or" both }.
func (r *goalReader) either() (func(*View) bool, error) {
	return r.joined("or", r.both)
}

// both: one { "and" one }.
func (r *goalReader) both() (func(*View) bool, error) {
	return r.joined("and", r.one)
}

func (r *goalReader) joined(by string, read func() (func(*View) bool, error)) (func(*View) bool, error) {
	var parts []func(*View) bool
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
	return func(v *View) bool {
		for _, holds := range parts {
			if holds(v) == (by == "or") {
				return by == "or"
			}
		}
		return by == "and"
	}, nil
}

// one: "not" one | "(" either ")" | "over" | sentence.
func (r *goalReader) one() (func(*View) bool, error) {
	t := r.take()
	if r.depth++; r.depth > deepestGoal {
		return nil, t.errorf("parentheses and nots are more than %d deep", deepestGoal)
	}
	defer func() { r.depth-- }()
	switch {
	case t.is("not"):
		holds, err := r.one()
		return func(v *View) bool { return !holds(v) }, err
	case t.is("("):
		holds, err := r.either()
		if closing := r.take(); err == nil && !closing.is(")") {
			err = closing.wrong("and, or or )")
		}
		return holds, err
	case t.is("over"):
		return func(v *View) bool { return v.History.Over }, nil
	case t.kind == goalWord:
		return r.sentence(t)
	}
	return nil, t.wrong("a process, all, some, over, not or (")
}
