package console

import (
	"encoding/json"
)

// PrintJSON prints a value as indented JSON.
func (a *App) PrintJSON(v any) error {
	enc := json.NewEncoder(a.Out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// PrintEscaped is PrintJSON with <, > and & written as escapes in strings.
func (a *App) PrintEscaped(v any) error {
	enc := json.NewEncoder(a.Out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// PrintLine prints JSON on one line.
func (a *App) PrintLine(v any) error {
	enc := json.NewEncoder(a.Out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
