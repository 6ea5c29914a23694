package scene

import "parley/internal/draw/prose"

// Font is the font of the text of a role. What lays a picture out needs it as much as what writes it.
type Font struct {
	Size       int // in pixels
	Mono, Bold bool
}

// Fonts are the fonts of all roles of text.
var Fonts = map[string]Font{
	"title":    {Size: 18, Bold: true},
	"subtitle": {Size: 13},
	"head":     {Size: 13, Bold: true},
	"note":     {Size: 12},
	"verdict":  {Size: 12},
	"name":     {Size: 12, Mono: true, Bold: true},
	"io":       {Size: 11, Mono: true, Bold: true},
	"words":    {Size: 11, Mono: true},
	"says":     {Size: 11, Mono: true},
	"value":    {Size: 11, Mono: true, Bold: true},
	"state":    {Size: 12, Bold: true},

	"tree-title": {Size: 15, Bold: true},
	"actor-name": {Size: 14, Mono: true, Bold: true},
	// Paragraphs.
	"lead":      {Size: 18, Bold: true},
	"sublead":   {Size: 13},
	"case":      {Size: 15, Bold: true},
	"about":     {Size: 13},
	"sees-head": {Size: 13, Bold: true},
	"sees":      {Size: 12, Mono: true},
}

// Wide returns about how wide a text of a role is, in pixels, and rather too much than too little.
func Wide(role, text string) int {
	f := Fonts[role]
	share := 60 // of the size, in percent, for each character
	switch {
	case f.Mono:
		share = 62
	case f.Bold:
		share = 69
	}
	return (prose.Width(text)*f.Size*share + 99) / 100
}
