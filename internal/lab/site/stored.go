package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"parley/internal/draw"
	"parley/internal/lab/engine"
	"parley/internal/must"
)

// asked is a question of the page about a run, with its fields in the order in which the page writes them. An answer is
// found by the bytes of its question, so that the page shows no answer to another question.
type asked struct {
	Ask   string  `json:"ask"`
	At    *uint64 `json:"at,omitempty"`
	Ref   string  `json:"ref,omitempty"`
	From  uint64  `json:"from,omitempty"`
	Count uint64  `json:"count,omitempty"`
	Run   struct {
		Scenario string   `json:"scenario"`
		Flags    struct{} `json:"flags"`
	} `json:"run"`
	Name string `json:"name,omitempty"`
	Of   string `json:"of,omitempty"`
}

// storyPage is the number of lines that the page asks for at a time.
const storyPage = 50

// storedFolder puts files into a folder whose name has a hash of all of them, so that no page finds the answers of
// another version in it.
func storedFolder(files map[string][]byte) (name string, in map[string][]byte) {
	sum := sha256.New()
	for _, file := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(sum, "%s %d\n%s", file, len(files[file]), files[file])
	}
	name = "answers-" + base32.StdEncoding.EncodeToString(sum.Sum(nil)[:5])
	in = make(map[string][]byte)
	for file, b := range files { // order: each file gets its name by itself
		in[name+"/"+file] = b
	}
	return name, in
}

// storedAnswers returns files with answers of the engine, by name: the list of what there is to see, and for each run
// of the gallery what the page first shows of it. A file is a JSON object with the questions as keys. It fails by must.
func storedAnswers(e *engine.Engine) map[string][]byte {
	const question = `{"ask":"about"}`
	about := answers{e: e}
	gallery := given[engine.About](&about, []byte(question)).Gallery
	files := map[string][]byte{"about.json": about.file()}
	for _, card := range gallery {
		files[card.Name+".json"] = firstAnswers(e, card.Text)
	}
	return files
}

// firstAnswers returns the file with what the page first shows of the run of a scenario. It fails by must.
func firstAnswers(e *engine.Engine, scenario string) []byte {
	all := answers{e: e}
	of := func(q asked) []byte {
		q.Run.Scenario = scenario
		return written(q)
	}
	run := given[engine.RunAnswer](&all, of(asked{Ask: "run"}))
	for _, name := range run.Pictures {
		if name != draw.TreePicture {
			all.add(of(asked{Ask: "picture", Name: name}))
		}
	}
	source := slices.IndexFunc(run.Processes, func(p engine.Process) bool { return p.Source })
	owner := slices.IndexFunc(run.Processes, func(p engine.Process) bool { return p.Name == run.Owner })
	if run.Owner != "" {
		all.add(of(asked{Ask: "picture", Name: draw.TreePicture, Of: run.Owner}))
		if source >= 0 {
			all.add(of(asked{Ask: "vote", Ref: run.Processes[owner].Ref + "/" + strconv.Itoa(source+1)}))
		}
	}
	if len(run.Rounds) > 0 {
		all.add(of(asked{Ask: "tables"}))
	}
	all.add(of(asked{Ask: "waiting"}))
	events := run.Report.Events
	all.add(of(asked{Ask: "state", At: &events}))
	for from := uint64(1); from <= events; from += storyPage {
		all.add(of(asked{Ask: "story", From: from, Count: min(storyPage, events-from+1)}))
	}
	return all.file()
}

// answers are questions with their answers, in the order in which they were asked.
type answers struct {
	e   *engine.Engine
	all bytes.Buffer
}

// add asks a question, and returns the answer. It fails by must.
func (a *answers) add(question []byte) []byte {
	answer := a.e.Answer(context.Background(), question, nil)
	if bytes.HasPrefix(answer, []byte(`{"error":{`)) {
		must.Failf("the engine answers %.200s with %s", question, answer)
	}
	if a.all.Len() > 0 {
		a.all.WriteByte(',')
	}
	a.all.WriteString("\n")
	a.all.Write(written(string(question)))
	a.all.WriteByte(':')
	a.all.Write(answer)
	return answer
}

// given asks a question, and returns the answer as the engine meant it. It fails by must.
func given[A any](a *answers, question []byte) (answer A) {
	must.Do(json.Unmarshal(a.add(question), &answer))
	return answer
}

// file returns the questions and their answers as a JSON object, in which the answers are the bytes of the engine.
func (a *answers) file() []byte { return []byte("{" + a.all.String() + "\n}\n") }

// written returns a value as JSON, with the bytes that JSON.stringify gives. It fails by must.
func written(v any) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	must.Do(enc.Encode(v))
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
