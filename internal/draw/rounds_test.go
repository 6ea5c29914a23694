package draw_test

import (
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/faulty"
	"parley/internal/draw"
	"parley/trace"
)

// Article, Tables 1 and 2, at three widths.
func TestArticleTables(t *testing.T) {
	p := article()
	var out strings.Builder
	for _, width := range widths {
		p.style.Width = width
		for _, o := range []draw.RoundsOptions{{Style: p.style}, {Style: p.style, ByReceiver: true, Rows: 2, Receivers: 6}} {
			text := draw.Rounds(p.rounds(), o)
			lines(t, "rounds", text, width)
			fmt.Fprintf(&out, "--- width %d, by receiver %v\n%s\n", width, o.ByReceiver, text)
		}
	}
	golden(t, "article.txt", out.String())
}

var cells = regexp.MustCompile(`\{[^}]*\}`)

// Article, Table 2: each of the thirty cells is there once, in the column of its
// sender, whatever the width.
func TestTable2Cells(t *testing.T) {
	p := article()
	var want []string
	for i, column := range []string{
		"{0,132} {0,142} {1,152} {1,162} {1,172}", "{0,123} {0,143} {1,153} {1,163} {1,173}",
		"{0,124} {0,134} {1,154} {1,164} {1,174}", "{0,125} {0,135} {0,145} {1,165} {1,175}",
		"{0,126} {0,136} {0,146} {1,156} {1,176}", "{0,127} {0,137} {0,147} {1,157} {1,167}",
	} {
		for _, cell := range strings.Fields(column) {
			want = append(want, cell)
			if said := told(p.rounds(), 2, parley.ID(i+1), 3); len(said) != 1 || !slices.Contains(said[0].Rows, cell) {
				t.Errorf("P%d does not tell P4 %s", i+2, cell)
			}
		}
	}
	slices.Sort(want)
	for _, width := range widths {
		p.style.Width = width
		text := draw.Rounds(p.rounds()[2:], draw.RoundsOptions{Style: p.style})
		got := cells.FindAllString(text, -1)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("width %d: cells %v\nwant %v", width, got, want)
		}
		for _, line := range strings.Split(text, "\n") {
			for i, cell := range cells.FindAllString(line, -1) {
				if i > 0 && cell[len(cell)-2] <= cells.FindAllString(line, -1)[i-1][len(cell)-2] {
					t.Errorf("width %d: senders out of order: %s", width, line)
				}
			}
		}
	}
}

// A table that is too wide is folded: every sender stands in one table, each
// with the head.
func TestFoldedTables(t *testing.T) {
	var r draw.Round
	for from := range parley.ID(40) {
		row := fmt.Sprintf("{1,%d}", from+1)
		r.Said = append(r.Said, draw.Said{From: from, To: []parley.ID{0, 1, 2}, Rows: []string{row}, Total: 1})
	}
	text := draw.Rounds([]draw.Round{r}, draw.RoundsOptions{Style: draw.Style{Width: 80}})
	lines(t, "folded", text, 80)
	tables := strings.Count(text, "┌")
	if heads := strings.Count(text, "│ Sender"); tables != 5 || heads != tables {
		t.Errorf("%d tables with %d heads, want 5", tables, heads)
	}
	apart := strings.ReplaceAll(text, "│", "││")
	for from := range 40 {
		head := regexp.MustCompile(fmt.Sprintf(`│ P%d +│`, from+1))
		if n := len(head.FindAllString(apart, -1)); n != 1 {
			t.Errorf("P%d heads %d columns", from+1, n)
		}
	}
}

// What is said differently to different receivers, what is not said at all, and
// who is faulty.
func TestLiarsTables(t *testing.T) {
	var out strings.Builder
	for _, p := range []play{liars(), crashed(), random(7)} {
		p.style.Width = 80
		out.WriteString(draw.Rounds(p.rounds()[:2], draw.RoundsOptions{Style: p.style, Rows: 4}) + "\n")
	}
	golden(t, "liars.txt", out.String())
}

