package engine_test

import (
	"flag"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"parley"
	"parley/catalog"
	"parley/docs/scenarios"
	"parley/internal/form"
	"parley/internal/input"
	"parley/internal/lab/engine"
	"parley/internal/lab/traitor"
)

// At each event, the history of each variable has the value that the state has.
func TestHistory(t *testing.T) {
	e := engine.New(append(catalog.All(), coins()), scenarios.Files, "test")
	for protocol, flags := range map[string]map[string]string{
		"eig":      {"n": "4", "m": "1", "faulty": "2=flip"},
		"twophase": {"n": "3", "crashes": "[{process: 1, when: 150, back: 900}]"},
		"ballot":   {"n": "3"},
		"causal":   {"n": "3"},
		"coins":    {"crashes": "[{process: 1, when: 150, back: 900}]"},
	} {
		run := map[string]any{"protocol": protocol, "flags": flags}
		events := answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": run}).Report.Events
		histories := make(map[string]map[string][]engine.Value) // by variable and process
		compared, changes := 0, 0
		for at := range events + 1 {
			for _, p := range answers[engine.StateAnswer](t, e, map[string]any{"ask": "state", "at": at, "run": run}).Processes {
				for _, v := range p.Variables {
					if histories[v.Name] == nil {
						of := make(map[string][]engine.Value)
						for _, h := range answers[engine.HistoryAnswer](t, e, map[string]any{
							"ask": "history", "variable": v.Name, "run": run,
						}).Processes {
							of[h.Name] = h.Values
							changes += len(h.Values)
						}
						histories[v.Name] = of
					}
					is := ""
					for _, value := range histories[v.Name][p.Name] {
						if value.Since <= uint64(at) {
							is = value.Value
						}
					}
					if compared++; is != v.Value {
						t.Fatalf("%s, event %d, %s of %s: %q, and the state has %q", protocol, at, v.Name, p.Name, is, v.Value)
					}
				}
			}
		}
		if compared < 100 || changes < 5 {
			t.Errorf("%s: %d values compared, %d changes", protocol, compared, changes)
		}
	}
}

// The past and the future of an event are each other's reverse, and each follows processes and messages only.
func TestCone(t *testing.T) {
	e := newEngine()
	run := map[string]any{"protocol": "causal", "flags": map[string]string{"n": "3"}}
	events := int(answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": run}).Report.Events)
	lines := answers[engine.StoryAnswer](t, e, map[string]any{"ask": "story", "from": 1, "count": events, "run": run}).Lines
	number := func(refs []string) map[int]bool {
		all := make(map[int]bool)
		for _, ref := range refs {
			k, err := strconv.Atoi(strings.TrimPrefix(ref, "e"))
			if err != nil {
				t.Fatal(err)
			}
			all[k] = true
		}
		return all
	}
	past, future := make([]map[int]bool, events+1), make([]map[int]bool, events+1)
	inside := 0
	for k := 1; k <= events; k++ {
		cone := answers[engine.ConeAnswer](t, e, map[string]any{"ask": "cone", "event": k, "run": run})
		past[k], future[k] = number(cone.Past), number(cone.Future)
		inside += len(past[k])
	}
	for k := 1; k <= events; k++ {
		for j := 1; j <= events; j++ {
			// By definition: at the same process before, or the cause of k or of something before k at its process.
			before := j < k && (lines[j-1].At == lines[k-1].At || lines[k-1].Cause > 0 &&
				(int(lines[k-1].Cause) == j || past[lines[k-1].Cause][j]))
			for i := 1; i < k && !before; i++ {
				before = lines[i-1].At == lines[k-1].At && past[i][j]
			}
			if past[k][j] != before || future[j][k] != before {
				t.Fatalf("event %d before %d: %t, past %t, future %t", j, k, before, past[k][j], future[j][k])
			}
		}
	}
	if inside == 0 || inside == events*(events-1)/2 {
		t.Errorf("%d of %d pairs are ordered", inside, events*(events-1)/2)
	}
}

// coins is a protocol whose processes draw random values, which a trace does not have.
func coins() parley.Protocol {
	p := parley.Protocol{
		Name: "coins", Title: "coins", Faults: parley.CrashFaults, Kinds: []string{"", "COIN"}, N: 3,
		New: func(parley.ID) parley.Machine { return new(coin) },
	}
	p.Flags = func(*flag.FlagSet) func(parley.Naming) (parley.Protocol, error) {
		return func(parley.Naming) (parley.Protocol, error) { return p, nil }
	}
	return p
}

type coin struct {
	parley.Base
	own, sum uint64
	tosses   int
}

func (p *coin) Start(s *parley.Step) { s.SetTimer(0, 100) }

func (p *coin) Timeout(s *parley.Step, _ parley.Timer) {
	p.own = uint64(s.Choose(1000))
	s.SendAll(parley.Msg{Kind: 1, Value: p.own})
	if p.tosses++; p.tosses < 12 {
		s.SetTimer(0, 100)
	}
}

func (p *coin) Receive(_ *parley.Step, _ parley.ID, m parley.Msg) { p.sum += m.Value }

func (p *coin) State(v *parley.Vars) {
	parley.Num(v, "own", &p.own)
	parley.Num(v, "sum", &p.sum)
	parley.Num(v, "tosses", &p.tosses)
}

// nodeRef is the reference of a node of an information tree in a picture.
var nodeRef = regexp.MustCompile(`data-ref="(P\d+/[^"]+)"`)

// Every node of every information tree of the gallery has the output that its votes give: the value of more than half of
// them, or the default if there is none.
func TestVotes(t *testing.T) {
	e := newEngine()
	majorities, defaults, own := 0, 0, 0
	for _, c := range answers[engine.About](t, e, map[string]any{"ask": "about"}).Gallery {
		run := map[string]any{"scenario": c.Text}
		for _, owner := range answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": run}).Owners {
			picture := answers[engine.PictureAnswer](t, e, map[string]any{"ask": "picture", "name": "tree", "of": owner, "run": run})
			refs := make(map[string]bool)
			for _, found := range nodeRef.FindAllStringSubmatch(picture.SVG, 40) {
				refs[found[1]] = true
			}
			for ref := range refs { // order: each node is asked by itself
				vote := answers[engine.VoteAnswer](t, e, map[string]any{"ask": "vote", "ref": ref, "run": run})
				if len(vote.Ballots) == 0 || vote.Out == "" {
					continue
				}
				if slices.ContainsFunc(vote.Ballots, func(b engine.Ballot) bool { return b.Own }) {
					own++
				}
				byDefault := strings.Contains(vote.Says, "default")
				i := slices.IndexFunc(vote.Counts, func(c engine.Count) bool { return 2*c.Votes > len(vote.Ballots) })
				switch {
				case i >= 0 && (byDefault || vote.Counts[i].Value != vote.Out):
					t.Errorf("%s, %s: %s", c.Name, ref, vote.Says)
				case i >= 0:
					majorities++
				case !byDefault || vote.Out != "0":
					t.Errorf("%s, %s: %s", c.Name, ref, vote.Says)
				default:
					defaults++
				}
			}
		}
	}
	if majorities == 0 || defaults == 0 || own == 0 {
		t.Errorf("%d majorities, %d defaults, %d own votes", majorities, defaults, own)
	}
}

