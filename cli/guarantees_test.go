package cli_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"parley/catalog"
	"parley/internal/golden"
)

// The page on guarantees contains the table as printed, and mentions every protocol and no other.
func TestGuaranteesPage(t *testing.T) {
	const file = "../docs/reference/guarantees.md"
	const begin, end = "<!-- guarantees -->\n", "<!-- end -->"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	table, stderr, status := run("list", "--guarantees")
	if status != 0 {
		t.Fatal(stderr)
	}
	before, rest, ok := bytes.Cut(page, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		t.Fatal("the page has no place for the table")
	}
	want := string(before) + begin + "\n```\n" + table + "```\n\n" + end + string(after)
	golden.Compare(t, file, []byte(want))

	known := make(map[string]bool)
	for _, p := range catalog.All() {
		known[p.Name] = true
		if !strings.Contains(string(before), "`"+p.Name+"`") && p.Name != "agreement" {
			t.Errorf("the guide does not lead to %s", p.Name)
		}
	}
	for _, quoted := range regexp.MustCompile("\\| [^|]*`([a-z-]+)`").FindAllStringSubmatch(string(before), -1) {
		if !known[quoted[1]] {
			t.Errorf("the guide leads to %s, which is no protocol", quoted[1])
		}
	}
}
