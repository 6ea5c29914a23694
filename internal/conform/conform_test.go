package conform_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// All worked cases of the sources hold.
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
	if cases != 69 {
		t.Errorf("%d cases", cases)
	}
}

// corrupted returns every way to change one expected value to null or to an empty object, one string, number or
// boolean to another, and one key to other letters.
func corrupted(x any) []any {
	out := []any{map[string]any{}}
	if x != nil {
		out = append(out, nil)
	}
	switch x := x.(type) {
	case nil:
		out = append(out, true) // validity
	case map[string]any:
		for k, v := range x {
			for _, bad := range corrupted(v) {
				if _, text := bad.(string); k == "reason" && text {
					continue // not compared
				}
				one := maps.Clone(x)
				one[k] = bad
				out = append(out, one)
			}
			if other := otherLetters(k); other != k {
				one := maps.Clone(x)
				delete(one, k)
				one[other] = v
				out = append(out, one)
			}
		}
	case []any:
		for i, v := range x {
			for _, bad := range corrupted(v) {
				one := slices.Clone(x)
				one[i] = bad
				out = append(out, one)
			}
		}
		out = append(out, append(slices.Clone(x), "9"))
	case string:
		out = append(out, map[bool]string{true: "1", false: "0"}[x == "0"])
	case json.Number:
		n, _ := x.Int64()
		out = append(out, n+1)
	case bool:
		out = append(out, !x)
	}
	return out
}

func otherLetters(s string) string {
	if upper := strings.ToUpper(s); upper != s {
		return upper
	}
	return strings.ToLower(s)
}

// cases returns the cases of a file.
func cases(t testing.TB, b []byte) (family string, cases []map[string]any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var file struct {
		Family string           `json:"family"`
		Cases  []map[string]any `json:"cases"`
	}
	if err := dec.Decode(&file); err != nil {
		t.Fatal(err)
	}
	return file.Family, file.Cases
}

