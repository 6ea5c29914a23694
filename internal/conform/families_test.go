package conform_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/conform"
)

// Cases without their expectations.
const (
	oralEIG = `"n": 4, "m": 1, "processes": ["p0", "p1", "p2", "p3"], "source": "p0", "source_value": "1",
"default": "0", "faulty": ["p3"], "algorithm": "eig", "sends": [{"path": "p0.p3", "to": "p1", "value": "0"}]`
	icOM = `"n": 4, "m": 1, "processes": ["p0", "p1", "p2", "p3"], "values": {"p0": "1", "p1": "1", "p2": "0"},
"default": "0", "faulty": ["p3"], "algorithm": "om", "sends": [{"path": "p3", "to": "p1", "value": "1"},
{"path": "p3", "to": "p2", "value": "1"}]`
	smOne = `"n": 4, "m": 2, "processes": ["0", "1", "2", "3"], "source": "0", "source_value": "1",
"default": "0", "faulty": ["3"], "sends": []`
)

var silentSource = strings.Replace(smOne, `"faulty": ["3"]`, `"faulty": ["0"]`, 1)

// one runs a case and returns the keys that failed.
func one(t *testing.T, family, fields, expect string) ([]string, error) {
	t.Helper()
	text := fmt.Sprintf("{\"family\": %q, \"cases\": [{\"id\": \"a\", %s, \"expect\": %s}]}", family, fields, expect)
	if !json.Valid([]byte(text)) {
		t.Fatal("no JSON: ", text)
	}
	r, err := conform.Run([]byte(text))
	var failed []string
	for _, f := range r.Failed {
		failed = append(failed, f.Key)
	}
	return failed, err
}

// passes demands that exactly the given keys fail.
func passes(t *testing.T, family, fields, expect string, failing ...string) {
	t.Helper()
	if failed, err := one(t, family, fields, expect); err != nil || !slices.Equal(failed, failing) {
		t.Errorf("%s: %s: %s failed, error %v, want %s", family, expect, failed, err, failing)
	}
}

// isRefused demands an error.
func isRefused(t *testing.T, family, fields, expect, want string) {
	t.Helper()
	if _, err := one(t, family, fields, expect); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %s: error %v, want %q", family, expect, err, want)
	}
}

// Maps by process and by path are compared only for the listed entries. A listed entry that does not exist fails.
func TestOnlyWhatIsListed(t *testing.T) {
	for _, x := range []struct {
		family, fields, right, wrong, absent string // absent: "" if it is an error
		key                                  string
	}{
		{"oral", oralEIG, `{"decisions": {"p1": "1"}}`, `{"decisions": {"p1": "0"}}`, "", "decisions"},
		{"oral", oralEIG, `{"trees": {"p1": {"p0.p3": ["0", "0"]}}}`, `{"trees": {"p1": {"p0.p3": ["1", "0"]}}}`,
			`{"trees": {"p1": {"p0.p0": ["0", "0"]}}}`, "trees.p1"},
		{"oral", oralEIG, `{"tree_outputs": {"p2": {"p0": "1"}}}`, `{"tree_outputs": {"p2": {"p0": "0"}}}`,
			`{"tree_outputs": {"p2": {"p1": "1"}}}`, "tree_outputs.p2"},
		{"oral", oralEIG, `{"leaves": {"p1": {"p0.p3": "0"}}}`, `{"leaves": {"p1": {"p0.p3": "1"}}}`,
			`{"leaves": {"p1": {"p0.p1": "1"}}}`, "leaves.p1"},
		{"oral", oralEIG, `{"votes": {"p1": {"p3": "0"}}}`, `{"votes": {"p1": {"p3": "1"}}}`,
			`{"votes": {"p1": {"p0": "1"}}}`, "votes.p1"},
		{"ic", icOM, `{"tables": {"p3": {"p1": {"p2": "1"}}}}`, `{"tables": {"p3": {"p1": {"p2": "0"}}}}`,
			`{"tables": {"p3": {"p1": {"p1": "1"}}}}`, "tables.p3.p1"},
		{"ic", strings.Replace(icOM, `"om"`, `"eig"`, 1), `{"tables": {"p0": {"p1": {"p2": "1", "p0": "1"}}}}`,
			`{"tables": {"p0": {"p1": {"p2": "0"}}}}`, `{"tables": {"p0": {"p1": {"p1": "1"}}}}`, "tables.p0.p1"},
		{"ic", icOM, `{"vectors": {"p1": ["1", "1", "0", "1"]}}`, `{"vectors": {"p1": ["1", "1", "0"]}}`, "", "vectors"},
		{"ic", icOM, `{"consensus": {"p2": "1"}}`, `{"consensus": {"p2": "0"}}`, "", "consensus"},
		{"sm", smOne, `{"V": {"1": ["1"]}}`, `{"V": {"1": []}}`, "", "V.1"},
		{"sm", smOne, `{"decisions": {"1": "1"}}`, `{"decisions": {"1": "0"}}`, "", "decisions"},
	} {
		passes(t, x.family, x.fields, x.right)
		passes(t, x.family, x.fields, x.wrong, x.key)
		if x.absent != "" {
			passes(t, x.family, x.fields, x.absent, x.key)
		}
	}
}

