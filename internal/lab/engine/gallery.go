package engine

import (
	"io/fs"
	"strings"

	"parley/docs/tutorials/learn"
)

// About is the answer to "about": what there is to see.
type About struct {
	Version   string            `json:"version"`
	Protocols []ProtocolSummary `json:"protocols"`
	Gallery   []Card            `json:"gallery"`
	Lessons   []Lesson          `json:"lessons"` // in their order
}

// Lesson is a lesson that explains scenarios of the gallery.
type Lesson struct {
	Number   string `json:"number"` // as in Card.Lesson
	Title    string `json:"title"`
	Question string `json:"question"` // that it answers
	file     string
}

// ProtocolSummary is a protocol in a list.
type ProtocolSummary struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Source string `json:"source"`
	Timing string `json:"timing"`
	Faults string `json:"faults"`
}

// Card is a scenario of the gallery.
type Card struct {
	Name     string   `json:"name"` // of the file, without its extension
	Lesson   string   `json:"lesson"`
	Shows    string   `json:"shows"`
	Slide    string   `json:"slide"`
	Protocol string   `json:"protocol"`
	Words    string   `json:"words"`  // what the head of the file says
	Breaks   []string `json:"breaks"` // the properties that the run breaks
	Faulty   bool     `json:"faulty"` // a process lies, crashes or omits messages
	Text     string   `json:"text"`   // the file
}

// gallery reads the table of the scenarios and the head of each.
func gallery(scenarios fs.FS) ([]Card, error) {
	table, err := fs.ReadFile(scenarios, "README.md")
	if err != nil {
		return nil, err
	}
	cards := []Card{}
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(line, "|")
		if len(cells) < 6 || !strings.Contains(cells[2], ".yaml](") {
			continue
		}
		file := linked(cells[2])
		b, err := fs.ReadFile(scenarios, file)
		if err != nil {
			return nil, err
		}
		c := Card{
			Name: strings.TrimSuffix(file, ".yaml"), Lesson: linked(cells[1]), Shows: strings.TrimSpace(cells[3]),
			Slide: strings.TrimSpace(cells[4]), Breaks: []string{}, Text: string(b),
		}
		c.readHead()
		cards = append(cards, c)
	}
	return cards, nil
}

// lessons reads the table of the lessons.
func lessons() []Lesson {
	all := []Lesson{}
	for line := range strings.Lines(learn.Index) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], ".md)") {
			continue
		}
		number, title, _ := strings.Cut(linked(cells[1]), " ")
		_, file, _ := strings.Cut(cells[1], "](")
		file, _, _ = strings.Cut(file, ")")
		all = append(all, Lesson{number, title, strings.TrimSpace(cells[2]), file})
	}
	return all
}

// linked returns the text of a link, [TEXT](TARGET).
func linked(cell string) string {
	_, text, _ := strings.Cut(cell, "[")
	text, _, _ = strings.Cut(text, "]")
	return text
}

// readHead reads the comments at the beginning of a scenario, the expected outcomes among them, and its keys.
func (c *Card) readHead() {
	var words []string
	only := true // no line "with:" so far: what is expected is expected of the run as it is
	for line := range strings.Lines(c.Text) {
		line = strings.TrimSpace(line)
		said, comment := strings.CutPrefix(line, "# ")
		expected, expects := strings.CutPrefix(said, "expect: ")
		name, value, _ := strings.Cut(line, ":")
		switch {
		case comment && expects:
			if property, outcome, _ := strings.Cut(expected, ": "); only && strings.HasSuffix(outcome, "broken") {
				c.Breaks = append(c.Breaks, property)
			}
		case comment && strings.HasPrefix(said, "with: "):
			only = false
		case comment && !strings.HasPrefix(said, "depends: "):
			words = append(words, said)
		case name == "protocol":
			c.Protocol = strings.TrimSpace(value)
		case name == "faulty" || name == "crashes":
			c.Faulty = true
		}
	}
	if len(words) > 1 {
		c.Words = strings.Join(words[1:], " ") // the first line names the source
	}
}
