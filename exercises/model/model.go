// Package model holds the model solutions of the exercises. "parley exercise new" writes them with holes.
package model

import "embed"

// Sources are the solutions: NAME/NAME.go. A line "// hole:" begins a part that a student writes. The comment says what
// it does, and lines that begin with "// |" are what takes its place. A line "// end of hole" ends it.
//
//go:embed om fifo priorities twophase
var Sources embed.FS
