package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An error in a scenario names the file, the line, the key and what is allowed; nothing runs, and nothing panics.
func TestMalformedScenarios(t *testing.T) {
	for text, want := range map[string]string{
		"":                      ":1: the file is empty: write lines",
		"# nothing":             ":1: the file is empty: write lines",
		"\ufeffprotocol: paxos": `:1: protocol: unknown protocol "paxos"`,
		"protocol: fifo\ncrashes: " + strings.Repeat("[", 1e5): ":1: more than 100 brackets are open: close them",
		"protocol: fifo\n---\nn: 3":                            ":2: a second YAML document begins",
		"\x00\x01":                                             ":1: this is not a mapping: write lines",
		"protocol: eig\n\tn: 4":                                ":2: not YAML at column ",
		"protocol: fifo\nlinks: [{from: 1\nn: 3":               ":3: not YAML at column ",
		"protocol: fifo\nn: 3\nn: 4":                           ":3: the key n is given twice: keep one",
		"n: 4":                                                 `:1: the key "protocol" is missing`,
		"protocol:\nn: 4":                                      `:1: protocol: unknown protocol "": "parley list" names all`,
		"protocol: [eig]":                                      ":1: protocol: a list is not allowed: write one plain value",
		"# c\nprotocol: paxos":                                 `:2: protocol: unknown protocol "paxos": "parley list" names all`,
		"protocol: eig\n1: 2":                                  `:2: unknown key "1": allowed are protocol, alive, `,
		"protocol: eig\nn: &a 4":                               ":2: n: a YAML anchor, alias, or tag is not allowed",
		"protocol: eig\nn:":                                    `:2: n: "": a whole number was expected`,
		"protocol: eig\nn: 4.5":                                `:2: n: "4.5": a whole number was expected`,
		"protocol: eig\nn: -4":                                 ":2: n: -4 processes: allowed are 2 to 256",
		"protocol: eig\nseed: -1":                              `:2: seed: "-1": a whole number from 0 on was expected`,
		"protocol: eig\nbeyond-bound: maybe":                   `:2: beyond-bound: "maybe": allowed are true and false`,
		"protocol: eig\nfaulty: [1, 2]":                        ":2: faulty: a list is not allowed: write PROCESS: BEHAVIOR, as in {1: twofaced",
		"protocol: eig\nfaulty: {1: {a: b}}":                   ":2: faulty: a list or mapping here is not allowed: write PROCESS: BEHAVIOR",
		"protocol: eig\nfaulty: {9: flip}":                     `:2: faulty: "9" is no process: allowed are P1 to P7`,
		"protocol: eig\nfaulty: {2: fly}":                      `:2: faulty: unknown behavior "fly": allowed are honest, silent, `,
		"protocol: eig\nvalues: {1: 0}":                        ":2: values: a mapping is not allowed: write one plain value, or a list",
		"protocol: consensus\nvalues: [1, 2]":                  ":2: values: got 2 values, but 4 processes propose",
		"protocol: eig\nshow: [tables]":                        `:2: show: unknown part "tables": allowed are messages, `,
		"protocol: eig\nsvg: x.svg":                            ":2: svg: it is not allowed in a file: give --svg",
		"protocol: eig\nmemory: 99":                            ":2: memory: it is not allowed in a file: give --memory",
		"protocol: eig\nnames: roman":                          `:2: names: "roman": allowed are article (P1..Pn) and lecture`,
		"protocol: eig\nn: 4\nm: 2":                            ":3: m: with oral messages 4 processes tolerate at most m = 1",
		"protocol: causal\nform: odd":                          `:2: form: `,
		"protocol: fifo\nlinks: 5":                             `:2: links: "5" is not a list: write '[{from: 1, to: [2, 3], loss: 1}]'`,
		"protocol: fifo\nlinks:\n- {from: 1}\n- {form: 1}":     `:4: links: unknown key "form": allowed are delay, from,`,
		"protocol: fifo\ncrashes:\n  - {when: 5}":              ":3: crashes: the key process is missing: add it",
		"protocol: fifo\nrandom: {crashes: 9}":                 ":2: random: 9 processes crash",
		"protocol: fifo\nrequests:\n- {at: 1, broadcast: }":    ":3: requests: broadcast: an empty value is not allowed here",
		// Requests that the protocol cannot handle, with the line of the entry.
		"protocol: fifo\nrequests:\n- {at: 1, broadcast: a}\n- {at: 1, propose: a}":                   ":4: requests: no process proposes a value to fifo",
		"protocol: eig\nrequests:\n- {at: 2, propose: a}":                                             ":3: requests: this process does not propose a value to eig",
		"protocol: eig\nrequests:\n- {at: 1, when: 5, propose: a}":                                    ":3: requests: when: values are proposed before",
		"protocol: om\nworkload: {broadcasts: 3}":                                                     ":2: workload: om has no broadcasts",
		"protocol: om\nfaulty: {2: flip}\ncrashes:\n- {process: 3, when: 4}\n- {process: 2, when: 4}": ":5: crashes: P2 is faulty already",
	} {
		file := filepath.Join(t.TempDir(), "bad.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"run", "--scenario", file}, {"sweep", file}} {
			stdout, stderr, status := run(args...)
			if status != 2 || stdout != "" || !strings.HasPrefix(stderr, "parley: "+file+want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s\n%s: status %d, %s; it is 2, and %q", text, args[0], status, stderr, want)
			}
		}
	}
}
