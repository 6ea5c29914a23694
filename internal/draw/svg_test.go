package draw_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley"
	"parley/internal/draw"
	"parley/internal/draw/reading"
	"parley/internal/draw/scene"
	"parley/internal/draw/svg"
	"parley/trace"
)

// heading is the heading of the pictures of plays.
var heading = draw.Heading{Title: "Byzantine agreement", Subtitle: "exponential information gathering"}

// figure draws a diagram above a tree; either may be nil.
func figure(h draw.Heading, d *draw.Diagram, t parley.Tree, o reading.TreeOptions) scene.Scene {
	var parts []draw.Part
	var filled map[string]uint64
	if d != nil {
		parts = append(parts, *d)
		filled = d.Arrivals(o.Of)
	}
	if t != nil {
		parts = append(parts, draw.Tree{Tree: t, TreeOptions: o, Filled: filled})
	}
	return draw.Figure(h, parts...)
}

func figureSVG(d *draw.Diagram, t parley.Tree, o reading.TreeOptions) string {
	return string(svg.File(figure(heading, d, t, o)))
}

func diagramSVG(d draw.Diagram) string { return figureSVG(&d, nil, reading.TreeOptions{}) }

func treeSVG(t parley.Tree, o reading.TreeOptions) string { return figureSVG(nil, t, o) }

func spaceTimeSVG(
	p parley.Protocol, events []trace.Event, o reading.SpaceTimeOptions, title, subtitle string,
) string {
	return string(svg.File(spaceTime(p, events, o, draw.Heading{Title: title, Subtitle: subtitle})))
}

func spaceTime(p parley.Protocol, events []trace.Event, o reading.SpaceTimeOptions, h draw.Heading) scene.Scene {
	return draw.Figure(h, draw.SpaceTime{SpaceTimeOptions: o, Protocol: p, Moments: reading.OnceSpaceTime(p, events, o)})
}

func pairsSVG(p parley.Protocol, d reading.Pairs) string { return string(svg.File(draw.Pairs(p, d))) }

// well checks that a picture is well-formed XML with a viewBox, that all references exist, and that nothing is
// outside. It returns the elements by name.
func well(t *testing.T, picture string) map[string][]xml.StartElement {
	t.Helper()
	all := make(map[string][]xml.StartElement)
	d := xml.NewDecoder(strings.NewReader(picture))
	var shifts [][2]int
	var width, height, titles int
	var open []string
	ids := make(map[string]bool)
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, picture)
		}
		switch e := token.(type) {
		case xml.StartElement:
			e = e.Copy()
			all[e.Name.Local] = append(all[e.Name.Local], e)
			if e.Name.Local == "title" && slices.Contains([]string{"svg", "doc"}, open[len(open)-1]) {
				titles++
			}
			open = append(open, e.Name.Local)
			shift := [2]int{}
			if len(shifts) > 0 {
				shift = shifts[len(shifts)-1]
			}
			for _, a := range e.Attr {
				switch a.Name.Local {
				case "viewBox":
					if e.Name.Local == "svg" {
						fmt.Sscanf(a.Value, "0 0 %d %d", &width, &height)
					}
				case "id":
					ids[a.Value] = true
				case "transform":
					var x, y int
					if n, _ := fmt.Sscanf(a.Value, "translate(%d,%d)", &x, &y); n != 2 {
						t.Errorf("transform %q", a.Value)
					}
					shift = [2]int{shift[0] + x, shift[1] + y}
				}
			}
			shifts = append(shifts, shift)
			inside(t, e, shift, width, height)
		case xml.EndElement:
			open = open[:len(open)-1]
			shifts = shifts[:len(shifts)-1]
		}
	}
	if len(all["svg"]) != 1 || width < 100 || height < 50 || titles != 1 {
		t.Errorf("%d svg elements with a viewBox of %d by %d and %d titles", len(all["svg"]), width, height, titles)
	}
	for _, ref := range regexp.MustCompile(`url\(#([^)]*)\)`).FindAllStringSubmatch(picture, -1) {
		if !ids[ref[1]] {
			t.Errorf("no %s to refer to", ref[1])
		}
	}
	return all
}

func number(e xml.StartElement, name string) (int, bool) {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			x, err := strconv.Atoi(a.Value)
			return x, err == nil
		}
	}
	return 0, false
}

