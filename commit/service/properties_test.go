package service

import (
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/commit/problem"
)

// judgedRun turns a text into a run of three processes. Each word is an event: a process, what it does, a path
// and a name. 0qa: process 0 gets a request for a, on which all vote yes (0qA: process 1 has no part); 1y5a,
// 1n5a: 1 votes on path 5, called a; 1c5a, 1a5a: 1 commits or aborts; 1C5a, 1A5a: 1 gets that outcome as an
// earlier one; 1b5a: 1 is blocked; 0fa: 0 refuses to begin a. 1r: 1 restarts; 1x: 1 crashes for good; end: the
// run is over. Process 0 coordinates.
func judgedRun(text string) *parley.History {
	h := &parley.History{N: 3}
	for i, word := range strings.Fields(text) {
		if word == "end" {
			h.Over = true
			continue
		}
		at := parley.ID(word[0] - '0')
		do := parley.ExternalEvent{At: at, From: at, When: parley.Tick(10 * i), Order: uint64(i + 1)}
		rest := word[2:]
		votes := func(name string) string {
			if strings.ToLower(name) != name {
				return " y-y"
			}
			return " yyy"
		}
		deliver := func(m parley.Msg, say string) {
			do.From, do.Msg = 0, m
			do.Msg.Value, do.Msg.Body = uint64(rest[0]-'0'), []byte(strings.ToLower(say+rest[1:]))
			h.Deliveries = append(h.Deliveries, do)
		}
		switch word[1] {
		case 'q':
			do.Msg = parley.Msg{Kind: parley.Propose, Body: []byte(strings.ToLower(rest) + votes(rest))}
			h.Requests = append(h.Requests, do)
		case 'y', 'n':
			seq := map[byte]uint64{'y': 1}[word[1]]
			deliver(parley.Msg{Kind: Voted, Seq: seq}, "")
			body := &h.Deliveries[len(h.Deliveries)-1].Msg.Body
			*body = append(*body, votes(rest[1:])...)
		case 'c':
			deliver(parley.Msg{Kind: parley.Decide}, "commit ")
		case 'a':
			deliver(parley.Msg{Kind: parley.Decide}, "abort ")
		case 'C':
			deliver(parley.Msg{Kind: Ended}, "commit ")
		case 'A':
			deliver(parley.Msg{Kind: Ended}, "abort ")
		case 'f':
			do.Msg = parley.Msg{Kind: Refused, Seq: NameTaken, Body: []byte(rest)}
			h.Deliveries = append(h.Deliveries, do)
		case 'b':
			do.Msg = parley.Msg{Kind: Blocked, Value: uint64(rest[0] - '0')}
			do.Msg.Body = append(parley.AppendSet(nil, parley.SetOf(0)), rest[1:]...)
			h.Indications = append(h.Indications, do)
		case 'r':
			h.Restarts = append(h.Restarts, do)
		case 'x':
			h.Faulty.Add(at)
		}
	}
	return h
}

// Each transaction is judged by itself, and by what its name stands for.
func TestJudging(t *testing.T) {
	for run, want := range map[string]string{
		"0qa 0y5a 1y5a 2y5a 0c5a 1c5a 2c5a end":                 "",
		"0qa 0y5a 1y5a 2n5a 0a5a 1a5a 2a5a end":                 "",
		"0qa 0qb 0y5a 1y5a 2y5a 0c5a 0y6b 1n6b 1a6b 0a6b 1c5a":  "",
		"0qa 0y5a 1y5a 2y5a 0c5a 1a5a":                          "atomicity, non-triviality",
		"0qa 0y5a 1y5a 2n5a 0c5a":                               "commit validity",
		"0qa 0y5a 1y5a 0c5a 1c5a":                               "commit validity", // 2 has a part
		"0qA 0y5A 2y5A 0c5A 2c5A end":                           "",                // 1 has none
		"0qa 0c5a":                                              "commit validity",
		"0qa 0y5a 1y5a 2y5a 0a5a 1a5a 2a5a end":                 "non-triviality",
		"0qa 0y5a 1y5a 2n5a 0a5a 0a5a":                          "stability",
		"0qa 0y5a 1y5a 2n5a 0a5a 1a5a end":                      "termination",
		"0qa 0y5a 1y5a 2n5a 0a5a 1a5a 2r end":                   "",            // it has forgotten the transaction
		"0qa 0y5a 1y5a 2y5a 0c5a 1c5a 2r end":                   "termination", // its yes was durable
		"0qa 0y5a 1y5a 2y5a 0c5a 1c5a 2c5a 2r end":              "",
		"0qa 0y5a 1y5a 2r 2y5a 0a5a 1a5a end":                   "termination",
		"0qa 0y5a 1y5a 2x 1b5a end":                             "termination, non-blocking, answers",
		"0qa 0y5a 1y5a 2x 0x 1b5a end":                          "", // no majority is left
		"1b5a end":                                              "",
		"0qa 0y5a 0qa 0a5a end":                                 "",
		"0qa 0y5a 0a5a 0qa 0A5a end":                            "",
		"0qa 0y5a 0a5a 0qa end":                                 "answers",
		"0qa 0y5a 0r end":                                       "",
		"0qa 0fa 1qb end":                                       "answers",
		"1qb 1x 0qa 0fa end":                                    "",
		"0qa 0y5a 0a5a 0qa 0C5a end":                            "names",
		"0qa 0y5a 0a5a 0qA 0A5a end":                            "names", // a different transaction
		"0qa 0y5a 0fa":                                          "names",
		"0qa 0y5a 0qA 0qa 0fa":                                  "", // both were requested
		"0qa 0y5a 0qA 0qa 0fa 0fa":                              "names",
		"0qa 1qa 0y5a 0y6a":                                     "names",
		"0qa 1qa 1y5a 1a6a":                                     "names",
		"0qa 1qa 1y5a 1a5a 1a6a":                                "",
		"0qa 0y5a 1y5a 2y5a 0c5a 0qa 0fa":                       "names",
		"0qa 0y5a 1y5a 2y5a 0c5a 0qA 0fa":                       "",
		"0qa 0y5a 1y5a 2y5a 0r 0qA 0y5A":                        "names",
		"0qa 1qa 1y5a 1a5a 1y6a":                                "",
		"0qa 1qa 1y5a 1r 1y6a":                                  "",
		"0qa 1qa 1y5a 1r 1y5a 1y6a":                             "names",
		"0qa 1qa 0y5a 1y5a 2y5a 0c5a 1c5a 1r 1y6a":              "names",
		"0qa 1qa 0y5a 1y5a 2y5a 0c5a 1c5a 1r 1x 1y6a":           "",
		"0qa 0y5a 1y5a 2y5a 0c5a 1y6a 0y6a":                     "names",
		"0qa 0y5a 1y5a 2y5a 1c5a 1c6a 0y6a 2y6a 2c5a 2c6a 0c6a": "commit validity, names",
	} {
		if got := brokenOf(Judging{Of: problem.Uniform, Majority: true}, judgedRun(run)); got != want {
			t.Errorf("%s: broken %q, want %q", run, got, want)
		}
	}
}

