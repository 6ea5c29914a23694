package conform_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/conform"
)

func vectors(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := conform.Files([]string{"testdata"})
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]byte)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(f)] = b
	}
	return all
}

// The worked cases of the sources, all of them.
func TestVectors(t *testing.T) {
	cases := 0
	for name, b := range vectors(t) {
		r, err := conform.Run(b)
		if err != nil {
			t.Errorf("%s:%v", name, err)
		}
		for _, f := range r.Failed {
			t.Errorf("%s: %s: %s: expected %s, got %s", name, f.Case, f.Key, f.Want, f.Got)
		}
		cases += r.Cases
	}
	if cases < 27 {
		t.Errorf("only %d cases", cases)
	}
}

// corrupted returns every way to change one expected value, as far as the value
// is a single one: a string, a number, a truth value or null.
func corrupted(x any) []any {
	switch x := x.(type) {
	case map[string]any:
		var out []any
		for k, v := range x {
			for _, bad := range corrupted(v) {
				one := make(map[string]any)
				for key, value := range x {
					one[key] = value
				}
				one[k] = bad
				out = append(out, one)
			}
		}
		return out
	case []any:
		var out []any
		for i, v := range x {
			for _, bad := range corrupted(v) {
				one := append([]any{}, x...)
				one[i] = bad
				out = append(out, one)
			}
		}
		return append(out, append(append([]any{}, x...), "9"))
	case string:
		if x == "0" {
			return []any{"1"}
		}
		return []any{"0"}
	case json.Number:
		n, _ := x.Int64()
		return []any{n + 1}
	case bool:
		return []any{!x}
	}
	return []any{true} // validity: null
}

// A case of which any one expected value is changed fails, or is no case.
func TestCorruptedVectorsFail(t *testing.T) {
	changed := 0
	for name, b := range vectors(t) {
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.UseNumber()
		var file struct {
			Family string           `json:"family"`
			Cases  []map[string]any `json:"cases"`
		}
		if err := dec.Decode(&file); err != nil {
			t.Fatal(err)
		}
		for _, c := range file.Cases {
			for _, bad := range corrupted(c["expect"]) {
				one := make(map[string]any)
				for k, v := range c {
					one[k] = v
				}
				one["expect"] = bad
				text, err := json.Marshal(map[string]any{"family": file.Family, "cases": []any{one}})
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(fmt.Sprint(bad), "reason") && onlyReason(c["expect"], bad) {
					continue // it is for people
				}
				changed++
				r, err := conform.Run(text)
				if err == nil && len(r.Failed) == 0 {
					t.Errorf("%s: %s passes with %v", name, c["id"], bad)
				}
			}
		}
	}
	if changed < 500 {
		t.Errorf("only %d values were changed", changed)
	}
}

// onlyReason tells whether two expectations differ in the reason of a rejection
// alone.
func onlyReason(a, b any) bool {
	strip := func(x any) string {
		m, _ := x.(map[string]any)
		list, _ := m["rejected"].([]any)
		var rest []any
		for _, r := range list {
			one := make(map[string]any)
			entry, _ := r.(map[string]any)
			for k, v := range entry {
				if k != "reason" {
					one[k] = v
				}
			}
			rest = append(rest, one)
		}
		copied := make(map[string]any)
		for k, v := range m {
			copied[k] = v
		}
		copied["rejected"] = rest
		return fmt.Sprint(copied)
	}
	return strip(a) == strip(b)
}

const good = `{"id": "a", "n": 3, "m": 1, "processes": ["p0", "p1", "p2"], "source": "p0", "source_value": "1",
"default": "0", "faulty": ["p2"], "algorithm": "om", "sends": [{"path": "p0.p2", "to": "p1", "value": "0"}],
"expect": {"decisions": {"p1": "0"}}}`