// Expectations about faulty or unknown processes are refused.
func TestOfWhom(t *testing.T) {
	isRefused(t, "ic", icOM, `{"vectors": {"p3": ["1"]}}`, `expect: vectors: "p3" is faulty`)
	isRefused(t, "ic", icOM, `{"consensus": {"p9": "1"}}`, `expect: consensus: there is no process "p9"`)
	isRefused(t, "ic", icOM, `{"tables": {"p0": {"p3": {"p0": "1"}}}}`, `expect: tables: p0: "p3" is faulty`)
	isRefused(t, "ic", icOM, `{"tables": {"p0": {"p0": {"p0": "1"}}}}`, `expect: tables: p0: "p0" is the source`)
	isRefused(t, "ic", icOM, `{"tables": {"p9": {"p0": {"p0": "1"}}}}`, `expect: tables: there is no process "p9"`)
	isRefused(t, "sm", smOne, `{"V": {"3": []}}`, `expect: V: "3" is faulty`)
	isRefused(t, "sm", smOne, `{"decisions": {"0": "1"}}`, `expect: decisions: "0" is the source`)
}

// A list without entries says that there are none. TestCorruptedVectorsFail tests that null and an empty object say
// nothing.
func TestEmptyLists(t *testing.T) {
	passes(t, "sm", smOne, `{"rejected": []}`)
	passes(t, "sm", silentSource, `{"V": {"1": []}}`)
}

// A faulty process sends what is listed, whatever its value; a correct process needs a value.
func TestValues(t *testing.T) {
	passes(t, "ic", icOM, `{"vectors": {"p1": ["1", "1", "0", "1"], "p2": ["1", "1", "0", "1"], "p0": ["1", "1", "0", "1"]}}`)
	given := strings.Replace(icOM, `"p2": "0"}`, `"p2": "0", "p3": "0"}`, 1)
	passes(t, "ic", given, `{"vectors": {"p1": ["1", "1", "0", "1"], "p2": ["1", "1", "0", "1"], "p0": ["1", "1", "0", "1"]}}`)
	const consensus = `{"consensus": {"p1": "1"}}`
	isRefused(t, "ic", strings.Replace(icOM, `, "p2": "0"}`, `}`, 1), consensus, `values: "p2" is correct and has none`)
	isRefused(t, "ic", strings.Replace(icOM, `"p2": "0"}`, `"p2": "0", "p9": "0"}`, 1), consensus, `values: there is no process "p9"`)
	long := strings.Repeat("x", 1025)
	isRefused(t, "ic", strings.Replace(icOM, `"p2": "0"}`, `"p2": "`+long+`"}`, 1), consensus, "values: a value of 1025 bytes")
}

