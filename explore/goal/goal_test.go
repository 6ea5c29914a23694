package goal_test

import (
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"parley"
	"parley/agreement/om"
	"parley/commit/threephase"
	"parley/explore"
	"parley/explore/goal"
	"parley/lockstep"
)

// shown is a machine that consists of variables only.
type shown struct {
	parley.Base
	round int64
	bag   []uint64
	part  []uint64
	due   parley.Tick // visited only if it is not 0
	back  bool
	value []byte
}

func (m *shown) State(v *parley.Vars) {
	parley.Num(v, "round", &m.round)
	parley.Slice(v, "bag", &m.bag, func(_ int, x *uint64) { parley.Num(v, "seq", x) })
	parley.PerProcess(v, "part", m.part, func(_ parley.ID, x *uint64) { parley.Num(v, "kept", x) })
	v.Bool("also back", &m.back)
	v.Machine("inner", value{&m.value})
	if m.due != 0 {
		v.Time("due", &m.due)
	}
}

type value struct{ b *[]byte }

func (x value) State(v *parley.Vars) { v.Bytes("value", x.b) }

// blocked is an indication that the protocol has words for, and silent one that it has none for.
const (
	blocked = parley.Indication + 0x38
	silent  = parley.Indication + 0x39
)

var three = parley.Protocol{
	N:   3,
	New: func(parley.ID) parley.Machine { return &shown{part: make([]uint64, 2)} },
	Explain: func(_ parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
		return func(yield func(string) bool) {
			if m.Kind == blocked {
				yield("is blocked by " + name(m.Origin))
			}
		}
	},
}

// article parses P1 to P3, and any other name that ends in a number as the command line does.
func article(text string) (parley.ID, error) {
	i, err := strconv.Atoi(strings.TrimPrefix(text, "P"))
	if err != nil || i < 1 {
		return 0, fmt.Errorf("no process")
	}
	return parley.ID(i - 1), nil
}

func called(id parley.ID) string { return fmt.Sprintf("P%d", id+1) }

func parse(text string) (goal.Goal, error) { return goal.Parse(text, three, article, called) }

// scene returns the view that a text describes, with one word for each event: "1?a" P1 got the request a,
// "1!a" it delivered a from P2, "1=a" it decided a, "1s2" it suspects P2, "1b" it is blocked, "1q" it
// indicates something without words, "1x" it is down, "1l" it lies; over.
func scene(text string) *explore.View {
	v := &explore.View{History: &parley.History{N: 3}}
	h := v.History
	for i, word := range strings.Fields(text) {
		if word == "over" {
			h.Over = true
			continue
		}
		at, rest := parley.ID(word[0]-'1'), word[2:]
		do := parley.ExternalEvent{At: at, From: at, Order: uint64(i + 1), Msg: parley.Msg{Body: []byte(rest)}}
		switch word[1] {
		case '?':
			do.Msg.Kind = parley.Carried
			h.Requests = append(h.Requests, do)
		case '!':
			do.Msg.Kind, do.From = parley.Carried, 1
			h.Deliveries = append(h.Deliveries, do)
		case '=':
			do.Msg.Kind = parley.Decide
			h.Deliveries = append(h.Deliveries, do)
		case 's':
			do.Msg = parley.Msg{Kind: parley.Suspect, Origin: parley.ID(rest[0] - '1')}
			h.Indications = append(h.Indications, do)
		case 'b':
			do.Msg = parley.Msg{Kind: blocked, Origin: 2}
			h.Indications = append(h.Indications, do)
		case 'q':
			do.Msg = parley.Msg{Kind: silent}
			h.Indications = append(h.Indications, do)
		case 'x':
			v.Down.Add(at)
			h.Faulty.Add(at)
		case 'l':
			v.Faulty.Add(at)
			h.Faulty.Add(at)
		}
	}
	v.Vars = func(id parley.ID) []parley.Variable {
		if v.Down.Has(id) {
			return nil
		}
		m := &shown{round: 9 + int64(id), part: []uint64{3, 4}, back: id == 1}
		if id == 1 {
			m.bag, m.due, m.value = []uint64{7}, 12, []byte("uncertain")
		}
		return parley.Show(m, 5)
	}
	return v
}