// A table says how its rows are read: each step of a path is what somebody says.
func TestReading(t *testing.T) {
	e := newEngine()
	for _, c := range []struct {
		protocol, n string
		round       int
		want        string
	}{
		{"eig", "7", 2, "{1,132} means: P2 says that P3 says that P1 says that the value is 1."},
		{"eig", "10", 1, "{1,1.2} means: P2 says that P1 says that the value is 1."},
		{"om", "4", 1, "{1,13} means: P3 says that P1 says that the value is 1."},
		{"interactive", "4", 0, "2: {1,2} means: P2 says that the value is 1."},
		{"sm", "4", 1, ""},
	} {
		run := map[string]any{"protocol": c.protocol, "flags": map[string]string{"n": c.n}}
		tables := answers[engine.TablesAnswer](t, e, map[string]any{"ask": "tables", "run": run}).Tables
		if got := tables[c.round].Reading; got != c.want {
			t.Errorf("%s, n = %s, round %d: %q, want %q", c.protocol, c.n, c.round, got, c.want)
		}
	}
}

// What a faulty process sends is marked as a lie if, and only if, an honest process would send something else.
func TestLiesAreMarked(t *testing.T) {
	e := newEngine()
	lies, truths := 0, 0
	for _, protocol := range []string{"om", "eig", "sm", "phaseking", "interactive", "consensus", "agreed"} {
		for _, how := range []string{"flip", "twofaced", "random", "moves:", "moves:1-3-0-1", "moves:0-3-0-1.1-4-0-1"} {
			for _, who := range []string{"1", "2"} {
				run := map[string]any{"protocol": protocol, "flags": map[string]string{
					"n": "4", "m": "1", "faulty": who + "=" + how}}
				liar := "P" + who
				honest, _ := traitor.Honest(runOf(t, protocol, "-n=4", "-m=1", "--faulty="+who+"="+how))
				for _, table := range answers[engine.TablesAnswer](t, e, map[string]any{"ask": "tables", "run": run}).Tables {
					for r, row := range table.Cells {
						for c, cell := range row {
							from, to := table.Senders[c], table.Receivers[r]
							if from.Ref != liar || to.Ref == liar || cell.Total == 0 {
								continue
							}
							would := honest[traitor.Sending{Round: table.Round, From: parley.ID(who[0] - '1'), To: parley.ID(to.Ref[1] - '1')}]
							is := !slices.Equal(cell.Rows, would)
							if cell.Lie != is {
								t.Errorf("%s, %s %s, round %d to %s: lie %t, sends %q, and would send %q",
									protocol, liar, how, table.Round, to.Name, cell.Lie, cell.Rows, would)
							}
							if is {
								lies++
							} else {
								truths++
							}
						}
					}
				}
			}
		}
	}
	if lies < 50 || truths < 50 {
		t.Errorf("%d lies and %d truths", lies, truths)
	}
}

// runOf returns the run that arguments make.
func runOf(t *testing.T, protocol string, args ...string) form.Run {
	t.Helper()
	p, err := input.Protocol(catalog.All(), protocol)
	if err != nil {
		t.Fatal(err)
	}
	fs := pflag.NewFlagSet(protocol, pflag.ContinueOnError)
	f := form.New(p, fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	s, err := f.Setup()
	if err != nil {
		t.Fatal(err)
	}
	return s.Run
}