// inside checks the position of a rectangle, line or circle.
func inside(t *testing.T, e xml.StartElement, shift [2]int, width, height int) {
	t.Helper()
	check := func(what string, at, size int) {
		if at < 0 || at > size {
			t.Errorf("%s of %s is %d: outside of 0..%d: %v", what, e.Name.Local, at, size, e.Attr)
		}
	}
	for name, extent := range map[string]string{
		"x": "width", "y": "height", "x1": "", "x2": "", "y1": "", "y2": "", "cx": "", "cy": "",
	} {
		at, given := number(e, name)
		if !given {
			continue
		}
		limit, axis := width, 0
		if strings.Contains(name, "y") {
			limit, axis = height, 1
		}
		check(name, at+shift[axis], limit)
		if more, ok := number(e, extent); ok && extent != "" {
			check(name, at+shift[axis]+more, limit)
		}
	}
}

// arrows counts the lines with a head.
func arrows(all map[string][]xml.StartElement) (n int) {
	for _, e := range all["line"] {
		for _, a := range e.Attr {
			if a.Name.Local == "marker-end" {
				n++
			}
		}
	}
	return n
}

// The pictures of the article's examples and of liars equal those that were reviewed.
func TestPictures(t *testing.T) {
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	a, f, l, c, r := article(), figure3(), liars(), crashed(), random(1)
	of := func(p play) reading.TreeOptions {
		return reading.TreeOptions{Style: p.style, Title: "Information tree of P2"}
	}
	both := func(p play) string {
		d := p.diagram()
		return figureSVG(&d, p.tree(1), of(p))
	}
	for name, picture := range map[string]string{
		"article.svg":  both(a),
		"figure3.svg":  treeSVG(f.tree(1), of(f)),
		"liars.svg":    both(l),
		"crashed.svg":  diagramSVG(c.diagram()),
		"bysender.svg": diagramSVG(r.diagram()),
		"collapse.svg": treeSVG(r.tree(1), of(r)),
	} {
		well(t, picture)
		golden(t, name, picture)
	}
}

// messages counts the messages that arrived at another process, and the missing ones.
func messages(rounds []reading.Round) (came, missing int) {
	for _, r := range rounds {
		for _, said := range r.Said {
			for _, to := range said.To {
				switch {
				case said.Total == 0:
					missing++
				case to != said.From:
					came++
				}
			}
		}
	}
	return came, missing
}

// everyone returns the first n processes.
func everyone(n int) (ids []parley.ID) {
	for id := range parley.ID(n) {
		ids = append(ids, id)
	}
	return ids
}

// Each message between two processes is one arrow, including round 2 of the article's example: 6 + 30 + 30.
func TestArrows(t *testing.T) {
	p := article()
	if n := arrows(well(t, diagramSVG(p.diagram()))); n != 66 {
		t.Errorf("%d arrows, want 66", n)
	}
	want, _ := messages(liars().rounds())
	all := well(t, diagramSVG(liars().diagram()))
	if n := arrows(all); n != want {
		t.Errorf("%d arrows, want %d", n, want)
	}
	p = crashed()
	crosses := strings.Count(diagramSVG(p.diagram()), "l6,6 m0,-6 l-6,6") - 1 // and one in the legend
	_, missing := messages(p.rounds())
	if crosses != missing || missing != 3+5 {
		t.Errorf("%d crosses for %d missing messages", crosses, missing)
	}
}