func TestGoal(t *testing.T) {
	for _, c := range []struct{ goal, holds, fails string }{
		{"P2 decided", "2=0", "1=0; 2!0; 2?0; over"},
		{"P2 decides", "2=0", "1=0"},
		{"P2 decides 0", "2=0; 2=1 2=0", "2=1; 2=00; 1=0"},
		{"P2 decides commit", "2=commit", "2=abort"},
		{"P2 decides {0,1}", "2={0,1}", "2={0,0}"},
		{`P2 decides ""`, "2=", "2=0; 2!"},
		{"P2 decides 0x6100", "2=a\x00", "2=a"},
		{`P2 decides "a\x00"`, "2=a\x00", "2=a"},
		{"2 decides 0", "2=0", "1=0"},
		{"P1 delivered", "1!a", "1=a; 2!a"},
		{"P1 delivers a", "1!b 1!a", "1!b; 1=a; 1?a"},
		{`P1 delivers "a" before "b"`, "1!a 1!b; 1!a 1!c 1!b", "1!b 1!a; 1!a; 1!b; 1!a 2!b; 1!b 1!a 1!b"},
		{"P1 delivers a before a", "", "1!a 1!a"},
		{`P1 delivers "before" before before2`, "1!before 1!before2", "1!before"},
		{"P1 delivered before b", "1!a 1!b", "1!b 1!a"},
		{"P1 asked", "1?a", "2?a; 1!a"},
		{"P1 asked a", "1?a", "1?b"},
		{"P3 suspects P1", "3s1", "1s3; 3s2; 2s1"},
		{"P1 suspects P3", "1s3", "1b; 1q"},
		{`P1 says "is blocked"`, "1b", "2b; 1s2; 1q"},
		{`P1 says "by P3"`, "1b", "1q"},
		{`P1 says 0xf9`, "1q", "1b"},
		{"P2 down", "2x", "1x; 2l"},
		{"P2 correct", "1x 3l", "2x; 2l"},
		{"over", "over", "1=0"},

		{"all decided", "1=0 2=0 3=1", "1=0 2=0"},
		{"some decided", "3=0", ""},
		{"all correct decided", "1=0 2=0 3x; 1=0 2=0 3l; 1x 2x 3l", "1=0 2=0; 1=0 2x"},
		{"some correct decided", "1=0 2x", "1=0 1x; 1x 2x 3x"},
		{"all correct", "over", "2x; 3l"},
		{"some correct", "1x 2l", "1x 2x 3l"},
		{"(all correct)", "over", "2x"},
		{"all correct and over", "over", "over 2x"},
		{"all correct correct", "1x", ""},
		{"not all correct or over", "2x; over", "1=0"},

		{"P1 decided or P2 decided and P3 decided", "1=0; 2=0 3=0", "2=0; 3=0"},
		{"(P1 decided or P2 decided) and P3 decided", "1=0 3=0", "1=0; 3=0"},
		{"not P1 decided and P2 decided", "2=0", "1=0; 1=0 2=0; over"},
		{"not (P1 decided and P2 decided)", "1=0; over", "1=0 2=0"},
		{"not not over", "over", "1=0"},
		{"over or over and not over", "over", "1=0"},
		{"P1 decides and P2 decides", "1=0 2=0", "1=0"},

		{"P1.round = 9", "over", "1x"},
		{"P1.round=09", "over", "1x"},
		{"P1.round != 9", "", "over; 1x"},
		{"P2.round > 9", "over", "2x"},
		{"P2.round >= 10 and P2.round <= 10", "over", "2x"},
		{"P2.round < 9", "", "over"},
		{"P2.inner.value = uncertain", "over", "2x"},
		{`P2.inner.value > "certain"`, "over", "2x"},
		{`P2.inner.value != 5`, "over", "2x"},
		{`P1.inner.value = ""`, "over", "1x"},
		{`P2.inner.value = ""`, "", "over"},
		{"P2.also_back = true", "over", "2x"},
		{"P2.bag[0].seq = 7", "over", "2x"},
		{"P2.bag[1].seq != 7 or P1.bag[0].seq != 7", "", "over"},
		{"P2.part[1].kept = 4", "over", "2x"},
		{`P2."also back" = true and P2."due" = 7 and P2."due" < now+8`, "over", "2x"},
		{`P1."due" = 7 or P1."nothing" != 1`, "", "over"},
		{"all.round >= 9", "over", "1x"},
		{"all correct.round >= 10", "1x", "over"},
		{`some correct."due" > 0`, "over", "2x; 2l"},
		{"some.round = 11", "over", "3x"},
	} {
		g, err := parse(c.goal)
		if err != nil {
			t.Errorf("%s: %v", c.goal, err)
			continue
		}
		if g.Says != c.goal || g.Looks != strings.Contains(c.goal, ".") {
			t.Errorf("%s: says %q, looks %t", c.goal, g.Says, g.Looks)
		}
		for want, views := range map[bool]string{true: c.holds, false: c.fails} {
			for view := range strings.SplitSeq(views, ";") {
				if view != "" && g.Holds(scene(view)) != want {
					t.Errorf("%s: %t of %q", c.goal, !want, view)
				}
			}
		}
	}
}

