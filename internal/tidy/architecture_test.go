package tidy

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// ARCHITECTURE.md can be read in 15 minutes, and the files that it names exist.
const architectureLines = 200

var namedFile = regexp.MustCompile("`([a-z0-9_/.]+/[a-z0-9_]+\\.(?:go|md)|[a-z0-9_]+\\.go)`")

// architectureBreaches checks the page against the files of the module.
func architectureBreaches(page []byte, there map[string]bool) (out []string) {
	if n := bytes.Count(page, []byte("\n")); n > architectureLines {
		out = append(out, fmt.Sprintf("ARCHITECTURE.md: %d lines: at most %d", n, architectureLines))
	}
	for _, named := range namedFile.FindAllSubmatch(page, -1) {
		file := string(named[1])
		if alone := !strings.Contains(file, "/"); !there[file] && !(alone && there["*/"+file]) {
			out = append(out, fmt.Sprintf("ARCHITECTURE.md: there is no file %s", file))
		}
	}
	return out
}

func TestArchitecture(t *testing.T) {
	there := make(map[string]bool)
	var page []byte
	for _, s := range loaded(t).files {
		there[s.path] = true
		there["*/"+s.path[strings.LastIndexByte(s.path, '/')+1:]] = true // lies.go of any package
		if s.path == "ARCHITECTURE.md" {
			page = s.text
		}
	}
	if page == nil {
		t.Fatal("there is no ARCHITECTURE.md")
	}
	report(t, architectureBreaches(page, there))
}

func TestArchitectureCatches(t *testing.T) {
	there := map[string]bool{"a/b.go": true, "*/b.go": true}
	expect(t, "what is there", architectureBreaches([]byte("`a/b.go`, `b.go`, `a/`"), there))
	expect(t, "a file that is gone", architectureBreaches([]byte("see `a/c.go`"), there), "there is no file a/c.go")
	expect(t, "a name that is gone", architectureBreaches([]byte("see `c.go`"), there), "there is no file c.go")
	expect(t, "a long page", architectureBreaches(bytes.Repeat([]byte("\n"), 201), there), "201 lines: at most 200")
}
