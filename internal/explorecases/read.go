package main

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/broadcast/problem"
	"parley/explore"
	"parley/explore/goal"
	"parley/faulty"
	"parley/internal/must"
	"parley/membership/detector"
	"parley/membership/group"
)

// explored is one case: a search, and what it is to find.
type explored struct {
	name    string
	heading string          // the comment that begins its part of the list
	made    string          // how the protocol is made
	asked   []asking        // from above
	liars   int             // how many processes lie, whichever they are
	liar    parley.Set      // who they are, if it is said
	alike   parley.Set      // processes whose states are the same up to names
	how     faulty.Behavior // how they do
	model   string          // what may go wrong
	never   string          // a state that is searched for instead, and not found
	stays   parley.Set      // processes that do not come back in runs to it
	says    string          // that it is not, in words
	lies    string          // who lies and how, as it was written
	only    []string        // the properties that count; empty: all that are promised
	of      []string        // folders whose seeded bugs it tries
	short   bool            // it is one of the tests

	rounds, beyond bool
	depth          int

	want, got found
}

// asking is what one process is asked, with every text that it may be asked with.
type asking struct {
	at    parley.ID
	verb  string
	texts []string
	to    parley.Set // of a cast to some
}

// read reads a list of cases: one begins with a line "case", and each other line is a
// word and what belongs to it.
func read(path string) ([]explored, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []explored
	heading, above := "", ""
	for number, line := range strings.Split(string(text), "\n") {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		switch {
		case word == "#":
			above = strings.TrimSpace(above + " " + rest)
			continue
		case word == "":
			if above != "" {
				heading, above = strings.TrimSuffix(above, "."), ""
			}
			continue
		case word == "case":
			if slices.ContainsFunc(out, func(c explored) bool { return c.name == rest }) {
				return nil, fmt.Errorf("%s:%d: there is a case %s already", path, number+1, rest)
			}
			out = append(out, explored{name: rest, heading: heading})
			continue
		case len(out) == 0:
			return nil, fmt.Errorf("%s:%d: a line that belongs to no case", path, number+1)
		}
		if err := out[len(out)-1].take(word, rest); err != nil {
			return nil, fmt.Errorf("%s:%d: %s %s: %w", path, number+1, word, rest, err)
		}
	}
	return out, nil
}

// take reads a line of a case.
func (c *explored) take(word, rest string) (err error) {
	defer must.Return(&err)
	texts := map[string]*string{"protocol": &c.made, "model": &c.model, "never": &c.never, "says": &c.says}
	flags := map[string]*bool{"short": &c.short, "beyond": &c.beyond, "rounds": &c.rounds}
	numbers := map[string]*int{"depth": &c.depth, "deep": &c.want.deep}
	counts := map[string]*uint64{"states": &c.want.states, "ends": &c.want.ends}
	sets := map[string]*parley.Set{"alike": &c.alike, "stays": &c.stays}
	switch {
	case texts[word] != nil:
		*texts[word] = rest
	case flags[word] != nil:
		*flags[word] = true
	case numbers[word] != nil:
		*numbers[word] = must.Get(strconv.Atoi(rest))
	case counts[word] != nil:
		*counts[word] = must.Get(strconv.ParseUint(rest, 10, 64))
	case sets[word] != nil:
		*sets[word] = must.Get(readProcesses(rest))
	case word == "ask":
		c.asked = append(c.asked, must.Get(readAsking(rest)))
	case word == "liars":
		c.lies = rest
		who, how, _ := strings.Cut(rest, " ")
		if c.liars, err = strconv.Atoi(who); err != nil {
			c.liar = must.Get(readProcesses(who))
			c.liars = c.liar.Len()
		}
		c.how = must.Get(readLiar(how))
	case word == "only":
		c.only = strings.Split(rest, ", ")
	case word == "tries":
		c.of = strings.Fields(rest)
	case word == "breaks":
		property, moves, some := strings.Cut(rest, " in ")
		c.want.property = property
		if some {
			c.want.moves = must.Get(strconv.Atoi(moves))
		}
	default:
		return errors.New("no such word")
	}
	return nil
}

// readProcess reads P1 as process 0.
func readProcess(text string) (parley.ID, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(text, "P"))
	if err != nil || n < 1 || !strings.HasPrefix(text, "P") {
		return 0, fmt.Errorf("%q is no process: P1, P2 ... are", text)
	}
	return parley.ID(n - 1), nil
}

// readProcesses reads P1,P2.
func readProcesses(text string) (set parley.Set, err error) {
	defer must.Return(&err)
	for _, one := range strings.Split(text, ",") {
		set.Add(must.Get(readProcess(one)))
	}
	return set, nil
}

// readAsking reads "P1 propose 0|1", "P1 cast a", "P1 cast a to P2,P3", "P1 loses P3" or
// "P1 regains P3", which mean its link, or "P1 leave".
func readAsking(text string) (a asking, err error) {
	defer must.Return(&err)
	f := strings.Fields(text)
	if len(f) < 2 {
		return a, fmt.Errorf("who is asked what?")
	}
	a.at, a.verb = must.Get(readProcess(f[0])), f[1]
	what, to, some := strings.Cut(strings.Join(f[2:], " "), " to ")
	a.texts = strings.Split(what, "|")
	if some {
		a.to = must.Get(readProcesses(to))
	}
	must.Get(a.request(a.texts[0]))
	return a, nil
}

