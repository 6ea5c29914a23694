package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley/cli/console"
	"parley/cluster/nodefile"
	"parley/internal/must"
	"parley/trace"
)

// pages returns the generated parts of the pages in docs/reference. It fails by must.
func (r *reference) pages() map[string]map[string]string {
	lines := trace.Lines()
	return map[string]map[string]string{
		"cli.md":           {"commands": commandsPart(r.commands)},
		"configuration.md": {"keys": r.keysPart()},
		"metrics.md":       {"metrics": metricsPart(r.root)},
		"api.md":           {"services": servicesPart(r.protos), "messages": messagesPart(r.protos)},
		"protocols.md":     {"protocols": protocolsPart()},
		"errors.md": {
			"exit statuses": statusesPart(), "codes": r.codesPart(),
			"keys of an error": keysOf(r.outputSchema(failure)["properties"].(schema)["error"].(schema)),
		},
		"formats.md": {
			"outputs": r.outputsPart(), "header": keysOf(r.typeSchema(reflect.TypeOf(lines[0]))),
			"event": keysOf(r.typeSchema(reflect.TypeOf(lines[1]))), "gap": keysOf(r.typeSchema(reflect.TypeOf(lines[2]))),
			"footer": keysOf(r.typeSchema(reflect.TypeOf(lines[3]))),
		},
	}
}

// table returns a Markdown table.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head)
	line(slices.Repeat([]string{"---"}, len(head)))
	for _, row := range rows {
		for i := range row {
			row[i] = strings.ReplaceAll(strings.Join(strings.Fields(row[i]), " "), "|", `\|`)
		}
		line(row)
	}
	return b.String()
}

// code returns words as code, with commas between.
func code(words ...string) string {
	if len(words) == 0 {
		return ""
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

// statusesPart is the table of exit statuses.
func statusesPart() string {
	var rows [][]string
	for _, s := range console.Statuses {
		rows = append(rows, []string{fmt.Sprint(s.Status), s.Means})
	}
	return table([]string{"status", "meaning"}, rows)
}

// codesPart is the table of the API's codes, which the comment at the top of error.proto has.
func (r *reference) codesPart() string {
	var rows [][]string
	for _, f := range r.protos {
		for line := range strings.Lines(f.head) {
			cells := regexp.MustCompile(`\s{2,}`).Split(strings.TrimRight(line, "\n"), -1)
			switch {
			case len(cells) == 4 && cells[0] == "" && cells[1] != "code":
				rows = append(rows, []string{code(cells[1]), cells[2], cells[3]})
			case len(rows) > 0 && len(cells) > 1 && cells[0] == "" && f.name == "error.proto": // a continued row
				last := rows[len(rows)-1]
				for i, cell := range cells[1:] {
					last[i+1] += " " + cell
				}
			}
		}
	}
	return table([]string{"code", "when", "outcome"}, rows)
}

// outputsPart is the table of the JSON outputs of commands.
func (r *reference) outputsPart() string {
	commands := make(map[string][]string)
	var names []string
	for _, cmd := range everyCommand(r.commands) {
		for _, p := range console.Forms(cmd.Flags()) {
			name := cmd.CommandPath()
			if parent := cmd.Parent().Name(); parent == "run" || parent == "explore" {
				name = cmd.Parent().CommandPath()
			}
			if !slices.Contains(names, p.Schema) {
				names = append(names, p.Schema)
			}
			if !slices.Contains(commands[p.Schema], name) {
				commands[p.Schema] = append(commands[p.Schema], name)
			}
		}
	}
	var rows [][]string
	for _, name := range names {
		rows = append(rows, []string{code(commands[name]...), fmt.Sprintf("[%s](schema/%[1]s.json)", name)})
	}
	return table([]string{"command", "schema"}, rows)
}

// keysOf is the table of the keys of an object.
func keysOf(s schema) string {
	required, _ := s["required"].([]string)
	properties := s["properties"].(schema)
	var rows [][]string
	for _, key := range sortedKeys(properties) {
		of := properties[key].(schema)
		kind, _ := of["type"].(string)
		text, _ := of["description"].(string)
		always := ""
		if slices.Contains(required, key) {
			always = "yes"
		}
		rows = append(rows, []string{code(key), kind, always, text})
	}
	return table([]string{"key", "type", "always there", "meaning"}, rows)
}

func sortedKeys(s schema) []string {
	var keys []string
	for key := range s { // order: sorted below
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// keyLine is a line of a configuration with a key. In the example some are comments.
var keyLine = regexp.MustCompile(`^(?:# )?( *(?:- )?)([a-z_]+):`)

// keysPart is the table of the keys of a node's configuration, from the commented example. It fails by must.
func (r *reference) keysPart() string {
	known, required := nodefile.Keys()
	text := string(must.Get(os.ReadFile(filepath.Join(r.root, "cluster/nodefile/example.yaml"))))
	var rows [][]string
	var path, comment []string
	var indents []int
	began := false // the comment has no key yet
	below := false // the last line was a key, and lines that are indented in comments are keys below it
	for line := range strings.Lines(text) {
		m := keyLine.FindStringSubmatch(line)
		if said, ok := strings.CutPrefix(line, "#"); ok &&
			(m == nil || m[1] == "" && !slices.Contains(known, m[2]) || m[1] != "" && !below) {
			if !began {
				comment = nil
			}
			comment, began, below = append(comment, said), true, false
			continue
		}
		if m == nil {
			began, below = false, false
			continue
		}
		for len(indents) > 0 && indents[len(indents)-1] >= len(m[1]) {
			indents, path = indents[:len(indents)-1], path[:len(path)-1]
		}
		indents, path = append(indents, len(m[1])), append(path, m[2])
		name := code(strings.Join(path, "."))
		if len(path) == 1 {
			known = slices.DeleteFunc(known, func(key string) bool { return key == m[2] })
			if slices.Contains(required, m[2]) {
				name += " (required)"
			}
		}
		switch {
		case began:
			rows = append(rows, []string{name, strings.Join(comment, " ")})
		case !strings.Contains(rows[len(rows)-1][0], name):
			rows[len(rows)-1][0] += ", " + name
		}
		began, below = false, true
	}
	if len(known) > 0 {
		must.Failf("the example of a configuration lacks %s", strings.Join(known, ", "))
	}
	return table([]string{"keys", "meaning"}, rows)
}

// listedProtocol is what the page has of the output of "parley list --json".
type listedProtocol struct {
	Name, Title, Paper, Timing, Faults, Bound string
	Properties                                []string
}

// protocolsPart is the table of protocols.
func protocolsPart() string {
	var list struct{ Protocols []listedProtocol }
	must.Do(json.Unmarshal(printed("list", "--json"), &list))
	var rows [][]string
	for _, p := range list.Protocols {
		rows = append(rows, []string{
			code(p.Name), p.Title, p.Timing, p.Faults, p.Bound, strings.Join(p.Properties, ", "), p.Paper,
		})
	}
	return table([]string{"protocol", "what it is", "timing", "faults", "processes needed", "properties", "source"}, rows)
}

// everyCommand returns a command and all below it that are not hidden, in order.
func everyCommand(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			all = append(all, everyCommand(sub)...)
		}
	}
	return all
}