// Long columns are cut, and the rest is counted exactly.
func TestLongColumns(t *testing.T) {
	rows := make([]string, 20)
	for i := range rows {
		rows[i] = fmt.Sprintf("{0,1%d}", i)
	}
	r := draw.Round{Number: 3, Said: []draw.Said{
		{From: 1, To: []parley.ID{1, 2, 3}, Rows: rows, Total: 1035},
		{From: 2, To: []parley.ID{1, 2}, Rows: rows[:12], Total: 12},
		{From: 2, To: []parley.ID{3}},
		{From: 3, To: []parley.ID{1, 2, 3}, Rows: []string{strings.Repeat("0123456789", 30)}, Total: 13366080},
	}}
	var out strings.Builder
	for _, width := range widths {
		o := draw.RoundsOptions{Style: draw.Style{Width: width, Faulty: parley.SetOf(2)}}
		text := draw.Rounds([]draw.Round{r}, o)
		lines(t, "long columns", text, width)
		for _, want := range []string{"… 1,023 more", "… 13,366,079 more", "(silent)", "P3 ✗"} {
			if !strings.Contains(text, want) {
				t.Errorf("width %d: no %q in\n%s", width, want, text)
			}
		}
		if n := strings.Count(text, "more"); n != 2 {
			t.Errorf("width %d: %d columns are cut", width, n)
		}
		o.ByReceiver = true
		lines(t, "long columns by receiver", draw.Rounds([]draw.Round{r}, o), width)
		out.WriteString(text + "\n")
	}
	golden(t, "long.txt", out.String())
}

// Gather against the slow way: for each receiver the rows of all that was sent
// to it, one event after the other.
func TestGather(t *testing.T) {
	plays := []play{article(), figure3(), liars(), crashed()}
	for seed := range uint64(12) {
		plays = append(plays, random(seed), scene{n: 5, m: 1, value: "1", seed: seed,
			faulty: map[parley.ID]faulty.Behaviour{2: faulty.SendOmission}}.play())
	}
	for _, p := range plays {
		rounds := draw.Gather(p.protocol, p.log.Events, draw.Gathering{Style: p.style, Rows: 1000})
		bare := func(id parley.ID) string { return fmt.Sprint(id + 1) }
		for round := range p.m + 1 {
			for from := range parley.ID(p.n) {
				for to := range parley.ID(p.n) {
					var want []string
					for _, e := range p.log.Events {
						sent := e.Op == trace.Send && to != from && (e.Peer == to || e.Peer == parley.All) || e.Op == trace.Keep && to == from
						if sent && e.At == from && e.Msg.Seq == uint64(round) {
							env := parley.Env{From: from, To: to, Path: e.Path, Round: round}
							want = slices.AppendSeq(want, p.protocol.Explain(env, e.Msg, bare))
						}
					}
					said := told(rounds, round, from, to)
					if len(said) > 1 {
						t.Fatalf("round %d: P%d tells P%d %d things", round, from+1, to+1, len(said))
					}
					var got []string
					if len(said) == 1 {
						got = said[0].Rows
						if said[0].Total != uint64(len(got)) {
							t.Errorf("%d rows, said to be %d", len(got), said[0].Total)
						}
					}
					if !slices.Equal(got, want) {
						t.Errorf("round %d: P%d tells P%d %v, want %v", round, from+1, to+1, got, want)
					}
				}
			}
		}
	}
}