func (a *asking) request(text string) (explore.Request, error) {
	var m parley.Msg
	switch {
	case a.verb == "propose":
		m = parley.Msg{Kind: parley.Propose, Body: []byte(text)}
	case a.verb == "cast" && a.to == parley.Set{}:
		m = problem.Request([]byte(text))
	case a.verb == "cast":
		m = problem.RequestTo(a.to, []byte(text))
	case a.verb == "loses" || a.verb == "regains":
		of, err := readProcess(text)
		if err != nil {
			return explore.Request{}, err
		}
		if m = (parley.Msg{Kind: detector.Broke, Origin: of}); a.verb == "regains" {
			m.Kind = detector.Mended
		}
	case a.verb == "leave":
		m = parley.Msg{Kind: group.Leave}
	default:
		return explore.Request{}, fmt.Errorf(
			"nobody can be asked to %s: propose, cast, loses, regains and leave are known", a.verb)
	}
	return explore.Request{At: a.at, Msg: m}, nil
}

// roots are the ways in which runs of a case begin: whoever lies, and whatever each one
// is asked. What a liar is asked makes no difference.
func (c *explored) roots(n int) (out []explore.Root) {
	for set := range 1 << n {
		how := make(map[parley.ID]faulty.Behavior)
		for id := range n {
			if set>>id&1 == 1 && (c.liar == parley.Set{} || c.liar.Has(parley.ID(id))) {
				how[parley.ID(id)] = c.how
			}
		}
		if len(how) == c.liars && bits.OnesCount(uint(set)) == c.liars {
			out = append(out, c.begin(how, nil, c.asked)...)
		}
	}
	return out
}

// begin returns the roots with some liars, of which some requests are fixed.
func (c *explored) begin(
	how map[parley.ID]faulty.Behavior, fixed []explore.Request, left []asking,
) (out []explore.Root) {
	if len(left) == 0 {
		return []explore.Root{{Faulty: how, Requests: slices.Clone(fixed)}}
	}
	a := &left[0]
	for i, text := range a.texts {
		if _, lies := how[a.at]; lies && i > 0 {
			break
		}
		q, _ := a.request(text) // it was read
		out = append(out, c.begin(how, append(slices.Clip(fixed), q), left[1:])...)
	}
	return out
}

// readLiar reads how liars behave: "any", the name of a behaviour, or "answers 0,1,-1", with
// which a liar gives one of these answers to each choice that a lie has, counted from
// the end if it is negative.
func readLiar(text string) (how faulty.Behavior, err error) {
	defer must.Return(&err)
	list, some := strings.CutPrefix(text, "answers ")
	if text == faulty.Any.Name {
		return faulty.Any, nil
	} else if !some {
		return faulty.Parse(text)
	}
	var answers []int
	for _, one := range strings.Split(list, ",") {
		answers = append(answers, must.Get(strconv.Atoi(one)))
	}
	how = faulty.Any
	how.Choose = func(s *parley.Step, _ *parley.Turn, _, n int) int {
		k := answers[s.Choose(len(answers))]
		if k < 0 {
			k += n
		}
		return min(max(k, 0), n-1)
	}
	return how, nil
}

// budgets are the words of a model that have a number.
func budgets(m *explore.Model) map[string]*int {
	return map[string]*int{
		"crashes": &m.Crashes, "restarts": &m.Restarts, "lost-disks": &m.LostDisks, "losses": &m.Losses,
		"doubles": &m.Doubles, "false-suspicions": &m.FalseSuspicions, "timeouts": &m.Timeouts,
	}
}

// readModel reads "fifo detect crashes=1".
func readModel(text string) (m explore.Model, err error) {
	defer must.Return(&err)
	flags := map[string]*bool{"fifo": &m.FIFO, "detect": &m.Detect, "in-time": &m.InTime}
	for _, f := range strings.Fields(text) {
		word, number, counted := strings.Cut(f, "=")
		switch {
		case !counted && flags[word] != nil:
			*flags[word] = true
		case counted && budgets(&m)[word] != nil:
			*budgets(&m)[word] = must.Get(strconv.Atoi(number))
		default:
			return m, fmt.Errorf("%q is no part of a model", f)
		}
	}
	return m, nil
}

// options are the search of a case.
func (c *explored) options() (o explore.Options, err error) {
	defer must.Return(&err)
	p, err := protocol(c.made)
	if err != nil {
		return o, fmt.Errorf("%s: %w", c.made, err)
	}
	o = explore.Options{
		Protocol: p, Roots: c.roots(p.N), Model: must.Get(readModel(c.model)), Depth: c.depth, Beyond: c.beyond, Only: c.only,
		Alike: c.alike,
	}
	for _, name := range c.only {
		if !slices.ContainsFunc(p.Properties, func(q parley.Property) bool { return q.Name == name }) {
			return o, fmt.Errorf("%s has no property %q", p.Name, name)
		}
	}
	if c.rounds {
		o.Step = explore.Rounds
	}
	if c.never != "" {
		name := func(id parley.ID) string { return fmt.Sprintf("P%d", id+1) }
		never := must.Get(goal.Parse(c.never, p, readProcess, name))
		o.Looks = never.Looks
		o.Goal = func(v *explore.View) bool {
			return !slices.ContainsFunc(v.History.Restarts, func(h parley.ExternalEvent) bool { return c.stays.Has(h.At) }) &&
				never.Holds(v)
		}
	}
	return o, nil
}
