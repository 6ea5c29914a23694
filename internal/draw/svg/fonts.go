package svg

import (
	"fmt"

	"parley/internal/draw/scene"
)

const (
	sans = `system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif`
	mono = `ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace`
)

// fills are the colors of the roles of text that are not in the color of text.
var fills = map[string]string{"subtitle": "faint", "note": "faint", "sublead": "faint", "value": "value"}

// fontOf returns the style of a role's text.
func fontOf(role string) string {
	f := scene.Fonts[role]
	style := fmt.Sprintf("font-size:%dpx", f.Size)
	if f.Bold {
		style += ";font-weight:600"
	}
	if f.Mono {
		style += ";font-family:" + mono
	}
	if fill := fills[role]; fill != "" {
		style += ";fill:$" + fill
	}
	return style
}