// Receivers that are told the same stand together, own copies included, and of
// many rows only the first are kept.
func TestGatherGroups(t *testing.T) {
	p := article()
	rounds := draw.Gather(p.protocol, p.log.Events, draw.Gathering{Style: p.style, Rows: 2})
	for from := parley.ID(1); from < 7; from++ {
		said := told(rounds, 2, from, from)
		if len(said) != 1 || !slices.Equal(said[0].To, []parley.ID{1, 2, 3, 4, 5, 6}) {
			t.Fatalf("P%d: %+v", from+1, said)
		}
		if len(said[0].Rows) != 2 || said[0].Total != 5 {
			t.Errorf("P%d: %d rows of %d", from+1, len(said[0].Rows), said[0].Total)
		}
		if v := said[0].Values; len(v) != 2 || v[0].Value != "0" || v[1].Value != "1" || v[0].Rows+v[1].Rows != 5 {
			t.Errorf("P%d: values %+v", from+1, v)
		}
	}
	if len(rounds[0].Said) != 2 || !slices.Equal(rounds[0].Said[1].To, []parley.ID{4, 5, 6}) {
		t.Errorf("round 0: %+v", rounds[0].Said)
	}
}

// A frame of several messages is the same as the copies of them that its sender
// keeps, if it is.
func TestGatherCopies(t *testing.T) {
	p := parley.Protocol{N: 4, Timing: parley.Synchronous, Kinds: []string{"", "FRAME", "A", "B"}}
	one, two := parley.Msg{Kind: 2, Body: []byte("x")}, parley.Msg{Kind: 3, Body: []byte("y")}
	frame := parley.Msg{Kind: 1, Body: parley.AppendMsg(parley.AppendMsg(nil, 0, one), 1, two)}
	other := parley.Msg{Kind: 1, Body: parley.AppendMsg(parley.AppendMsg(nil, 1, one), 1, two)}
	events := []trace.Event{
		{Op: trace.Send, At: 2, Peer: 0, Msg: frame},
		{Op: trace.Send, At: 2, Peer: 1, Msg: other},
		{Op: trace.Send, At: 2, Peer: 3, Msg: frame},
		{Op: trace.Keep, At: 2, Peer: 2, Path: 0, Msg: one},
		{Op: trace.Keep, At: 2, Peer: 2, Path: 1, Msg: two},
	}
	rounds := draw.Gather(p, events, draw.Gathering{})
	if len(rounds) != 1 || len(rounds[0].Said) != 2 || !slices.Equal(rounds[0].Said[0].To, []parley.ID{0, 2, 3}) {
		t.Errorf("%+v", rounds)
	}
}

// A message with more rows than are gone through is counted by the protocol.
func TestGatherCounts(t *testing.T) {
	const total = 3_000_000
	walked := 0
	p := parley.Protocol{
		N: 3, Timing: parley.Asynchronous, Kinds: []string{"", "BULK"},
		Explain: func(parley.Env, parley.Msg, func(parley.ID) string) iter.Seq[string] {
			return func(yield func(string) bool) {
				for range total {
					if walked++; !yield("{1,2}") {
						return
					}
				}
			}
		},
		Size: func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: total} },
	}
	events := []trace.Event{{Op: trace.Send, At: 1, Peer: parley.All, Msg: parley.Msg{Kind: 1}}}
	rounds := draw.Gather(p, events, draw.Gathering{})
	if len(rounds) != 1 || rounds[0].Title != "BULK" || len(rounds[0].Said) != 1 {
		t.Fatalf("%+v", rounds)
	}
	if said := rounds[0].Said[0]; said.Total != total || len(said.Rows) != 12 || said.Values != nil {
		t.Errorf("%d rows of %d, values %v", len(said.Rows), said.Total, said.Values)
	}
	if walked > 10_000 {
		t.Errorf("%d rows were gone through", walked)
	}
}

// A lie is what differs from the liar's own copy, or from the value it was given.
func TestLies(t *testing.T) {
	p := liars()
	for _, r := range p.rounds() {
		for _, s := range r.Said {
			others := slices.ContainsFunc(s.To, func(id parley.ID) bool { return id != s.From })
			want := s.From == 4 && others || s.From == 0 && s.Rows[0] != "{1,1}"
			if s.Lie != want {
				t.Errorf("round %d: P%d tells %v %v: lie %v", r.Number, s.From+1, s.To, s.Rows, s.Lie)
			}
		}
	}
}

