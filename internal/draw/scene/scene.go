// Package scene is a picture before it is written: marks in their places, each with what
// it is a mark of. Package svg writes scenes, as files and as parts of a page; JSON gives
// them to programs that draw for themselves.
package scene

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley"
)

// Scene is a picture. Lengths are in whole pixels, so that the same data give the same
// bytes on every machine.
type Scene struct {
	Title         string
	Width, Height int
	Marks         []Mark // what comes later lies above
}

// Shape is the form of a mark.
type Shape uint8

// The shapes. A group is marks in a system of coordinates of their own.
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

// MarshalText is the name of a shape.
func (s Shape) MarshalText() ([]byte, error) { return []byte(shapes[s]), nil }

// Ink stands for a value's colours: 0 for none or for several, 1 and 2 for the values 0
// and 1, and up to Inks for others.
type Ink uint8

// Inks is how many values are told apart by colour.
const Inks = 8

// Mark is one mark. What it looks like follows from its role, its ink, and whether it is
// a lie or of a faulty process.
type Mark struct {
	Shape Shape  `json:"shape"`
	Role  string `json:"role"`
	// Ref is what the mark is a mark of: e147 is event 147 of the trace, P2 a process,
	// r1/P5/P2 the message of round 1 from P5 to P2, r1/P5 all of P5's in that round, r1
	// the round, and P2/1.5 a node of P2's information tree. Where there are several runs it
	// begins with the one, as in c2/P2.
	Ref    string `json:"ref,omitempty"`
	Value  string `json:"value,omitempty"` // that it speaks of
	Ink    Ink    `json:"ink,omitempty"`   // of that value
	Lie    bool   `json:"lie,omitempty"`
	Faulty bool   `json:"faulty,omitempty"`
	// Since and Until are events of the trace by number: what the mark shows begins with
	// the one and has come to its end with the other. 0 is the beginning, and no end.
	Since uint64 `json:"since,omitempty"`
	Until uint64 `json:"until,omitempty"`

	// X and Y are a corner, an end, a centre, or where text stands; W and H the extent, to
	// the other end of a line.
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w,omitempty"`
	H int `json:"h,omitempty"`
	// Path is in the notation of SVG, from X and Y.
	Path  string `json:"path,omitempty"`
	Arrow bool   `json:"arrow,omitempty"` // with a head at the end of the line

	Text  string `json:"text,omitempty"`
	Parts []Part `json:"parts,omitempty"` // the text, if it is not of one colour
	Align string `json:"align,omitempty"` // middle or end

	Marks []Mark `json:"-"` // of a group
}

// Part is a part of a text.
type Part struct {
	Text string `json:"text"`
	Tone string `json:"tone"`          // text, faint, fault, or ink
	Ink  Ink    `json:"ink,omitempty"` // if that is the tone
	Gap  int    `json:"gap,omitempty"` // before it
}

// Palette gives each value its ink. Where there are more values than inks the last ones
// are used again.
type Palette struct{ others []string }

// NewPalette gives inks to the values of a picture.
func NewPalette(values []string) Palette {
	var p Palette
	for _, v := range values {
		if v != "0" && v != "1" && v != "" && !slices.Contains(p.others, v) {
			p.others = append(p.others, v)
		}
	}
	slices.Sort(p.others)
	return p
}

// Of is the ink of a value; of several values, or of none, it is 0.
func (p Palette) Of(value string) Ink {
	switch value {
	case "":
		return 0
	case "0":
		return 1
	case "1":
		return 2
	}
	return Ink(3 + max(slices.Index(p.others, value), 0)%(Inks-2))
}

// Process, Event, Round, Message and Node are references. They name processes by number,
// whatever a picture calls them.
func Process(id parley.ID) string { return "P" + strconv.Itoa(int(id)+1) }

// Event refers to an event of the trace.
func Event(number uint64) string { return "e" + strconv.FormatUint(number, 10) }

// Round refers to a round, Sender to what a process says in it, and Message to what it
// says to one other.
func Round(round int) string { return fmt.Sprintf("r%d", round) }

// Sender refers to what a process says in a round.
func Sender(round int, from parley.ID) string { return Round(round) + "/" + Process(from) }

// Message refers to what a process says to another one in a round.
func Message(round int, from, to parley.ID) string { return Sender(round, from) + "/" + Process(to) }

// Node refers to a node of the information tree of a process.
func Node(of parley.ID, path []parley.ID) string {
	steps := make([]string, len(path))
	for i, id := range path {
		steps[i] = strconv.Itoa(int(id) + 1)
	}
	return Process(of) + "/" + strings.Join(steps, ".")
}

// JSON writes the scene for programs: all marks in one list, a line each, none of them a
// group. The version of the format is 1.
func (s Scene) JSON() []byte {
	out := fmt.Appendf(nil, `{"scene":1,"title":%s,"width":%d,"height":%d,"marks":[`,
		marshalled(s.Title), s.Width, s.Height)
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
		panic(err) // nothing in a scene can fail
	}
	return b
}

// flat adds marks without their groups.
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
