package goal

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley"
	"parley/explore"
	"parley/internal/nearest"
)

// predicate is a condition on one process.
type predicate func(v *explore.View, id parley.ID) bool

// sentence parses a predicate and the processes it is about. t is its first word.
func (r *reader) sentence(t token) (func(*explore.View) bool, error) {
	who, _, dotted := strings.Cut(t.text, ".")
	some := who == "some"
	if !some && who != "all" {
		one, err := r.process(token{word, who, t.at}, ", all, some, over, not or (")
		if err != nil {
			return nil, err
		}
		is, err := r.said(t)
		return func(v *explore.View) bool { return is(v, one) }, err
	}
	correct := false
	if next := r.next(); !dotted && (next.is("correct") && r.predicated() || next.opens("correct.")) {
		t, correct = r.take(), true
	}
	is, err := r.said(t)
	n := parley.ID(r.p.N)
	return func(v *explore.View) bool {
		for id := range n {
			if (!correct || isCorrect(v, id)) && is(v, id) == some {
				return some
			}
		}
		return !some
	}, err
}

// said parses what is said of a process: of a variable, if the word t for the process has a dot and a name
// behind it.
func (r *reader) said(t token) (predicate, error) {
	_, name, dotted := strings.Cut(t.text, ".")
	if !dotted {
		return r.predicate()
	}
	at := t.at + utf8.RuneCountInString(t.text) - utf8.RuneCountInString(name)
	return r.comparison(token{word, name, at})
}

// predicated returns whether a predicate follows the next word: "all correct" may be a whole sentence or
// only its subject.
func (r *reader) predicated() bool {
	t := r.tokens[1]
	return t.kind != end && !t.is("and") && !t.is("or") && !t.is(")")
}

// process parses the name of a process. An error also lists more, the other words allowed there.
func (r *reader) process(t token, more string) (parley.ID, error) {
	if t.kind == word {
		if id, err := r.naming(t.text); err == nil && int(id) < r.p.N {
			return id, nil
		}
	}
	return 0, t.wrong(fmt.Sprintf("a process (%s to %s)%s", r.name(0), r.name(parley.ID(r.p.N-1)), more))
}

var goalVerbs = []string{"decided", "decides", "delivered", "delivers", "asked", "suspects", "says", "down", "correct"}

// predicate parses a verb and its objects.
func (r *reader) predicate() (predicate, error) {
	t := r.take()
	if t.kind == quote {
		return nil, t.wrong("a verb, without quotes,")
	}
	switch t.text {
	case "decided", "decides":
		fits := r.content()
		return everAt(inDeliveries, func(h *parley.ExternalEvent) bool { return h.Msg.Kind == parley.Decide && fits(h) }), nil
	case "delivered", "delivers":
		return r.delivery()
	case "asked":
		return everAt(inRequests, r.content()), nil
	case "suspects":
		of, err := r.process(r.take(), "")
		return everAt(inIndications, func(h *parley.ExternalEvent) bool {
			return h.Msg.Kind == parley.Suspect && h.Msg.Origin == of
		}), err
	case "says":
		words, given := r.value()
		if !given {
			return nil, r.next().wrong("what it says")
		}
		return everAt(inIndications, func(h *parley.ExternalEvent) bool { return strings.Contains(r.row(h), words) }), nil
	case "down":
		return func(v *explore.View, id parley.ID) bool { return v.Down.Has(id) }, nil
	case "correct":
		return isCorrect, nil
	}
	return nil, t.errorf("a verb was expected, not %s: %s", t, nearest.Names(t.text, goalVerbs))
}

func isCorrect(v *explore.View, id parley.ID) bool { return !v.Faulty.Has(id) && !v.Down.Has(id) }

func inDeliveries(h *parley.History) []parley.ExternalEvent  { return h.Deliveries }
func inRequests(h *parley.History) []parley.ExternalEvent    { return h.Requests }
func inIndications(h *parley.History) []parley.ExternalEvent { return h.Indications }

// everAt returns a predicate that holds at a process where an event like this has happened.
func everAt(list func(*parley.History) []parley.ExternalEvent, like func(*parley.ExternalEvent) bool) predicate {
	return func(v *explore.View, id parley.ID) bool { return firstAt(list(v.History), id, like) >= 0 }
}

// firstAt returns the index of the first event at a process that is like this, or -1.
func firstAt(list []parley.ExternalEvent, id parley.ID, like func(*parley.ExternalEvent) bool) int {
	for i := range list {
		if list[i].At == id && like(&list[i]) {
			return i
		}
	}
	return -1
}

// delivery parses what is delivered, and before what.
func (r *reader) delivery() (predicate, error) {
	delivered := func(fits func(*parley.ExternalEvent) bool) func(h *parley.ExternalEvent) bool {
		return func(h *parley.ExternalEvent) bool { return h.Msg.Kind != parley.Decide && fits(h) }
	}
	this := delivered(r.content())
	if !r.next().is("before") {
		return everAt(inDeliveries, this), nil
	}
	r.take()
	if t := r.next(); !t.isValue() {
		return nil, t.wrong("what is delivered later")
	}
	later := delivered(r.content())
	return func(v *explore.View, id parley.ID) bool {
		i, j := firstAt(v.History.Deliveries, id, this), firstAt(v.History.Deliveries, id, later)
		return 0 <= i && i < j
	}, nil
}