func brokenOf(j Judging, h *parley.History) string {
	var out []string
	for _, p := range j.Properties() {
		if p.Check(h) != nil {
			out = append(out, p.Name)
		}
	}
	return strings.Join(out, ", ")
}

// Where processes use different paths, the name identifies a transaction, and faulty processes do not count.
func TestJudgingByName(t *testing.T) {
	j := Judging{Of: problem.AmongCorrect, ByName: true}
	for run, want := range map[string]string{
		"0qa 0y5a 1y6a 2y7a 0c5a 1c6a 2c7a end":             "",
		"0qa 0y5a 1y6a 2y7a 0c5a 1a6a":                      "atomicity, non-triviality",
		"0qa 0y5a 1y6a 2n7a 2x 0c5a 1c6a end":               "",
		"0qa 0y5a 1y6a 2n7a 0a5a 1a6a 2a7a end":             "",
		"0qa 0y5a 0a5a 0qa 0C5a":                            "names",
		"0qa 0y5a 1y6a 2y7a 0c5a 1c6a 2c7a 1r 1qa 1c9a end": "", // it asks others for what it has forgotten
		"0qa 2qA 0y5a 2y6a 2y7A":                            "names",
	} {
		if got := brokenOf(j, judgedRun(run)); got != want {
			t.Errorf("%s: broken %q, want %q", run, got, want)
		}
	}
}

// A property that demands nothing of a run says why.
func TestJudgingVacuous(t *testing.T) {
	for run, want := range map[string]int{"": 8, "0qa": 6, "0qa 0y5a 1y5a 2y5a 0c5a 1c5a": 1, "0qa 0y5a 1n5a 1a5a": 4} {
		vacuous := 0
		for _, p := range (Judging{Of: problem.Uniform}).Properties() {
			if p.Vacuous != nil && p.Vacuous(judgedRun(run)) != "" {
				vacuous++
			}
		}
		if vacuous != want {
			t.Errorf("%s: %d demand nothing, want %d", run, vacuous, want)
		}
	}
}

// A participant reads requests in words.
func TestOrders(t *testing.T) {
	for body, want := range map[string]string{
		"a yyn": "a yyn", "a y-n": "a y-n", "yny": "t1 yny", "1": "t1 yyy", "no": "t1 nnn", "  a  yyy ": "a yyy",
		"": "", "a": "", "a yy": "", "a yyx": "", "a b yyy": "", strings.Repeat("a", 256) + " yyy": "",
	} {
		name, votes, ok := readOrder([]byte(body), 1, 3)
		if got := strings.TrimSpace(name + " " + votes); ok && got != want || ok != (want != "") {
			t.Errorf("%q: %q, %t", body, got, ok)
		}
	}
	of := specOf(1, "a", "y-n")
	if read, ok := ReadSpec(of.Encode(), 3); !ok || !slices.Equal(read.Members, []parley.ID{1, 0, 2}) || len(read.Parts) != 2 {
		t.Errorf("%+v, %t", read, ok)
	}
}
