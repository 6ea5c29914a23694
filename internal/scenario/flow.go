package scenario

import (
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Flow returns a YAML value on one line, as a flag has it.
func Flow(n ast.Node) string {
	if pairs, ok := Pairs(n); ok {
		var parts []string
		for _, pair := range pairs {
			parts = append(parts, quoted(pair.Key.GetToken().Value)+": "+Flow(pair.Value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	if n, ok := n.(*ast.SequenceNode); ok {
		var parts []string
		for _, v := range n.Values {
			parts = append(parts, Flow(v))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return quoted(n.GetToken().Value)
}

// quoted quotes a text that is not a single word of YAML.
func quoted(text string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-._/%+", c)
	}
	if text != "" && text[0] != '-' && strings.IndexFunc(text, func(c rune) bool { return !plain(c) }) < 0 {
		return text
	}
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return text
	}
	return strconv.Quote(text)
}
