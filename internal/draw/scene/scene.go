// Package scene describes a picture as data: marks with positions. Each mark says which event or process it shows.
// Package svg writes scenes as files and as parts of a web page. Scenes also have a JSON form, for programs that
// draw the picture themselves.
package scene

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley"
)

// Scene is a picture. Lengths are in whole pixels, so that the same data give the same bytes on every computer.
type Scene struct {
	Title         string
	About         string // what else a reader who does not see the picture should know
	Width, Height int
	Marks         []Mark // later marks cover earlier ones
}

// Shape is the form of a mark.
type Shape uint8

// The shapes. A group is marks with coordinates of their own.
const (
	Group Shape = iota
	Rect
	Line
	Circle
	Path
	Text
)

var shapes = []string{"group", "rect", "line", "circle", "path", "text"}

func (s Shape) String() string { return shapes[s] }

// MarshalText returns the name of a shape.
func (s Shape) MarshalText() ([]byte, error) { return []byte(shapes[s]), nil }

// Ink is the colors of a value: 0 for none or several values, 1 and 2 for the values 0 and 1, and up to Inks for
// others.
type Ink uint8

// Inks is the number of values with different colors.
const Inks = 8

// Mark is one mark. Its role, its ink, and whether it is a lie or belongs to a faulty process determine its look.
type Mark struct {
	Shape Shape  `json:"shape"`
	Role  string `json:"role"`
	// Ref refers to what the mark shows: e147 is event 147 of the trace, P2 a process, r1/P5/P2 the message of round
	// 1 from P5 to P2, r1/P5 all messages of P5 in that round, r1 the round, and P2/1.5 a node of P2's information
	// tree. If there are several runs it begins with the run, as in c2/P2.
	Ref string `json:"ref,omitempty"`
	// Tip says in words what the mark shows, for a reader who points at it.
	Tip    string `json:"tip,omitempty"`
	Value  string `json:"value,omitempty"` // the value shown
	Ink    Ink    `json:"ink,omitempty"`
	Lie    bool   `json:"lie,omitempty"`
	Faulty bool   `json:"faulty,omitempty"`
	// Since and Until are event numbers of the trace: what the mark shows begins with the one and has ended with the
	// other. 0 means the beginning, or no end.
	Since uint64 `json:"since,omitempty"`
	Until uint64 `json:"until,omitempty"`

	// X and Y are a corner, an end, a center, or the position of text. W and H are the extent, or the offset to the
	// other end of a line.
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w,omitempty"`
	H int `json:"h,omitempty"`
	// Path is in SVG notation, relative to X and Y.
	Path  string `json:"path,omitempty"`
	Arrow bool   `json:"arrow,omitempty"` // the line ends with a head

	Text  string `json:"text,omitempty"`
	Parts []Part `json:"parts,omitempty"` // the text, if it has several colors
	Align string `json:"align,omitempty"` // middle or end

	Marks []Mark `json:"-"` // of a group
}

// Part is a part of a text.
type Part struct {
	Text string `json:"text"`
	Tone string `json:"tone"`          // text, faint, fault, or ink
	Ink  Ink    `json:"ink,omitempty"` // for the tone ink
	Gap  int    `json:"gap,omitempty"` // before it
}

// Palette assigns inks to values. If there are more values than inks, the other inks are reused.
type Palette struct{ others []string }

// NewPalette assigns inks to the values of a picture.
func NewPalette(values []string) Palette {
	others := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" || v == "0" || v == "1" })
	slices.Sort(others)
	return Palette{slices.Compact(others)}
}

// Has reports whether a value other than 0 and 1 has an ink of its own or one that it shares.
func (p Palette) Has(value string) bool { return slices.Contains(p.others, value) }

// Of returns the ink of a value. The ink of several values, or of none, is 0.
func (p Palette) Of(value string) Ink {
	switch value {
	case "":
		return 0
	case "0":
		return 1
	case "1":
		return 2
	}
	nth, known := slices.BinarySearch(p.others, value)
	if !known {
		nth = 0
	}
	return Ink(3 + nth%(Inks-2))
}

// Process, Event, Round, Message and Node return references. They name processes by number, whatever their names in a
// picture.
func Process(id parley.ID) string { return "P" + strconv.Itoa(int(id)+1) }

// Event refers to an event of the trace.
func Event(number uint64) string { return "e" + strconv.FormatUint(number, 10) }

// Round refers to a round.
func Round(round int) string { return fmt.Sprintf("r%d", round) }

// Sender refers to what a process sends in a round.
func Sender(round int, from parley.ID) string { return Round(round) + "/" + Process(from) }

// Message refers to what a process sends to another one in a round.
func Message(round int, from, to parley.ID) string { return Sender(round, from) + "/" + Process(to) }

// Node refers to a node of the information tree of a process.
func Node(of parley.ID, path []parley.ID) string {
	steps := make([]string, len(path))
	for i, id := range path {
		steps[i] = strconv.Itoa(int(id) + 1)
	}
	return Process(of) + "/" + strings.Join(steps, ".")
}

// JSON returns the scene for programs: all marks in one list, one line for each, without groups. The format version
// is 1.
func (s Scene) JSON() []byte {
	out := fmt.Appendf(nil, `{"scene":1,"title":%s,"about":%s,"width":%d,"height":%d,"marks":[`,
		marshalled(s.Title), marshalled(s.About), s.Width, s.Height)
	for i, m := range flat(nil, s.Marks, 0, 0) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, '\n'), marshalled(m)...)
	}
	return append(out, "\n]}\n"...)
}

func marshalled(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // nothing in a scene can fail to marshal
	}
	return b
}

// flat adds marks with groups replaced by their marks.
func flat(out, marks []Mark, x, y int) []Mark {
	for _, m := range marks {
		m.X, m.Y = m.X+x, m.Y+y
		if m.Shape == Group {
			out = flat(out, m.Marks, m.X, m.Y)
			continue
		}
		out = append(out, m)
	}
	return out
}