// The algorithms have no message to the source, nor one of another source. EIG has messages to processes on the path.
func TestOralSends(t *testing.T) {
	with := func(fields, path, to string) string {
		at := strings.Index(fields, `"sends": `)
		return fields[:at] + fmt.Sprintf(`"sends": [{"path": %q, "to": %q, "value": "0"}]`, path, to)
	}
	icEIG := strings.Replace(icOM, `"om"`, `"eig"`, 1)
	two := strings.Replace(oralEIG, `"faulty": ["p3"]`, `"faulty": ["p2", "p3"]`, 1)
	const none, itself = "is no message of this algorithm", `"p3" sends to itself, which nobody correct hears`
	isRefused(t, "oral", with(oralEIG, "p0.p3", "p0"), `{"agreement": true}`, none)
	isRefused(t, "oral", with(oralEIG, "p0.p3", "p3"), `{"agreement": true}`, itself)
	isRefused(t, "oral", with(oralEIG, "p3", "p1"), `{"agreement": true}`, none)
	isRefused(t, "ic", with(icEIG, "p1.p3", "p1"), `{"vectors": {"p0": ["1", "1", "0", "0"]}}`, none)
	isRefused(t, "ic", with(icEIG, "p1.p3", "p3"), `{"vectors": {"p0": ["1", "1", "0", "0"]}}`, itself)
	isRefused(t, "ic", with(icOM, "p1.p3", "p1"), `{"vectors": {"p0": ["1", "1", "0", "0"]}}`, none)
	passes(t, "ic", with(icEIG, "p1.p3", "p2"), `{"tables": {"p1": {"p2": {"p3": "0", "p1": "1"}}}}`)
	// EIG sends longer paths to the processes on them, and OM does not.
	long := strings.Replace(strings.Replace(two, `"m": 1`, `"m": 2`, 1), `"eig"`, `"om"`, 1)
	passes(t, "oral", with(strings.Replace(long, `"om"`, `"eig"`, 1), "p0.p1.p3", "p1"), `{"trees": {"p1": {"p0.p1.p3": ["0", "0"]}}}`)
	isRefused(t, "oral", with(long, "p0.p1.p3", "p1"), `{"agreement": true}`, none)
}

// If only the source is correct, nothing is said of the other decisions.
func TestNobodyElse(t *testing.T) {
	alone := strings.Replace(oralEIG, `["p3"]`, `["p1", "p2", "p3"]`, 1)
	one := strings.Replace(oralEIG, `["p3"]`, `["p2", "p3"]`, 1)
	noneOral := strings.Replace(oralEIG, `["p3"]`, `["p0", "p1", "p2", "p3"]`, 1)
	noneSigned := strings.Replace(smOne, `["3"]`, `["1", "2", "3"]`, 1)
	for _, expect := range []string{`{"agreement": true}`, `{"agreement": false}`, `{"validity": true}`, `{"validity": null}`} {
		isRefused(t, "oral", alone, expect, "expect: agreement and validity are of correct processes beside the source")
		isRefused(t, "oral", noneOral, expect, "and there are none")
		isRefused(t, "sm", noneSigned, expect, "and there are none")
	}
	passes(t, "oral", one, `{"agreement": true, "validity": false}`)
}

// The cost of a case is limited: cases that would take gigabytes or hours are refused, and the largest allowed ones
// end soon.
func TestLargeCases(t *testing.T) {
	system := func(n, m int) string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("%q", fmt.Sprint(i))
		}
		return fmt.Sprintf(`"n": %d, "m": %d, "processes": [%s], "default": "0", "faulty": ["1"]`, n, m, strings.Join(names, ", "))
	}
	values := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(`"%d": "1"`, i)
		}
		return `, "values": {` + strings.Join(all, ", ") + "}"
	}
	const source, oral, agree = `, "source": "0", "source_value": "1"`, `, "sends": [], "algorithm": `, `{"agreement": true}`
	isRefused(t, "sm", system(256, 254)+source+`, "sends": []`, agree, "a case of 16646400 frames, n(n-1)(m+1): allowed are 200000")
	isRefused(t, "sm", system(60, 56)+source+`, "sends": []`, agree, "a case of 201780 frames")
	isRefused(t, "oral", system(256, 3)+source+oral+`"om"`, agree, "a case of 261120 frames")
	isRefused(t, "ic", system(256, 3)+values(256)+oral+`"om"`, `{"vectors": {"0": ["1"]}}`, "a case of 261120 frames")
	isRefused(t, "oral", system(15, 8)+source+oral+`"eig"`, agree, "messages: allowed are 20000000")
	// Interactive consistency has one agreement for each process.
	isRefused(t, "ic", system(12, 6)+values(12)+oral+`"om"`, `{"vectors": {"0": ["1"]}}`, "messages: allowed are 20000000")
	// Everything that a process sends in a round is collected.
	passes(t, "oral", system(13, 6)+source+oral+`"eig"`, `{"round_messages": {"2": {"6": [["1", "0.2"]]}}}`, "round_messages.2.6")
	sends := strings.Repeat(`{"round": 0, "from": "1", "to": "2", "value": "1", "chain": ["0"]}, `, 15)
	fields := system(256, 1) + source + `, "sends": [` + strings.TrimSuffix(sends, ", ") + `]`
	isRefused(t, "sm", fields, agree, "15 sends, which all may relay to all: with n = 256 fewer than 15 are allowed")
}

