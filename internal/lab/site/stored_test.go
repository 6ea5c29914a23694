package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"parley/catalog"
	"parley/docs/scenarios"
	"parley/internal/lab/engine"
)

// A stored answer is, byte for byte, what an engine answers that has answered nothing before.
func TestStoredAnswersAreOfTheEngine(t *testing.T) {
	answers := func() *engine.Engine { return engine.New(catalog.All(), scenarios.Files, "a version") }
	files := storedAnswers(answers())
	for name, file := range files {
		var all map[string]json.RawMessage
		if err := json.Unmarshal(file, &all); err != nil || len(all) == 0 {
			t.Fatalf("%s: %d answers, %v", name, len(all), err)
		}
		e := answers()
		for question, answer := range all {
			if want := e.Answer(context.Background(), []byte(question), nil); string(answer) != string(want) {
				t.Errorf("%s: %.200s has the answer %.200s, want %.200s", name, question, answer, want)
			}
		}
	}
	scenarios, err := scenarios.Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range scenarios {
		base, is := strings.CutSuffix(entry.Name(), ".yaml")
		if _, stored := files[base+".json"]; is && !stored {
			t.Errorf("the gallery has the scenario %s, but no answers about it are stored", base)
		}
	}
}

// Another answer, or another version of the program, has another folder.
func TestStoredFolderIsOfItsAnswers(t *testing.T) {
	var names []string
	for _, files := range []map[string][]byte{
		{"a.json": []byte("1"), "b.json": []byte("2")}, {"a.json": []byte("1"), "b.json": []byte("3")},
		{"a.json": []byte("12"), "b.json": nil}, {"a.json": []byte("1"), "c.json": []byte("2")},
	} {
		name, in := storedFolder(files)
		if slices.Contains(names, name) || len(in) != len(files) || in[name+"/a.json"] == nil {
			t.Errorf("%v is stored in %s", files, name)
		}
		names = append(names, name)
	}
}