// content parses the content of a message: anything if no value comes next.
func (r *reader) content() func(h *parley.ExternalEvent) bool {
	value, given := r.value()
	return func(h *parley.ExternalEvent) bool {
		return !given || string(h.Msg.Body) == value || parley.Printable(h.Msg.Body) == value
	}
}

// value parses a value, if one comes next.
func (r *reader) value() (string, bool) {
	if !r.next().isValue() {
		return "", false
	}
	return r.take().text, true
}

func (t token) isValue() bool {
	return t.kind == quote || t.kind == word && !slices.Contains([]string{"and", "or", "not", "before"}, t.text)
}

// row returns the words for an indication.
func (r *reader) row(h *parley.ExternalEvent) string {
	if r.p.Explain != nil {
		for row := range r.p.Explain(parley.Env{Path: h.Path}, h.Msg, r.name) {
			return row
		}
	}
	return fmt.Sprintf("indicates kind %#x", uint8(h.Msg.Kind))
}

// comparison parses the rest of a sentence about a variable. t is its name, empty if the name follows in
// quotes.
func (r *reader) comparison(t token) (predicate, error) {
	r.looks = true
	wanted := spaced(t.text)
	is := func(name string) bool { return spaced(name) == wanted }
	if t.text == "" {
		if t = r.take(); t.kind != quote {
			return nil, t.wrong("the name of a variable")
		}
		is = func(name string) bool { return name == t.text }
	} else if err := r.check(t); err != nil {
		return nil, err
	}
	op := r.take()
	meets, known := comparisons[op.text]
	if op.kind != sign || !known {
		return nil, op.wrong("one of = != < <= > >=")
	}
	value, given := r.value()
	if !given {
		return nil, r.next().wrong("a value")
	}
	return func(v *explore.View, id parley.ID) bool {
		if v.Vars == nil {
			return false
		}
		list := v.Vars(id)
		i := slices.IndexFunc(list, func(x parley.Variable) bool { return is(x.Name) })
		return i >= 0 && meets(compareShown(list[i].Value, value))
	}, nil
}

var comparisons = map[string]func(c int) bool{
	"=":  func(c int) bool { return c == 0 },
	"!=": func(c int) bool { return c != 0 },
	"<":  func(c int) bool { return c < 0 },
	"<=": func(c int) bool { return c <= 0 },
	">":  func(c int) bool { return c > 0 },
	">=": func(c int) bool { return c >= 0 },
}

// compareShown compares a value as shown with a given one.
func compareShown(shown, given string) int {
	if shown == `""` {
		shown = "" // as it is given
	}
	x, ok := shownNumber(shown)
	y, also := shownNumber(given)
	if ok && also {
		return cmp.Compare(x, y)
	}
	return strings.Compare(shown, given)
}

// shownNumber parses a number, or a time, which is shown as now+5, as its distance from now.
func shownNumber(text string) (int64, bool) {
	if ticks, ok := strings.CutPrefix(text, "now"); ok && ticks != "" && (ticks[0] == '+' || ticks[0] == '-') {
		text = ticks
	}
	x, err := strconv.ParseInt(text, 10, 64)
	return x, err == nil
}

// variables are the variables that machines have at the start.
type variables struct {
	names []string        // one of those that differ only by the numbers in brackets
	known map[string]bool // without these numbers
	lists []string        // lists that are empty then: their future elements are not known
}

// check returns an error if no process has the variable t or may get it.
func (r *reader) check(t token) error {
	if r.vars == nil {
		r.vars = &variables{known: make(map[string]bool)}
		for id := range parley.ID(r.p.N) {
			for _, v := range parley.Show(r.p.New(id), 0) {
				r.vars.add(v)
			}
		}
	}
	name := numberless(t.text)
	begins := func(list string) bool { return strings.HasPrefix(name, list) }
	if r.vars.known[name] || slices.ContainsFunc(r.vars.lists, begins) {
		return nil
	}
	return t.errorf("no process has a variable %s: %s", t, nearest.Names(t.text, r.vars.names))
}

func (g *variables) add(v parley.Variable) {
	name := numberless(v.Name)
	if g.known[name] {
		return
	}
	g.known[name] = true
	g.names = append(g.names, strings.ReplaceAll(v.Name, " ", "_"))
	if v.Value == "none" {
		g.lists = append(g.lists, name+"[]")
	}
}

func spaced(name string) string { return strings.ReplaceAll(name, "_", " ") }

// numberless returns a name with [] in place of each [NUMBER].
func numberless(name string) string {
	name = spaced(name)
	var b strings.Builder
	for {
		before, after, found := strings.Cut(name, "[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		digits := len(after) - len(strings.TrimLeft(after, "0123456789"))
		b.WriteByte('[')
		if name = after; digits > 0 && strings.HasPrefix(after[digits:], "]") {
			name = after[digits:]
		}
	}
}