// V holds the values themselves, not their printed form.
func TestAnyValueInV(t *testing.T) {
	for _, v := range []string{"", "é\n", `"a"`, "0xc3a90a", strings.Repeat("a", 100)} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		passes(t, "sm", strings.Replace(smOne, `"source_value": "1"`, `"source_value": `+string(text), 1),
			fmt.Sprintf(`{"V": {"1": [%s], "2": [%[1]s]}, "decisions": {"1": %[1]s}}`, text))
	}
}

// A chain that begins with an old signature of a correct process is as good as a new one.
func TestOldSignature(t *testing.T) {
	const fields = `"n": 7, "m": 4, "processes": ["0", "1", "2", "3", "4", "5", "6"], "source": "0",
"source_value": "1", "default": "0", "faulty": ["0", "4", "5", "6"], "sends": [
{"round": 0, "from": "0", "to": "1", "value": "1", "chain": ["0"]},
{"round": 4, "from": "6", "to": "2", "value": "1", "chain": ["0", "1", "4", "5", "6"]}]`
	passes(t, "sm", fields, `{"V": {"1": ["1"], "2": ["1"], "3": ["1"]}, "rejected": [], "honest_messages_per_round": [0, 5, 8]}`)
	// A value that no process has signed is forged.
	passes(t, "sm", strings.Replace(fields, `"chain": ["0", "1", "4"`, `"chain": ["0", "3", "4"`, 1),
		`{"V": {"2": ["1"]}, "rejected": [{"to": "2", "round": 4, "value": "1", "chain": ["0", "3", "4", "5", "6"], "reason": ""}]}`)
}

// Empty rounds at the end need not be listed; others must be.
func TestEmptyRounds(t *testing.T) {
	const key = "honest_messages_per_round"
	for list, right := range map[string]bool{"[0, 0, 0]": true, "[0]": true, "[]": true, "[0, 0, 0, 0]": false, "[1]": false} {
		failing := []string{key}
		if right {
			failing = nil
		}
		passes(t, "sm", silentSource, `{"`+key+`": `+list+`}`, failing...)
	}
	passes(t, "bounds", `"n": 5, "m": 2`, `{"sm_honest_messages_per_round": [4, 12]}`)
	passes(t, "bounds", `"n": 5, "m": 2`, `{"sm_honest_messages_per_round": [4, 12, 0]}`)
	passes(t, "bounds", `"n": 5, "m": 2`, `{"sm_honest_messages_per_round": [4]}`, "sm_honest_messages_per_round")
	passes(t, "bounds", `"n": 5, "m": 2`, `{"eig_sent_per_lieutenant": [0, 4]}`, "eig_sent_per_lieutenant")
	passes(t, "bounds", `"n": 2, "m": 0`, `{"eig_sent_per_lieutenant": []}`)
	// This also holds where the counts are the theorem's: only the source sends in round 0.
	passes(t, "bounds", `"n": 100, "m": 2`, `{"eig_sent_per_lieutenant": [0, 99, 9702], "eig_messages_per_round": [99, 9801, 960498]}`)
	passes(t, "oral", oralEIG, `{"messages_per_round": [3]}`, "messages_per_round")
}

