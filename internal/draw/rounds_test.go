package draw_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/internal/draw/reading"
	"parley/internal/draw/term"
)

// The rounds of the article's example, the last of which is its Table 2, at three widths.
func TestArticleTables(t *testing.T) {
	p := article()
	var out strings.Builder
	for _, width := range widths {
		p.style.Width = width
		text := term.Rounds(p.rounds(), term.RoundsOptions{Style: p.style})
		lines(t, "rounds", text, width)
		fmt.Fprintf(&out, "--- width %d\n%s\n", width, text)
	}
	golden(t, "article.txt", out.String())
}

var cells = regexp.MustCompile(`\{[^}]*\}`)

// Article, Table 2: each of the thirty cells occurs once, in the column of its sender, at every width.
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
			if said := sentTo(p.rounds(), 2, parley.ID(i+1), 3); len(said) != 1 || !slices.Contains(said[0].Rows, cell) {
				t.Errorf("P%d does not tell P4 %s", i+2, cell)
			}
		}
	}
	slices.Sort(want)
	for _, width := range widths {
		p.style.Width = width
		text := term.Rounds(p.rounds()[2:], term.RoundsOptions{Style: p.style})
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

// A table that is too wide is folded: every sender is in one of the tables, and each has the head.
func TestFoldedTables(t *testing.T) {
	var r reading.Round
	for from := range parley.ID(40) {
		row := fmt.Sprintf("{1,%d}", from+1)
		r.Said = append(r.Said, reading.Said{From: from, To: []parley.ID{0, 1, 2}, Rows: []string{row}, Total: 1})
	}
	text := term.Rounds([]reading.Round{r}, term.RoundsOptions{Style: reading.Style{Width: 80}})
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

// Different messages to different receivers, missing messages, and faulty processes are shown.
func TestLiarsTables(t *testing.T) {
	var out strings.Builder
	for _, p := range []play{liars(), crashed(), random(7)} {
		p.style.Width = 80
		out.WriteString(term.Rounds(p.rounds()[:2], term.RoundsOptions{Style: p.style, Rows: 4}) + "\n")
	}
	golden(t, "liars.txt", out.String())
}

// Long columns are cut, and the omitted rows are counted exactly.
func TestLongColumns(t *testing.T) {
	rows := make([]string, 20)
	for i := range rows {
		rows[i] = fmt.Sprintf("{0,1%d}", i)
	}
	r := reading.Round{Number: 3, Said: []reading.Said{
		{From: 1, To: []parley.ID{1, 2, 3}, Rows: rows, Total: 1035},
		{From: 2, To: []parley.ID{1, 2}, Rows: rows[:12], Total: 12},
		{From: 2, To: []parley.ID{3}},
		{From: 3, To: []parley.ID{1, 2, 3}, Rows: []string{strings.Repeat("0123456789", 30)}, Total: 13366080},
	}}
	var out strings.Builder
	for _, width := range widths {
		o := term.RoundsOptions{Style: reading.Style{Width: width, Faulty: parley.SetOf(2)}}
		text := term.Rounds([]reading.Round{r}, o)
		lines(t, "long columns", text, width)
		for _, want := range []string{"… 1,023 more", "… 13,366,079 more", "(silent)", "P3 ✗"} {
			if !strings.Contains(text, want) {
				t.Errorf("width %d: no %q in\n%s", width, want, text)
			}
		}
		if n := strings.Count(text, "more"); n != 2 {
			t.Errorf("width %d: %d columns are cut", width, n)
		}
		out.WriteString(text + "\n")
	}
	golden(t, "long.txt", out.String())
}

// The caption names the receivers, or otherwise each column does.
func TestCaptions(t *testing.T) {
	say := func(from parley.ID, to ...parley.ID) reading.Said {
		return reading.Said{From: from, To: to, Rows: []string{"x"}, Total: 1}
	}
	for _, c := range []struct {
		said []reading.Said
		want string
		to   int // columns that name the receivers
	}{
		{nil, "Round 0: nothing is sent", 0},
		{[]reading.Said{say(0, 1, 2, 3, 4)}, "Round 0: P1 sends to P2 … P5", 0},
		{[]reading.Said{say(1, 1, 2, 3), say(2, 1, 2, 3)}, "Round 0: each sends to P2 P3 P4, itself included", 0},
		{[]reading.Said{say(1, 0), say(2, 0)}, "Round 0: each sends to P1", 0},
		{[]reading.Said{say(0, 1, 2), say(1, 0, 2), say(2, 0, 1)}, "Round 0: each sends to all others of P1 P2 P3", 0},
		{[]reading.Said{say(0, 1, 2), say(1, 2), say(2, 0, 1)}, "Round 0", 3},
		{[]reading.Said{say(0, 1, 9), say(1, 0, 9), say(9, 0, 1)}, "Round 0: each sends to all others of P1 P2 P10", 0},
		{[]reading.Said{say(0, 0, 1, 9), say(1, 0, 1, 9), say(9, 0, 1)}, "Round 0: each sends to P1 P2 P10, itself included", 0},
		{[]reading.Said{say(1, 1, 2, 3), say(2, 1), say(2, 2, 3)}, "Round 0: each sends to P2 P3 P4, itself included", 2},
	} {
		o := term.RoundsOptions{Style: reading.Style{Faulty: parley.SetOf(9)}}
		text := term.Rounds([]reading.Round{{Said: c.said}}, o)
		first, table, _ := strings.Cut(text, "\n")
		if first != c.want || strings.Count(table, "to P") != c.to {
			t.Errorf("%v: want %q and %d columns that say to whom:\n%s", c.said, c.want, c.to, text)
		}
	}
}
