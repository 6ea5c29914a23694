package draw_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/faulty"
	"parley/internal/draw"
	"parley/internal/draw/reading"
	"parley/internal/draw/term"
	"parley/lockstep"
	"parley/sim"
	"parley/trace"
)

var update = flag.Bool("update", false, "write what is drawn to testdata")

// golden compares a drawing with the file of that name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: go test -update writes it", err)
	}
	if got != string(want) {
		t.Errorf("%s: drawn otherwise than before; if that is right, go test -update\ngot:\n%s\nwant:\n%s", name, got, want)
	}
}

// setting is a run to draw.
type setting struct {
	n, m   int
	value  string
	faulty map[parley.ID]faulty.Behavior
	seed   uint64
}

// play is a finished run.
type play struct {
	setting
	protocol parley.Protocol
	log      *trace.Log
	sim      *sim.Sim
	style    reading.Style
}

func (s setting) play() play {
	c := eig.Config{N: s.n, M: s.m, Default: []byte("0")}
	p := play{setting: s, protocol: eig.New(c, lockstep.Simulated), log: &trace.Log{Keep: true}}
	p.sim = sim.Run(sim.Options{
		Protocol: p.protocol, Faulty: s.faulty, Seed: s.seed, Log: p.log, Measure: true,
		Requests: []sim.Request{{At: 0, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(s.value)}}},
	})
	for id := range s.faulty {
		p.style.Faulty.Add(id)
	}
	return p
}

func (p play) rounds() []reading.Round {
	return reading.Gather(p.protocol, p.log.Events, reading.Gathering{Style: p.style})
}

func (p play) header() trace.Header {
	h := trace.Header{N: p.n, M: p.m}
	for id := range p.faulty {
		h.Faulty = append(h.Faulty, int(id))
	}
	return h
}

func (p play) outcomes() []reading.Outcome {
	return reading.Outcomes(p.log.History(p.header()), p.protocol.Proposers, func(id parley.ID) string { return p.faulty[id].Name })
}

func (p play) tree(id parley.ID) parley.Tree { return p.protocol.Tree(p.sim.Machine(id)) }

func (p play) diagram() draw.Diagram {
	return draw.Diagram{Style: p.style, Lives: p.outcomes(), Rounds: p.rounds()}
}

// article is the article's example for Tables 1 and 2: P1, a faulty General, tells P2, P3 and P4 that the value is 0,
// and P5, P6 and P7 that it is 1.
func article() play {
	return setting{n: 7, m: 2, value: "0", faulty: map[parley.ID]faulty.Behavior{0: faulty.TwoFaced}}.play()
}

// figure3 is the article's Figure 3: six processes, m = 1, and a faulty General
// that sends 1 to the first three lieutenants and 0 to the last two.
func figure3() play {
	return setting{n: 6, m: 1, value: "1", faulty: map[parley.ID]faulty.Behavior{0: faulty.TwoFaced}}.play()
}

// liars has a two-faced General and a lieutenant that flips what it relays.
func liars() play {
	return setting{n: 7, m: 2, value: "1", faulty: map[parley.ID]faulty.Behavior{0: faulty.TwoFaced, 4: faulty.Flip}}.play()
}

// crashed has a lieutenant that crashes in the middle of round 1.
func crashed() play {
	return setting{n: 7, m: 2, value: "1", faulty: map[parley.ID]faulty.Behavior{4: faulty.Crash(1, 3)}}.play()
}

// random has two liars that send anything, in a system whose names have two digits.
func random(seed uint64) play {
	return setting{n: 10, m: 3, value: "1", seed: seed,
		faulty: map[parley.ID]faulty.Behavior{0: faulty.Random, 5: faulty.Random, 9: faulty.Silent}}.play()
}

var widths = []int{40, 80, 120}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// lines checks what every text must satisfy: no line exceeds the width, and none ends with a blank.
func lines(t *testing.T, what, text string, width int) []string {
	t.Helper()
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range all {
		if n := len([]rune(escapes.ReplaceAllString(line, ""))); n > width {
			t.Errorf("%s, width %d: line %d has %d characters: %q", what, width, i+1, n, line)
		}
		if strings.TrimRight(line, " ") != line {
			t.Errorf("%s, width %d: line %d ends with a blank: %q", what, width, i+1, line)
		}
	}
	return all
}

// texts returns all texts of a run at one width.
func (p play) texts(s reading.Style) map[string]string {
	n, m := p.n, p.m
	return map[string]string{
		"rounds":     term.Rounds(p.rounds(), term.RoundsOptions{Style: s, Rows: 3}),
		"tree":       term.Tree(p.tree(1), reading.TreeOptions{Style: s, Title: "Information tree of P2 after the last round"}),
		"small tree": term.Tree(p.tree(1), reading.TreeOptions{Style: s, MaxNodes: 12}),
		"decisions":  term.Decisions(p.outcomes(), s),
		"card": term.Card{
			Style: s, Title: "eig",
			Verdicts: parley.Judge(p.protocol, parley.RunConditions{N: n, M: m, Faulty: len(p.faulty)}, &p.sim.History),
			Cost:     p.protocol.Cost(n, m), Measured: p.sim.Stats.Sent, Counted: "sent by the correct processes",
		}.Text(),
	}
}

func TestNoLineIsWiderThanTheWidth(t *testing.T) {
	for _, p := range []play{figure3(), liars(), crashed(), random(1)} {
		for width := 40; width <= 130; width += 10 {
			s := p.style
			s.Width = width
			for what, text := range p.texts(s) {
				lines(t, what, text, width)
			}
			s.Name = func(id parley.ID) string { return "a process with a long name, " + id.String() }
			for what, text := range p.texts(s) {
				lines(t, what+" with long names", text, width)
			}
		}
	}
}

// Without the flag there is no color; with it the text is the same.
func TestColour(t *testing.T) {
	p := liars()
	plain := p.texts(p.style)
	s := p.style
	s.Color = true
	for what, text := range p.texts(s) {
		switch {
		case strings.Contains(plain[what], "\x1b"):
			t.Errorf("%s: colours without the flag", what)
		case !strings.Contains(text, "\x1b"):
			t.Errorf("%s: no colours with the flag", what)
		case escapes.ReplaceAllString(text, "") != plain[what]:
			t.Errorf("%s: another text with colours:\n%s\n%s", what, text, plain[what])
		}
	}
}

// The user's locale changes nothing, although libraries read it when they start.
func TestLocale(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	again := exec.Command(self, "-test.run", "^(TestArticleTables|TestCard|TestCollapse|TestLiarsTables)$")
	again.Env = append(os.Environ(), "LC_ALL=ja_JP.UTF-8")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// sentTo returns what, according to Gather, one process sends to another in a round.
func sentTo(rounds []reading.Round, round int, from, to parley.ID) (said []reading.Said) {
	for _, r := range rounds {
		for _, s := range r.Said {
			if r.Number == round && s.From == from && slices.Contains(s.To, to) {
				said = append(said, s)
			}
		}
	}
	return said
}