// What is malformed is an error that says where and what.
func TestMalformed(t *testing.T) {
	family := func(cases string) string { return "{\"family\": \"oral\",\n\"cases\": [\n" + cases + "\n]}" }
	if _, err := conform.Run([]byte(family(good))); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ text, want string }{
		"empty":           {"", "1: not a vector file"},
		"cut short":       {family(good)[:100], "not a vector file"},
		"not an object":   {"[]", "1: not a vector file"},
		"no cases":        {`{"family": "oral"}`, `{"family": NAME, "cases": [...]} was expected`},
		"unknown family":  {`{"family": "aural", "cases": []}`, `there is no family "aural": allowed are oral, ic, sm and bounds`},
		"later family":    {`{"family": "fifo", "cases": []}`, `family "fifo" is not supported yet`},
		"trailing":        {family(good) + "x", "1: not a vector file"},
		"unknown field":   {family(strings.Replace(good, `"n": 3`, `"n": 3, "k": 1`, 1)), `3: case a: json: unknown field "k"`},
		"unknown key":     {family(strings.Replace(good, `"decisions"`, `"decision"`, 1)), `3: case a: expect: json: unknown field "decision"`},
		"key twice":       {family(strings.Replace(good, `"n": 3`, `"n": 3, "n": 4`, 1)), `key "n" is given twice`},
		"no id":           {family(strings.Replace(good, `"id": "a"`, `"id": ""`, 1)), "3: a case needs an id of its own"},
		"id twice":        {family(good + ",\n" + good), "6: a case needs an id of its own"},
		"nothing":         {family(`{"id": "a"}`), "3: case a: nothing is expected"},
		"algorithm":       {family(strings.Replace(good, `"om"`, `"mo"`, 1)), `algorithm "mo": allowed are eig and om`},
		"n":               {family(strings.Replace(good, `"n": 3`, `"n": 4`, 1)), "n is 4 and there are 3 processes"},
		"m":               {family(strings.Replace(good, `"m": 1`, `"m": 2`, 1)), "m: allowed are 0 to n-2"},
		"source":          {family(strings.Replace(good, `"source": "p0"`, `"source": "p9"`, 1)), `source: there is no process "p9"`},
		"same names":      {family(strings.Replace(good, `"p0", "p1"`, `"p0", "p0"`, 1)), `process "p0": names are different`},
		"faulty":          {family(strings.Replace(good, `["p2"]`, `["p7"]`, 1)), `there is no process "p7"`},
		"correct sends":   {family(strings.Replace(good, `"p0.p2"`, `"p0.p1"`, 1)), "ends in a correct process"},
		"cyclic path":     {family(strings.Replace(good, `"p0.p2"`, `"p0.p2.p2"`, 1)), "is no message of this algorithm"},
		"to itself":       {family(strings.Replace(good, `"to": "p1"`, `"to": "p2"`, 1)), "is no message of this algorithm"},
		"expected liar":   {family(strings.Replace(good, `{"decisions": {"p1": "0"}}`, `{"trees": {"p2": {}}}`, 1)), `"p2" is faulty`},
		"source's tree":   {family(strings.Replace(good, `{"decisions": {"p1": "0"}}`, `{"votes": {"p0": {}}}`, 1)), `"p0" is the source and has no tree`},
		"round":           {family(strings.Replace(good, `{"decisions": {"p1": "0"}}`, `{"round_messages": {"p1": {"2": []}}}`, 1)), `"2" is no round of 0 to 1`},
		"oversized value": {family(strings.Replace(good, `"value": "0"`, `"value": "`+strings.Repeat("x", 1025)+`"`, 1)), "a value of 1025 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := conform.Run([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func FuzzRun(f *testing.F) {
	for _, b := range vectors(f) {
		f.Add(b)
	}
	f.Add([]byte(`{"family": "oral", "cases": [` + good + `]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 || bytes.Count(b, []byte(`"n"`)) > 3 {
			return // a run of many large cases is slow, and no fault
		}
		_, _ = conform.Run(b)
	})
}
