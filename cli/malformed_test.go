package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An error in a scenario names the file, the line, the key and what is allowed; nothing runs, and nothing panics.
// TestBadInputs has more of them.
func TestMalformedScenarios(t *testing.T) {
	for text, want := range map[string]string{
		"protocol:\nn: 4":                                      `:1: protocol: unknown protocol "": "parley list" names all`,
		"# c\nprotocol: paxos":                                 `:2: protocol: unknown protocol "paxos": "parley list" names all`,
		"protocol: eig\n1: 2":                                  `:2: unknown key "1": allowed are protocol, alive, `,
		"protocol: eig\nfaulty: {1: {a: b}}":                   ":2: faulty: a list or mapping here is not allowed: write PROCESS: BEHAVIOR",
		"protocol: eig\nmemory: 99":                            ":2: memory: it is not allowed in a file: give --memory",
		"protocol: causal\nform: odd":                          `:2: form: `,
		"protocol: fifo\nlinks:\n- {from: 1}\n- {form: 1}":     `:4: links: unknown key "form": allowed are delay, from,`,
		"protocol: fifo\ncrashes:\n  - {when: 5}":              ":3: crashes: the key process is missing: add it",
		"protocol: fifo\nrequests:\n- {at: 1, broadcast: }":    ":3: requests: broadcast: an empty value is not allowed here",
		"\ufeffprotocol: paxos":                                `:1: protocol: unknown protocol "paxos"`,
		"protocol: fifo\ncrashes: " + strings.Repeat("[", 1e5): ":1: more than 100 brackets are open: close them",
		// Requests that the protocol cannot handle, with the line of the entry.
		"protocol: fifo\nrequests:\n- {at: 1, broadcast: a}\n- {at: 1, propose: a}":                   ":4: requests: no process proposes a value to fifo",
		"protocol: eig\nrequests:\n- {at: 2, propose: a}":                                             ":3: requests: this process proposes no value to eig",
		"protocol: eig\nrequests:\n- {at: 1, when: 5, propose: a}":                                    ":3: requests: when: values are proposed before",
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
