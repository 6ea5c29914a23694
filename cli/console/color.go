package console

import "fmt"

// colors are the values of --color. The first is the default.
const (
	autoColor   = "auto"
	alwaysColor = "always"
	neverColor  = "never"
)

// colorFlag parses --color.
type colorFlag string

// Set and String and Type make it a flag.
func (c *colorFlag) Set(text string) error {
	if text != autoColor && text != alwaysColor && text != neverColor {
		return fmt.Errorf("allowed are %s, %s and %s", autoColor, alwaysColor, neverColor)
	}
	*c = colorFlag(text)
	return nil
}

func (c *colorFlag) String() string { return string(*c) }

// Type is what the help calls the value.
func (c *colorFlag) Type() string { return "string" }