// Where variables cannot be read, no sentence about them is true.
func TestGoalBlind(t *testing.T) {
	g, err := parse("P1.round = 9 or P1.round != 9")
	if err != nil || g.Holds(&explore.View{History: &parley.History{}}) {
		t.Error(err, "holds without variables")
	}
}

func TestGoalErrors(t *testing.T) {
	many := strings.Repeat
	for _, c := range [][2]string{
		{"", "column 1: a process, all, some, over, not or ( was expected, not the end"},
		{"P4 decided", `column 1: a process (P1 to P3), all, some, over, not or ( was expected, not "P4"`},
		{"every decided", `column 1: a process (P1 to P3), all, some, over, not or ( was expected, not "every"`},
		{"P1", "column 3: a verb was expected, not the end: allowed are decided, decides, delivered, delivers, asked, suspects, says, down, correct"},
		{"not  P1 decidet 0", `column 9: a verb was expected, not "decidet": did you mean decided or decides?`},
		{"P1 decidess", `column 4: a verb was expected, not "decidess": did you mean decides or decided?`},
		{"P1 deliver a", `column 4: a verb was expected, not "deliver": did you mean delivered or delivers?`},
		{"P1 xyz", `column 4: a verb was expected, not "xyz": allowed are decided`},
		{`P1 "down"`, `column 4: a verb, without quotes, was expected, not "down"`},
		{"all correct decides 0 1", `column 23: and, or or the end was expected, not "1"`},
		{"P1 suspects", "column 12: a process (P1 to P3) was expected, not the end"},
		{"P1 suspects P9 or over", `column 13: a process (P1 to P3) was expected, not "P9"`},
		{"P1 says and over", `column 9: what it says was expected, not "and"`},
		{"P1 delivers a before", "column 21: what is delivered later was expected, not the end"},
		{"P1 delivers a before before", `column 22: what is delivered later was expected, not "before"`},
		{`"over"`, `column 1: a process, all, some, over, not or ( was expected, not "over"`},
		{`P1 asked a "and" over`, `column 12: and, or or the end was expected, not "and"`},
		{"(over", "column 6: and, or or ) was expected, not the end"},
		{"over)", `column 5: and, or or the end was expected, not ")"`},
		{"over and", "column 9: a process, all, some, over, not or ( was expected, not the end"},
		{"over && over", `column 6: and, or or the end was expected, not "&&"`},
		{"P1 asked é ü", `column 12: and, or or the end was expected, not "ü"`},
		{"'a'", `column 1: "'" begins nothing: quotes are double and closed`},
		{`P1 decides "0`, `column 12: "\"" begins nothing`},
		{`P1 decides "\q"`, "column 12: in quotes a line does not end"},
		{"! over", `column 1: "!" begins nothing`},
		{"P1.rounds = 1", `column 4: no process has a variable "rounds": did you mean round?`},
		{"all correct.value = 1", `column 13: no process has a variable "value": did you mean inner.value?`},
		{"P1.part[0].keep = 1", `column 4: no process has a variable "part[0].keep": did you mean part[0].kept?`},
		{"P1.also_bac = 1", `did you mean also_back?`},
		{"P1.nothing = 1", `column 4: no process has a variable "nothing": allowed are round, bag, part[0].kept, also_back, inner.value`},
		{"P1.bag = 1 and P1.bags[0].seq = 1", `column 19: no process has a variable "bags[0].seq"`},
		{"P1. = 1", `column 5: the name of a variable was expected, not "="`},
		{"P1.round", "column 9: one of = != < <= > >= was expected, not the end"},
		{`P1.round "=" 1`, `column 10: one of = != < <= > >= was expected, not "="`},
		{"P1.round = and over", `column 12: a value was expected, not "and"`},
		{"P1." + many("x", 3000) + " = 1", `column 4: no process has a variable "xxxx`},
		{many("a", 5000), "the goal has 5000 bytes: at most 4096 are allowed"},
		{many("not ", 100) + "over", "column 257: parentheses and nots are more than 64 deep"},
		{many("(", 4096), "column 65: parentheses and nots are more than 64 deep"},
	} {
		_, err := parse(c[0])
		if err == nil || !strings.HasPrefix(err.Error(), c[1]) && !strings.HasSuffix(err.Error(), c[1]) {
			t.Errorf("%.40s: %v\nwant %s", c[0], err, c[1])
		} else if len(err.Error()) > 300 {
			t.Errorf("%.40s: an error of %d bytes", c[0], len(err.Error()))
		}
	}
	if _, err := parse(many("not (", 31) + "not over" + many(")", 31) + many(" or (over)", 300)); err != nil {
		t.Error("within the limits:", err)
	}
}