// Who is silent where something was due: the crashed lieutenant, to those whom
// it did not reach; never the General after round 0.
func TestSilence(t *testing.T) {
	p := scene{n: 7, m: 2, value: "1", faulty: map[parley.ID]faulty.Behaviour{0: faulty.Silent, 4: faulty.Crash(1, 3)}}.play()
	got := make(map[string]bool)
	for _, r := range p.rounds() {
		for _, s := range r.Said {
			if s.Total == 0 {
				got[fmt.Sprintf("round %d P%d to %v", r.Number, s.From+1, s.To)] = true
			}
		}
	}
	want := map[string]bool{
		"round 0 P1 to [1 2 3 5 6]": true, "round 1 P5 to [3 5 6]": true, "round 2 P5 to [1 2 3 5 6]": true,
	}
	if len(got) != len(want) {
		t.Errorf("silent: %v", got)
	}
	for s := range want {
		if !got[s] {
			t.Errorf("not silent: %s; but %v", s, got)
		}
	}
}

// The caption says who is told, or else each column does.
func TestCaptions(t *testing.T) {
	say := func(from parley.ID, to ...parley.ID) draw.Said {
		return draw.Said{From: from, To: to, Rows: []string{"x"}, Total: 1}
	}
	for _, c := range []struct {
		said []draw.Said
		want string
		to   int // columns that name the receivers themselves
	}{
		{nil, "Round 0: nothing is sent", 0},
		{[]draw.Said{say(0, 1, 2, 3, 4)}, "Round 0: P1 sends to P2 … P5", 0},
		{[]draw.Said{say(1, 1, 2, 3), say(2, 1, 2, 3)}, "Round 0: each sends to P2 P3 P4, itself included", 0},
		{[]draw.Said{say(1, 0), say(2, 0)}, "Round 0: each sends to P1", 0},
		{[]draw.Said{say(0, 1, 2), say(1, 0, 2), say(2, 0, 1)}, "Round 0: each sends to all others of P1 P2 P3", 0},
		{[]draw.Said{say(0, 1, 2), say(1, 2), say(2, 0, 1)}, "Round 0", 3},
		{[]draw.Said{say(0, 1, 9), say(1, 0, 9), say(9, 0, 1)}, "Round 0: each sends to all others of P1 P2 P10", 0},
		{[]draw.Said{say(0, 0, 1, 9), say(1, 0, 1, 9), say(9, 0, 1)}, "Round 0: each sends to P1 P2 P10, itself included", 0},
		{[]draw.Said{say(1, 1, 2, 3), say(2, 1), say(2, 2, 3)}, "Round 0: each sends to P2 P3 P4, itself included", 2},
	} {
		o := draw.RoundsOptions{Style: draw.Style{Faulty: parley.SetOf(9)}}
		text := draw.Rounds([]draw.Round{{Said: c.said}}, o)
		first, table, _ := strings.Cut(text, "\n")
		if first != c.want || strings.Count(table, "to P") != c.to {
			t.Errorf("%v: want %q and %d columns that say to whom:\n%s", c.said, c.want, c.to, text)
		}
	}
}

// What a row speaks of, as the protocols of this module write rows.
func TestValuesOfRows(t *testing.T) {
	for row, want := range map[string]string{
		"{0,132}": "0", "{a,b,1.10}": "a,b", "3: {1,31}": "1", "1:1:2": "1", "propose 1": "1", "king: 0": "0", "commit": "commit",
	} {
		p := parley.Protocol{
			N: 2, Kinds: []string{"", "SAY"},
			Explain: func(parley.Env, parley.Msg, func(parley.ID) string) iter.Seq[string] {
				return func(yield func(string) bool) { yield(row) }
			},
		}
		rounds := draw.Gather(p, []trace.Event{{Op: trace.Send, At: 0, Peer: 1, Msg: parley.Msg{Kind: 1}}}, draw.Gathering{})
		if v := rounds[0].Said[0].Values; len(v) != 1 || v[0].Value != want {
			t.Errorf("%s speaks of %v, want %s", row, v, want)
		}
	}
}