// The bits of OM's messages are one total, or a list by round.
func TestPayloadBits(t *testing.T) {
	const four = `"n": 4, "m": 1`
	passes(t, "bounds", four, `{"om_payload_bits": 39}`)
	passes(t, "bounds", four, `{"om_payload_bits": [9, 30]}`)
	passes(t, "bounds", four, `{"om_payload_bits": 30}`, "om_payload_bits")
	passes(t, "bounds", four, `{"om_payload_bits": [9]}`, "om_payload_bits")
	passes(t, "bounds", four, `{"om_payload_bits": [3, 5]}`, "om_payload_bits") // the bits of one message
	isRefused(t, "bounds", four, `{"om_payload_bits": null}`, "om_payload_bits: null")
	isRefused(t, "bounds", four, `{"om_payload_bits": [9, null]}`, "om_payload_bits: entry 1: null")
	isRefused(t, "bounds", four, `{"om_payload_bits": "39"}`, "om_payload_bits: string, where a whole number")
}

// Counts that do not fit in 64 bits are refused, and so is any count beyond n-2.
func TestCountsThatAreNone(t *testing.T) {
	counts := map[string]string{
		"eig_sent_per_lieutenant": "[0]", "eig_messages_per_round": "[99]", "eig_total": "0", "eig_received_per_lieutenant": "0",
		"om_messages_per_round": "[99]", "om_total": "0", "om_received_per_lieutenant": "0", "om_payload_bits": "0",
		"tree_nodes_per_rank": "[1]", "tree_nodes": "0", "tree_leaves": "0",
	}
	for key, zero := range counts {
		expect := `{"` + key + `": ` + zero + `}`
		isRefused(t, "bounds", `"n": 100, "m": 33`, expect, "expect: "+key+": with n = 100 and m = 33 this does not fit in 64 bits")
		isRefused(t, "bounds", `"n": 3, "m": 2`, expect, "expect: "+key+": with m = 2 of n = 3 there is nothing to count")
	}
	passes(t, "bounds", `"n": 3, "m": 2`, `{"oral_possible": false, "min_n_oral": 7, "min_n_signed": 4, "max_oral_faults": 0, "rounds": 3}`)
	passes(t, "bounds", `"n": 2, "m": 256`, `{"oral_possible": false, "min_n_oral": 769, "min_n_signed": 258}`)
	isRefused(t, "bounds", `"n": 2, "m": 257`, `{"rounds": 258}`, "allowed are n of 2 to 256 and m of 0 to 256")
	isRefused(t, "bounds", `"n": 1, "m": 0`, `{"rounds": 1}`, "allowed are n of 2 to 256")
	// Here a tree has fewer than 2^64 nodes, and only the total number of messages is larger.
	passes(t, "bounds", `"n": 21, "m": 18`, `{"tree_leaves": 1216451004088320000}`)
	passes(t, "bounds", `"n": 100, "m": 33`, `{"max_oral_faults": 33, "oral_possible": true}`)
	// Frames to all in each of 255 rounds would take seconds.
	passes(t, "bounds", `"n": 256, "m": 254`, `{"sm_honest_messages_per_round": [255, 64770]}`)
}

// Leaves are counted by whether a faulty process is on their path.
func TestLeaves(t *testing.T) {
	passes(t, "oral", oralEIG, `{"deceptive_leaves": 1, "accurate_leaves": 1}`)
	passes(t, "oral", oralEIG, `{"deceptive_leaves": 2, "accurate_leaves": 0}`, "deceptive_leaves", "accurate_leaves")
	all := strings.Replace(oralEIG, `"faulty": ["p3"]`, `"faulty": ["p1", "p2", "p3"]`, 1)
	isRefused(t, "oral", all, `{"accurate_leaves": 1}`, "no lieutenant is correct")
}

// A message that a faulty process cannot send is refused.
func TestSignedSends(t *testing.T) {
	const right = `{"round": 1, "from": "3", "to": "1", "value": "1", "chain": ["0", "3"], "bad_sig": 1}`
	with := func(send string) string { return strings.Replace(smOne, `"sends": []`, `"sends": [`+send+`]`, 1) }
	passes(t, "sm", with(right), `{"rejected": [{"to": "1", "round": 1, "value": "1", "chain": ["0", "3"], "reason": "any"}]}`)
	for old, x := range map[string]struct{ replacement, want string }{
		`"from": "3"`:         {`"from": "2"`, `from "2": it is correct`},
		`"to": "1"`:           {`"to": "3"`, `"3" sends to itself`},
		`"round": 1`:          {`"round": 3`, "round 3: allowed are 0 to 2"},
		`"chain": ["0", "3"]`: {`"chain": []`, "a chain has at least one signer"},
		`"0", "3"`:            {`"0", "9"`, `there is no process "9"`},
		`"bad_sig": 1`:        {`"bad_sig": 2`, "bad_sig 2: the chain has the signatures 0 to 1"},
		`"value": "1"`:        {`"value": "` + strings.Repeat("x", 1025) + `"`, "value: a value of 1025 bytes"},
		`"value": `:           {`"Value": `, `entry 0: unknown key "Value": allowed are bad_sig, chain, from, round, to, value`},
	} {
		isRefused(t, "sm", with(strings.Replace(right, old, x.replacement, 1)), `{"agreement": true}`, x.want)
	}
}