// All variables of processes with different roles are known, and no query finds none.
func TestGoalVariables(t *testing.T) {
	oral := om.New(om.Config{N: 4, M: 1, Default: []byte("0")}, lockstep.Simulated)
	for _, p := range []parley.Protocol{oral, threephase.New(threephase.Config{N: 3})} {
		for id := range parley.ID(p.N) {
			vars := parley.Show(p.New(id), 0)
			for _, x := range vars {
				value := strconv.Quote(strings.TrimPrefix(x.Value, `""`))
				text := called(id) + "." + strings.ReplaceAll(x.Name, " ", "_") + " = " + value
				g, err := goal.Parse(text, p, article, called)
				if err != nil {
					t.Errorf("%s: %v", p.Name, err)
				} else if !g.Holds(&explore.View{Vars: func(parley.ID) []parley.Variable { return vars }}) {
					t.Errorf("%s: %s does not hold", p.Name, text)
				}
			}
		}
	}
}

// Every example sentence of the help parses.
func TestGoalHelp(t *testing.T) {
	examples := 0
	for line := range strings.Lines(goal.Help) {
		if utf8.RuneCountInString(line) > 95 {
			t.Errorf("too wide: %s", line)
		}
		for _, part := range regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), -1) {
			if _, err := parse(part); err == nil {
				examples++
			} else if strings.HasPrefix(part, "P2") {
				t.Errorf("%s: %v", part, err)
			}
		}
	}
	if examples != 13 {
		t.Errorf("%d examples can be read", examples)
	}
}

// Any text is either refused with a column, or parsed so that its negation is false where it is true.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`P2 decides 0 and not (P3 decided or all correct delivers "a" before b)`,
		`some correct.bag[0].seq >= 7 or P1."due" = "\x00"`, "all correct", "P1 suspects P2 or over", `P1 says "`, "((", "\xff é",
	} {
		f.Add(seed)
	}
	views := []*explore.View{scene("over"), scene("1=0 2=1 3x 1!a 1!b 2s1"), scene("1x 2l 3b 3?a")}
	column := regexp.MustCompile(`^column (\d+): `)
	f.Fuzz(func(t *testing.T, text string) {
		g, err := parse(text)
		if err != nil {
			at := column.FindStringSubmatch(err.Error())
			if len(text) > 4096 {
				return
			}
			if at == nil {
				t.Fatalf("no column: %v", err)
			}
			if n, _ := strconv.Atoi(at[1]); n < 1 || n > utf8.RuneCountInString(text)+1 {
				t.Fatalf("column %d of %d characters: %v", n, utf8.RuneCountInString(text), err)
			}
			return
		}
		opposite, err := parse("not (" + g.Says + ")")
		if err != nil {
			if len(text) > 4000 || strings.Contains(err.Error(), "deep") {
				return
			}
			t.Fatal(err)
		}
		for _, v := range views {
			if g.Holds(v) == opposite.Holds(v) {
				t.Fatalf("%q and its opposite", text)
			}
		}
	})
}
