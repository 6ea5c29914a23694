package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/parser"

	"parley/cli/console"
	"parley/internal/golden"
	"parley/internal/scenario"
	"parley/run"
)

// The files are what the program makes now. With -update they are written.
func TestReferenceIsCurrent(t *testing.T) {
	if golden.Updating() {
		if err := write("../..", ""); err != nil {
			t.Fatal(err)
		}
	}
	made := newReference("../..").files()
	for name, b := range made {
		old, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil || !bytes.Equal(old, b) {
			t.Errorf("%s is not what the program makes now: \"make reference\" writes it", name)
		}
	}
	have, err := filepath.Glob("../../docs/reference/schema/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range have {
		if made["docs/reference/schema/"+filepath.Base(file)] == nil {
			t.Errorf("%s is no command's: delete it", file)
		}
	}
}

// Every object in a schema either has named keys and no others, or is a map.
func TestSchemasAreClosed(t *testing.T) {
	r := newReference("../..")
	schemas := r.schemas()
	if len(r.used) != len(words) {
		t.Errorf("got %v, want the words of all of %v", r.used, words)
	}
	for name, b := range schemas {
		var s any
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatal(err)
		}
		objects := 0
		var visit func(any)
		visit = func(v any) {
			switch v := v.(type) {
			case []any:
				for _, one := range v {
					visit(one)
				}
			case map[string]any:
				if v["type"] == "object" {
					objects++
					_, isMap := v["additionalProperties"].(map[string]any)
					if v["additionalProperties"] != false && !isMap {
						t.Errorf("%s: an object allows any key: %v", name, v)
					}
				}
				for _, one := range v {
					visit(one)
				}
			}
		}
		visit(s)
		if objects == 0 {
			t.Errorf("%s has no object", name)
		}
	}
}

// The schema of scenarios has the keys that the reader of scenarios allows, in every mapping.
func TestScenarioKeys(t *testing.T) {
	if keys := slices.Sorted(maps.Keys(planSchema)); !slices.Equal(keys, slices.Sorted(slices.Values(scenario.Keys))) {
		t.Errorf("got %q, want %q", keys, scenario.Keys)
	}
	mappings := 0
	check := func(key, text string, s schema) {
		properties, _ := s["properties"].(schema)
		if properties == nil {
			return
		}
		mappings++
		var p run.Plan
		if _, err := parser.ParseBytes([]byte(text), 0); err != nil {
			t.Fatal(err)
		}
		err := scenario.Parse(&p, key, text, nil)
		want := fmt.Sprintf("allowed are %s", strings.Join(sortedKeys(properties), ", "))
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", key, err, want)
		}
	}
	for key, s := range planSchema {
		items, isList := s.(schema)["items"].(schema)
		if isList {
			check(key, "[{surplus: 1}]", items)
		} else {
			check(key, "{surplus: 1}", s.(schema))
		}
	}
	if mappings < 8 {
		t.Errorf("only %d mappings", mappings)
	}
}

// Every command has a manual page with its flags, and the pages are the same each time.
func TestManualPages(t *testing.T) {
	root := newReference("../..").commands
	pages := manualPages(root)
	commands := everyCommand(root)
	if len(pages) != len(commands) || len(commands) < 80 {
		t.Errorf("%d pages for %d commands", len(pages), len(commands))
	}
	for _, cmd := range commands {
		page := string(pages[manualName(cmd)+".1"])
		if !strings.HasPrefix(page, ".TH ") || !strings.Contains(page, "\n.SH NAME\n"+roff(manualName(cmd))+" \\- ") {
			t.Errorf("%s: %.200s", cmd.CommandPath(), page)
		}
		if len(console.Forms(cmd.LocalFlags())) > 0 && !strings.Contains(page, `\-\-json`) {
			t.Errorf("%s has no --json", cmd.CommandPath())
		}
		for i, line := range strings.Split(page, "\n") {
			if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !manualRequest(line) {
				t.Errorf("%s:%d: a text is taken for a request: %s", cmd.CommandPath(), i+1, line)
			}
		}
	}
	if !maps.EqualFunc(pages, manualPages(newReference("../..").commands), bytes.Equal) {
		t.Error("the pages differ from those made before")
	}
	dir := t.TempDir()
	if err := write("../..", dir); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "parley-run-eig.1")); err != nil || !bytes.Equal(b, pages["parley-run-eig.1"]) {
		t.Errorf("%v", err)
	}
}

// manualRequest reports whether a line is one of the requests that the pages use.
func manualRequest(line string) bool {
	return slices.Contains([]string{".TH", ".nh", ".ad", ".SH", ".TP", ".PP", ".nf", ".fi"}, strings.Fields(line)[0])
}