// A file's errors name it, and a folder stands for the files in it.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.json")
	if files, err := conform.Files([]string{dir}); err == nil {
		t.Error("an empty folder has the files ", files)
	}
	for text, want := range map[string]string{family("oral", good): "", family("fife"): name + `:1: unknown family "fife"`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		files, err := conform.Files([]string{dir, name})
		if err != nil || !slices.Equal(files, []string{name, name}) {
			t.Fatal(files, err)
		}
		r, err := conform.File(name)
		if r.File != name || (err == nil) != (want == "") || !strings.HasPrefix(fmt.Sprint(err), want) && want != "" {
			t.Errorf("%s: error %v, want %q", r.File, err, want)
		}
	}
	if err := os.Truncate(name, 64<<20+1); err != nil {
		t.Fatal(err)
	}
	if _, err := conform.File(name); err == nil || !strings.Contains(err.Error(), ": the file is too long: at most 67108864 bytes") {
		t.Error(err)
	}
}

// FuzzRun starts from one case of each family, algorithm and kind.
func FuzzRun(f *testing.F) {
	seen := make(map[string]bool)
	for _, b := range vectors(f) {
		family, all := cases(f, b)
		for _, c := range all {
			if kind := fmt.Sprint(family, c["algorithm"], c["kind"]); !seen[kind] {
				seen[kind] = true
				f.Add(file(f, family, c))
			}
		}
	}
	f.Add([]byte(family("oral", good)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var sizes struct {
			Cases []struct{ N, M int }
		}
		_ = json.Unmarshal(b, &sizes) // if it cannot be read, Run cannot read it either
		for _, c := range sizes.Cases {
			if len(sizes.Cases) > 3 || c.N > 7 && c.M > 1 || c.N > 40 || c.M > 40 {
				return // many or large cases are slow, which is no defect
			}
		}
		r, err := conform.Run(b)
		if err != nil && !beginsWithLine.MatchString(err.Error()) {
			t.Errorf("error without a line: %v", err)
		}
		if len(r.Failed) > 0 && r.Cases == 0 {
			t.Error("failures of no case")
		}
	})
}

// Cases about agreement in views are refused if a step or a message cannot be read.
func TestMalformedViews(t *testing.T) {
	for steps, want := range map[string]string{
		`"sleep"`:                 "allowed are",
		`"P5: echo a"`:            `there is no process "P5"`,
		`"P2: shout a"`:           "unknown message",
		`"P2: echo"`:              "unknown message",
		`"P2: echo a b"`:          `"echo VALUE" was expected`,
		`"P2: wish x"`:            "a number was expected",
		`"P2: enter 1 - 5:1:a"`:   "PHASE:VIEW:VALUE",
		`"P2: witness 3 a"`:       `there is no process "3"`,
		`"timeout", "P02: vouch"`: `there is no process "P02"`,
	} {
		fields := `"n": 4, "m": 1, "process": "P1", "source": "P1", "steps": [` + steps + `]`
		isRefused(t, "tetra", fields, `{"view": 0}`, want)
	}
	isRefused(t, "tetra", `"n": 4, "m": 4, "process": "P1", "source": "P1", "steps": ["timeout"]`, `{"view": 0}`, "n and m")
	passes(t, "tetra", `"n": 4, "m": 1, "process": "P1", "source": "P1", "steps": ["request a", "timeout"]`,
		`{"sends": [["propose 0 a", "echo a"], ["wish 2"]], "decision": "a", "view": 0}`, "sends", "decision")
}