// file returns a file with one case.
func file(t testing.TB, family string, c map[string]any) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{"family": family, "cases": []any{c}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A case with any one expected value changed fails or is invalid.
func TestCorruptedVectorsFail(t *testing.T) {
	changed := 0
	for name, b := range vectors(t) {
		family, all := cases(t, b)
		for _, c := range all {
			for _, bad := range corrupted(c["expect"]) {
				one := maps.Clone(c)
				one["expect"] = bad
				changed++
				r, err := conform.Run(file(t, family, one))
				if err == nil && len(r.Failed) == 0 {
					t.Errorf("%s: %s passes with %v", name, c["id"], bad)
				}
			}
		}
	}
	if changed < 3600 {
		t.Errorf("only %d values were changed", changed)
	}
}

const good = `{"id": "a", "n": 3, "m": 1, "processes": ["p0", "p1", "p2"], "source": "p0", "source_value": "1",
"default": "0", "faulty": ["p2"], "algorithm": "om", "sends": [{"path": "p0.p2", "to": "p1", "value": "0"}],
"expect": {"decisions": {"p1": "0"}}}`

// The pieces of good that tests replace.
const (
	expect = `{"decisions": {"p1": "0"}}`
	value  = `"value": "0"`
)

func family(name string, cases ...string) string {
	return fmt.Sprintf("{\"family\": %q,\n\"cases\": [\n%s\n]}", name, strings.Join(cases, ",\n"))
}

// edited returns good with one piece replaced, in a file.
func edited(t testing.TB, old, replacement string) string {
	t.Helper()
	if strings.Count(good, old) != 1 {
		t.Fatalf("%s is not in the case once", old)
	}
	return family("oral", strings.Replace(good, old, replacement, 1))
}

// refused demands an error that begins with the line and says what is wrong.
func refused(t *testing.T, text, want string) {
	t.Helper()
	_, err := conform.Run([]byte(text))
	if err == nil || !strings.Contains(err.Error(), want) || !beginsWithLine.MatchString(err.Error()) {
		t.Errorf("error %v, want %q after the line", err, want)
	}
}

var beginsWithLine = regexp.MustCompile(`^[1-9][0-9]*: `)

// A malformed vector file is an error that says where and what.
func TestMalformedFile(t *testing.T) {
	whole := family("oral", good)
	if _, err := conform.Run([]byte(whole)); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ text, want string }{
		"empty":         {"", "1: not a vector file: the text is not JSON"},
		"cut short":     {whole[:100], "3: not a vector file: the text is not JSON"},
		"not an object": {"[]", "1: not a vector file: array, where an object was expected"},
		"null":          {"null", "1: not a vector file: null is no value here"},
		"an empty list": {`{"family": "oral", "cases": []}`, "1: the list of cases is empty: add at least one"},
		"no cases":      {`{"family": "oral"}`, `a key is missing: write {"family": NAME, "cases": [...]}`},
		"null cases":    {`{"family": "oral", "cases": null}`, "cases: null is no value here"},
		"null case":     {family("oral", "null"), "cases: entry 0: null is no value here"},
		"no object":     {family("oral", "[]"), "3: array, where an object was expected"},
		"unknown family": {family("aural"), `unknown family "aural": allowed are atomic, bounds, causal, clock, commit, ` +
			`diffusion, fifo, ic, oral, sm, tetra and tree`},
		"unknown kind":   {family("atomic", `{"id": "a", "kind": "scripts", "expect": {}}`), `kind "scripts": allowed are account, recovery and script`},
		"no kind":        {family("commit", `{"id": "a", "expect": {}}`), `kind "": allowed are 2pc-termination, 2pc-vote, 3pc-termination, counts and partition`},
		"kind, no text":  {family("commit", `{"id": "a", "kind": 2, "expect": {}}`), `kind: number, where a string was expected`},
		"other family":   {family("fifo", good), `3: case a: unknown key "n": allowed are arrivals, basis, expect, id, notes, source_ref`},
		"trailing":       {whole + "x", "6: not a vector file: the text is not JSON"},
		"deep":           {family("oral", strings.Repeat("[", 5000)+strings.Repeat("]", 5000)), "3: array, where"},
		"very deep":      {`{"family": "oral", "cases": [` + strings.Repeat("[", 5_000_000), "1: not a vector file: "},
		"deep case":      {edited(t, `"faulty": ["p2"]`, `"faulty": `+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)), "faulty: array, where a string"},
		"deep elsewhere": {edited(t, expect, `{"validity": `+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+"}"), "validity: array, where true or false"},
		"second line":    {family("oral", good, `{"id": "b"}`), "6: case b: the key expect is missing: add it"},
		"id twice":       {family("oral", good, good), `6: the id "a" is empty or used twice`},
		"no id":          {edited(t, `"id": "a"`, `"id": ""`), `3: the id "" is empty or used twice`},
		"nothing":        {family("oral", `{"id": "a"}`), "3: case a: the key expect is missing: add it"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, test.text, test.want) })
	}
}

