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

// exploredCase is one case: a search and its expected result.
type exploredCase struct {
	name    string
	heading string          // the comment that begins its part of the list
	made    string          // the protocol and its settings
	asked   []asking        // the requests from above
	liars   int             // the number of faulty processes, whichever they are
	liar    parley.Set      // which they are; empty: any
	alike   parley.Set      // symmetric processes
	how     faulty.Behavior // the behavior of the liars
	model   string          // the possible faults
	never   string          // a state to search for instead, which is not reached
	stays   parley.Set      // processes that do not restart in runs to it
	says    string          // the verdict that it is not reached
	lies    string          // the liars and their behavior as written
	only    []string        // the properties to check; empty: all that are promised
	of      []string        // folders whose seeded bugs the case tries
	short   bool            // the tests search it

	rounds, beyond bool
	depth          int

	want, got found
}

// asking is a request to one process, with each of its possible texts.
type asking struct {
	at    parley.ID
	verb  string
	texts []string
	to    parley.Set // the receivers of a cast
}

// read reads a list of cases. A case begins with a line "case"; each other line is a word with its value.
func read(path string) ([]exploredCase, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []exploredCase
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
			if slices.ContainsFunc(out, func(c exploredCase) bool { return c.name == rest }) {
				return nil, fmt.Errorf("%s:%d: there is a case %s already", path, number+1, rest)
			}
			out = append(out, exploredCase{name: rest, heading: heading})
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
func (c *exploredCase) take(word, rest string) (err error) {
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

// readProcess reads the name of a process: P1 is process 0.
func readProcess(text string) (parley.ID, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(text, "P"))
	if err != nil || n < 1 || !strings.HasPrefix(text, "P") {
		return 0, fmt.Errorf("%q is no process: P1, P2 ... are", text)
	}
	return parley.ID(n - 1), nil
}

// readProcesses reads names such as P1,P2.
func readProcesses(text string) (set parley.Set, err error) {
	defer must.Return(&err)
	for _, one := range strings.Split(text, ",") {
		set.Add(must.Get(readProcess(one)))
	}
	return set, nil
}

// readAsking reads "P1 propose 0|1", "P1 cast a", "P1 cast a to P2,P3", "P1 leave", or "P1 loses P3" and "P1 regains
// P3", which concern its link.
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

// roots returns the initial states of a case: all choices of liars and of request texts. The text of a liar's request
// makes no difference.
func (c *exploredCase) roots(n int) (out []explore.Root) {
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

// begin returns the initial states with the given liars and some requests fixed.
func (c *exploredCase) begin(
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
		q, _ := a.request(text) // it was checked when it was read
		out = append(out, c.begin(how, append(slices.Clip(fixed), q), left[1:])...)
	}
	return out
}

// readLiar reads the behavior of liars: "any", the name of a behavior, or "answers 0,1,-1". With the last, a liar
// gives one of these answers to each choice of a lie; a negative answer counts from the end.
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

// budgets are the words of a model that take a number.
func budgets(m *explore.Model) map[string]*int {
	return map[string]*int{
		"crashes": &m.Crashes, "restarts": &m.Restarts, "lost-disks": &m.LostDisks, "losses": &m.Losses,
		"doubles": &m.Doubles, "false-suspicions": &m.FalseSuspicions, "timeouts": &m.Timeouts,
	}
}

// readModel reads a model such as "fifo detect crashes=1".
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

// options returns the search options of a case.
func (c *exploredCase) options() (o explore.Options, err error) {
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