// Beyond 400 arrows there is a fat one for each sender, with its count, and many processes and rounds are summed up:
// nothing is refused and no message is uncounted.
func TestBigDiagram(t *testing.T) {
	d := draw.Diagram{Style: reading.Style{Faulty: parley.SetOf(3, 100)}}
	const n, rounds = 128, 12
	for id := range parley.ID(n) {
		d.Lives = append(d.Lives, reading.Outcome{Process: id, Role: "correct", Decides: []byte("1")})
	}
	for r := range rounds {
		round := reading.Round{Number: r}
		for id := range parley.ID(n) {
			round.Said = append(round.Said, reading.Said{
				From: id, To: everyone(n), Values: []reading.Share{{Value: "1", Rows: 3}}, Total: 3, Lie: id == 3,
			})
		}
		d.Rounds = append(d.Rounds, round)
	}
	picture := diagramSVG(d)
	all := well(t, picture)
	if arrows(all) != 0 {
		t.Error("single arrows are left")
	}
	for _, want := range []string{
		">384<", ">49,152<", ">… 97 more<", ">P4<", ">P101<", ">37,248<", ">a lie that the trace shows<", ">Round 11<", ">5 more<",
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("no %s", want)
		}
	}
	if len(picture) > 300_000 {
		t.Errorf("%d bytes", len(picture))
	}
	// Exactly at the limit each arrow is drawn.
	small := draw.Diagram{Lives: d.Lives[:21], Rounds: make([]reading.Round, 1)}
	for id := range parley.ID(20) {
		to := slices.Delete(everyone(21), int(id), int(id)+1)
		small.Rounds[0].Said = append(small.Rounds[0].Said, reading.Said{From: id, To: to, Rows: []string{"x"}, Total: 1})
	}
	if got := arrows(well(t, diagramSVG(small))); got != 400 {
		t.Errorf("%d arrows, want 400", got)
	}
	small.Rounds[0].Said = append(small.Rounds[0].Said, reading.Said{From: 20, To: []parley.ID{0}, Total: 1})
	if got := arrows(well(t, diagramSVG(small))); got != 0 {
		t.Errorf("%d arrows, want none", got)
	}
}

// Names, values and titles may contain anything.
func TestHostileText(t *testing.T) {
	evil := `</text><script>alert("1")</script>&amp;'` + "\x00\x1b\xff\u2028"
	name := func(id parley.ID) string { return fmt.Sprint(evil, id) }
	s := reading.Style{Name: name, Faulty: parley.SetOf(1)}
	d := draw.Diagram{Style: s, Rounds: []reading.Round{{Title: evil}}}
	for id := range parley.ID(4) {
		d.Lives = append(d.Lives, reading.Outcome{Process: id, Role: evil, Starts: []byte(evil), Decides: []byte(evil)})
		d.Rounds[0].Said = append(d.Rounds[0].Said, reading.Said{
			From: id, To: []parley.ID{(id + 1) % 4}, Rows: []string{evil}, Total: 1, Values: []reading.Share{{Value: evil, Rows: 1}},
		})
	}
	tree := newFake(4, 1, func([]parley.ID) []byte { return []byte(evil) })
	o := reading.TreeOptions{Style: s, Title: evil}
	for _, picture := range []string{
		diagramSVG(d), string(svg.File(figure(draw.Heading{Title: evil, Subtitle: evil}, &d, tree, o))), treeSVG(tree, o),
	} {
		all := well(t, picture)
		if len(all["script"]) != 0 || strings.ContainsRune(picture, 0) || strings.ContainsRune(picture, '\x1b') {
			t.Error("text got through as it is")
		}
	}
}

// Empty pictures are valid.
func TestEmptyPictures(t *testing.T) {
	well(t, diagramSVG(draw.Diagram{}))
	well(t, diagramSVG(draw.Diagram{Lives: make([]reading.Outcome, 1)}))
	well(t, treeSVG(newFake(2, 0, ones), reading.TreeOptions{}))
	well(t, treeSVG(newFake(3, 0, func([]parley.ID) []byte { return nil }), reading.TreeOptions{}))
}

// Pictures stay within their width for systems of all sizes.
func TestPictureSizes(t *testing.T) {
	for n := 2; n <= 40; n += 1 + n/6 {
		for m := range min(4, n-1) {
			all := well(t, treeSVG(newFake(n, m, mixed), reading.TreeOptions{Style: reading.Style{Faulty: parley.SetOf(1)}}))
			if w, _ := number(all["svg"][0], "width"); w > 1000 {
				t.Errorf("n=%d m=%d: a tree of %d pixels", n, m, w)
			}
		}
		var d draw.Diagram
		for r := range min(3, n) {
			d.Rounds = append(d.Rounds, reading.Round{Number: r})
		}
		for id := range parley.ID(n) {
			d.Lives = append(d.Lives, reading.Outcome{Process: id, Role: "correct"})
			for to := range parley.ID(n) {
				said := &d.Rounds[int(to)%3].Said
				*said = append(*said, reading.Said{From: id, To: []parley.ID{to}, Rows: []string{"{1,2}"}, Total: 1})
			}
		}
		all := well(t, diagramSVG(d))
		if w, _ := number(all["svg"][0], "width"); w > 1000 {
			t.Errorf("n=%d: a diagram of %d pixels", n, w)
		}
	}
}
