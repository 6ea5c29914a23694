package console

import (
	"encoding/json"
)

// PrintJSON prints a value as indented JSON.
func (a *App) PrintJSON(v any) error { return a.encode(v, "  ", false) }

// PrintEscaped is PrintJSON with <, > and & written as escapes in strings.
func (a *App) PrintEscaped(v any) error { return a.encode(v, "  ", true) }

// PrintLine prints JSON on one line.
func (a *App) PrintLine(v any) error { return a.encode(v, "", false) }

func (a *App) encode(v any, indent string, escape bool) error {
	enc := json.NewEncoder(a.Out)
	enc.SetIndent("", indent)
	enc.SetEscapeHTML(escape)
	return enc.Encode(v)
}
