package live_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"parley"
	"parley/internal/draw/live"
	"parley/internal/draw/reading"
	"parley/internal/draw/scene"
	"parley/internal/draw/svg"
	"parley/internal/golden"
	"parley/trace"
)

// ms is a millisecond of the times of events.
const ms = 1_000_000

// story is a list of events under construction.
type story struct{ events []trace.Event }

func (s *story) add(e trace.Event) uint64 {
	e.ID = uint64(len(s.events) + 1)
	e.Time *= ms
	s.events = append(s.events, e)
	return e.ID
}

// send adds a message that takes a millisecond; if it takes none, it does not arrive.
func (s *story) send(at parley.Tick, from, to parley.ID, takes parley.Tick) {
	m := parley.Msg{Kind: 1, Body: []byte("x")}
	sent := s.add(trace.Event{Op: trace.Send, Time: at, At: from, Peer: to, Msg: m})
	if takes > 0 {
		s.add(trace.Event{Op: trace.Receive, Time: at + takes, At: to, Peer: from, Cause: sent, Msg: m})
	}
}

// troubled is a cluster of three nodes. P3 is paused for a second and then killed; it is started again. The link
// between P1 and P2 is cut.
func troubled(until parley.Tick) live.Picture {
	var s story
	s.add(trace.Event{Op: trace.Request, Time: 1000, At: 0, Msg: parley.Msg{Kind: parley.Carried, Body: []byte("hello")}})
	s.send(1001, 0, 1, 1)
	s.send(1003, 0, 2, 1)
	s.add(trace.Event{Op: trace.Deliver, Time: 1005, At: 1, Msg: parley.Msg{Kind: parley.Carried, Body: []byte("hello")}})
	s.add(trace.Event{Op: trace.Pause, Time: 2000, At: 2})
	s.send(2500, 0, 2, 0)
	s.add(trace.Event{Op: trace.Resume, Time: 3000, At: 2})
	s.send(3500, 1, 0, 0)
	s.add(trace.Event{Op: trace.Crash, Time: 4000, At: 2})
	s.send(4500, 1, 2, 0)
	s.add(trace.Event{Op: trace.Restart, Time: 6000, At: 2})
	s.send(6500, 1, 2, 0) // it may still arrive
	return live.Picture{
		Events: s.events, Width: 800, Until: until * ms, Protocol: parley.Protocol{N: 3},
		Style: reading.Style{Name: func(id parley.ID) string { return fmt.Sprintf("node%d", id+1) }},
		Lanes: []live.Lane{{State: "ready"}, {State: "stalls", Bad: true}, {State: "ready"}},
		Cuts:  []live.Cut{{A: 1, B: 0, From: 3200 * ms, Until: 5000 * ms}},
	}
}

func TestPicture(t *testing.T) {
	p := troubled(7000)
	golden.Compare(t, "testdata/troubled.json", p.Scene().JSON())
	golden.Compare(t, "testdata/troubled.svg", svg.Page(p.Scene(), "live"))
}

// marks returns how many marks have a role and a value.
func marks(s scene.Scene, role, value string) (n int) {
	for _, m := range s.Marks {
		if m.Role == role && m.Value == value {
			n++
		}
	}
	return n
}

// legend is how often the legend shows the sign of a role.
const legend = 1

// What has ended, and what has not, is drawn up to the end of the picture. What is older than the picture is not drawn.
func TestSpans(t *testing.T) {
	for _, c := range []struct {
		until                                parley.Tick
		paused, down, ended, again, unhealed int
	}{
		{1900, 0, 0, 0, 0, 0},
		{2900, 1, 0, 0, 0, 1}, // P3 is paused, and a message to it waits
		{3400, 1, 0, 0, 0, 0}, // it is resumed
		{4600, 1, 1, 1, 0, 2}, // one message does not pass the cut, and one is for P3, which is down
		{7000, 1, 1, 1, 1, 2},
		{600_000, 0, 0, 0, 0, 0},
	} {
		s := troubled(c.until).Scene()
		got := []int{
			marks(s, "stage", "paused"), marks(s, "gap", "down"), marks(s, "ended", "") - legend, marks(s, "again", "") - legend,
			marks(s, "missed", "") - legend,
		}
		if want := []int{c.paused, c.down, c.ended, c.again, c.unhealed}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("until %d: %v, want %v", c.until, got, want)
		}
	}
}

// Names, lanes and legend stay at their places while time passes, and the height of the picture depends only on the
// number of nodes.
func TestCalm(t *testing.T) {
	fixed := func(until parley.Tick) (out string) {
		s := troubled(until).Scene()
		for _, m := range s.Marks {
			if m.Role == "process" || m.Role == "lane" || m.Role == "note" {
				out += fmt.Sprintln(m.Role, m.X, m.Y, m.W, m.H)
			}
		}
		return out + fmt.Sprint(s.Height)
	}
	first := fixed(1500)
	for until := parley.Tick(2000); until < 12_000; until += 500 {
		if now := fixed(until); now != first {
			t.Errorf("at %d:\n%s\nwant\n%s", until, now, first)
		}
	}
}

// Nothing is drawn beyond the ends of the lanes, however narrow the picture and however many events there are.
func TestInside(t *testing.T) {
	for _, width := range []int{0, 280, 500, 1600} {
		p := troubled(7000)
		p.Width = width
		for i := range 500 {
			at := parley.Tick(5000+2*i) * ms
			id := uint64(len(p.Events) + 1)
			p.Events = append(p.Events, trace.Event{ID: id, Op: trace.Send, Time: at, At: 0, Peer: 1},
				trace.Event{ID: id + 1, Op: trace.Receive, Time: at + ms, At: 1, Peer: 0, Cause: id})
		}
		s := p.Scene()
		left, right := 0, s.Width
		for _, m := range s.Marks {
			if m.Role == "lane" {
				left, right = m.X, m.X+m.W
			}
		}
		arrows := 0
		for _, m := range s.Marks {
			if m.Role == "arrow" && m.Y < 170 {
				arrows++
				if min(m.X, m.X+m.W) < left || max(m.X, m.X+m.W) > right {
					t.Errorf("width %d: an arrow from %d to %d, and the lanes from %d to %d", width, m.X, m.X+m.W, left, right)
				}
			}
		}
		if arrows == 0 || arrows > (right-left)/7+1 {
			t.Errorf("width %d: %d arrows", width, arrows)
		}
	}
}

// Later is never further to the left.
func TestTimeGoesOn(t *testing.T) {
	s := troubled(7000).Scene()
	at := make(map[string]int)
	for _, m := range s.Marks {
		if m.Role == "words" {
			at[m.Parts[0].Text] = m.X
		}
	}
	for second := 2; second <= 6; second++ {
		before, after := at[fmt.Sprintf("0:%02d", second-1)], at[fmt.Sprintf("0:%02d", second)]
		if before >= after {
			t.Errorf("second %d is at %d, and the next one at %d", second-1, before, after)
		}
	}
}

// A reader who does not see the picture hears how the nodes are.
func TestWords(t *testing.T) {
	p := troubled(4900)
	p.Cuts[0].Until = 0
	want := "node1: ready; node2: stalls; node3: ready; the link between node2 and node1 is cut; "
	if got := p.Scene().About; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !regexp.MustCompile(`node1 to node3: .*; it does not arrive: the receiver is paused`).Match(svg.Page(troubled(2900).Scene(), "live")) {
		t.Error("the picture does not say why a message has not arrived")
	}
	if !strings.Contains(string(svg.Page(p.Scene(), "live")), "does not arrive: the link is cut") {
		t.Error("the picture does not say that a link is cut")
	}
}