// So is a case that does not have its family's form or makes no sense.
func TestMalformedCase(t *testing.T) {
	for name, test := range map[string]struct{ old, replacement, want string }{
		"unknown field":     {`"n": 3`, `"n": 3, "k": 1`, `3: case a: unknown key "k": allowed are algorithm, basis, default`},
		"other letters":     {`"n": 3`, `"N": 3`, `3: case a: unknown key "N"`},
		"in two letters":    {`"n": 3`, `"n": 3, "N": 4`, `3: case a: unknown key "N"`},
		"inside":            {`"to": "p1"`, `"To": "p1"`, `3: case a: sends: entry 0: unknown key "To": allowed are path, to, value`},
		"key twice":         {`"n": 3`, `"n": 3, "n": 4`, `key "n" is given twice`},
		"type":              {`"n": 3`, `"n": "3"`, "3: case a: n: string, where a whole number was expected"},
		"null":              {`"source_value": "1"`, `"source_value": null`, "source_value: null is no value here"},
		"null in a list":    {`["p2"]`, `["p2", null]`, "faulty: entry 1: null is no value here"},
		"algorithm":         {`"om"`, `"mo"`, `algorithm "mo": allowed are eig and om`},
		"n":                 {`"n": 3`, `"n": 4`, "n is 4 and there are 3 processes"},
		"m":                 {`"m": 1`, `"m": 2`, "m: allowed are 0 to n-2"},
		"source":            {`"source": "p0"`, `"source": "p9"`, `source: there is no process "p9"`},
		"same names":        {`["p0", "p1"`, `["p0", "p0"`, `process "p0": names are different`},
		"faulty":            {`["p2"]`, `["p7"]`, `there is no process "p7"`},
		"correct sends":     {`"p0.p2"`, `"p0.p1"`, "ends in a correct process"},
		"cyclic path":       {`"p0.p2"`, `"p0.p2.p2"`, "is no message of this algorithm"},
		"to itself":         {`"to": "p1"`, `"to": "p2"`, `path "p0.p2": "p2" sends to itself, which nobody correct hears`},
		"to the source":     {`"to": "p1"`, `"to": "p0"`, "is no message of this algorithm"},
		"other source":      {`"p0.p2"`, `"p2"`, "is no message of this algorithm"},
		"oversized value":   {value, `"value": "` + strings.Repeat("x", 1025) + `"`, "value: a value of 1025 bytes: allowed are 1024"},
		"oversized source":  {`"source_value": "1"`, `"source_value": "` + strings.Repeat("x", 1025) + `"`, "source_value: a value of 1025 bytes"},
		"oversized default": {`"default": "0"`, `"default": "` + strings.Repeat("x", 1025) + `"`, "default: a value of 1025 bytes"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, edited(t, test.old, test.replacement), test.want) })
	}
}

// So is an expectation that asserts nothing, or concerns no process.
func TestMalformedExpectation(t *testing.T) {
	for expected, want := range map[string]string{
		`{}`:                  "expect: an empty object says nothing",
		`null`:                "expect: null is no value here",
		`[]`:                  "expect: array, where an object was expected",
		`{"decision": {}}`:    `expect: unknown key "decision": allowed are accurate_leaves, agreement,`,
		`{"decisions": null}`: "expect: decisions: null is no value here",
		`{"decisions": {}}`:   "expect: decisions: an empty object says nothing",
		`{"decisions": {"p1": "0"}, "DECISIONS": {"p1": "1"}}`: `unknown key "DECISIONS"`,
		`{"decisions": {"p1": "0", "p1": "0"}}`:                `decisions: key "p1" is given twice`,
		`{"decisions": {"p2": "0"}}`:                           `decisions: "p2" is faulty`,
		`{"decisions": {"p0": "1"}}`:                           `decisions: "p0" is the source: this is expected of lieutenants`,
		`{"decisions": {"P1": "0"}}`:                           `decisions: there is no process "P1": allowed are p0, p1, p2`,
		`{"validity": "no"}`:                                   "case a: expect: validity: string, where true or false was expected",
		`{"messages_per_round": [2, null]}`:                    "messages_per_round: entry 1: null",
		`{"messages_per_round": [-2]}`:                         "number -2, where a whole number that is not negative",
		`{"trees": {"p1": 3}}`:                                 "case a: expect: trees: number, where an object was expected",
		`{"votes": []}`:                                        "case a: expect: votes: array, where an object was expected",
		`{"round_messages": {"p1": {"2": []}}}`:                `"2" is no round of 0 to 1`,
		`{"round_messages": {"p1": {"01": []}}}`:               `"01" is no round of 0 to 1`,
		`{"round_messages": {"p1": {"1": [["0"]]}}}`:           "1: entry 0: a list of 1, where one of 2 was expected",
		`{"round_messages": {"p2": {"1": []}}}`:                `"p2" is faulty`,
		`{"trees": {"p2": {"p0": ["0", "0"]}}}`:                `trees: "p2" is faulty`,
		`{"tree_outputs": {"p0": {"p0": "0"}}}`:                `tree_outputs: "p0" is the source`,
		`{"leaves": {"p9": {"p0.p2": "0"}}}`:                   `leaves: there is no process "p9"`,
		`{"votes": {"p0": {"p1": "0"}}}`:                       `votes: "p0" is the source`,
	} {
		t.Run(expected, func(t *testing.T) { refused(t, edited(t, expect, expected), want) })
	}
}
