package main

import (
	"strings"
	"testing"
)

const poem = `one
two
three

four
five
six
seven
eight
nine
`

func TestApply(t *testing.T) {
	for _, c := range []struct{ name, patch, want string }{
		{
			"one line for another",
			"--- a/poem\n+++ b/poem\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
			strings.Replace(poem, "two", "2", 1),
		},
		{
			"header lines of ours and of git's, times behind the names",
			"# breaks: all\ndiff --git a/poem b/poem\nindex 12..34 100644\n--- a/poem\t2020-01-01\n+++ b/poem\t2020-01-02\n" +
				"@@ -2 +2 @@ func x() {\n-two\n+2\n",
			strings.Replace(poem, "two", "2", 1),
		},
		{
			"two hunks, the second one moved by the first",
			"--- a/poem\n+++ b/poem\n@@ -1,2 +1,4 @@\n one\n+1.3\n+1.6\n two\n@@ -9,2 +11,1 @@\n eight\n-nine\n",
			strings.NewReplacer("one\n", "one\n1.3\n1.6\n", "nine\n", "").Replace(poem),
		},
		{
			"a hunk whose lines have moved down",
			"--- a/poem\n+++ b/poem\n@@ -3,2 +3,2 @@\n six\n-seven\n+7\n",
			strings.Replace(poem, "seven", "7", 1),
		},
		{
			"a hunk whose lines have moved up",
			"--- a/poem\n+++ b/poem\n@@ -40,2 +40,2 @@\n six\n-seven\n+7\n",
			strings.Replace(poem, "seven", "7", 1),
		},
		{
			"an empty line of context, with its blank and without",
			"--- a/poem\n+++ b/poem\n@@ -3,3 +3,3 @@\n three\n\n-four\n+4\n",
			strings.Replace(poem, "four", "4", 1),
		},
		{
			"without context, behind the line named",
			"--- a/poem\n+++ b/poem\n@@ -2,0 +3,1 @@\n+2.5\n",
			strings.Replace(poem, "two\n", "two\n2.5\n", 1),
		},
		{
			"a line that looks like a header",
			"--- a/poem\n+++ b/poem\n@@ -1,1 +1,2 @@\n one\n+++ b/poem\n",
			strings.Replace(poem, "one\n", "one\n++ b/poem\n", 1),
		},
		{
			"no newline at the end",
			"--- a/poem\n+++ b/poem\n@@ -10 +10 @@\n-nine\n+9\n\\ No newline at end of file\n",
			strings.Replace(poem, "nine\n", "9", 1),
		},
	} {
		files, err := parsePatch(c.patch)
		if err != nil || len(files) != 1 || files[0].path != "poem" {
			t.Errorf("%s: parsed %v, %v", c.name, files, err)
			continue
		}
		got, err := apply(poem, files[0].hunks)
		if err != nil || got != c.want {
			t.Errorf("%s: %v\n%s", c.name, err, got)
		}
	}
}

// Of several places that match, the nearest to the line named is meant.
func TestApplyNearest(t *testing.T) {
	text := strings.Repeat("same\n", 9)
	got, err := apply(text, []hunk{{line: 5, old: []string{"same\n"}, new: []string{"other\n"}}})
	want := strings.Repeat("same\n", 4) + "other\n" + strings.Repeat("same\n", 4)
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
}

// A hunk never reaches back before the one in front of it.
func TestApplyInOrder(t *testing.T) {
	hunks := []hunk{
		{line: 5, old: []string{"five\n"}, new: []string{"5\n"}},
		{line: 2, old: []string{"two\n"}, new: []string{"2\n"}},
	}
	if got, err := apply(poem, hunks); err == nil {
		t.Errorf("applied:\n%s", got)
	}
}

func TestApplyRefuses(t *testing.T) {
	for _, h := range []hunk{
		{line: 2, old: []string{"two \n"}},
		{line: 2, old: []string{"two\n", "four\n"}},
		{line: 10, old: []string{"nine\n", "ten\n"}},
		{line: 99, new: []string{"a line behind the end\n"}},
	} {
		if got, err := apply(poem, []hunk{h}); err == nil {
			t.Errorf("%v applied:\n%s", h, got)
		}
	}
}

func TestParsePatchRefuses(t *testing.T) {
	for _, c := range []struct{ name, patch, want string }{
		{"nothing", "# breaks: all\n", "no file is changed"},
		{"no hunk", "--- a/x\n+++ b/x\n", "nothing changes in x"},
		{"no file", "@@ -1 +1 @@\n-a\n+b\n", "line 1: a hunk before"},
		{"another file", "--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "changes files in their place"},
		{"a new file", "--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+b\n", "changes files in their place"},
		{"bad header", "--- a/x\n+++ b/x\n@@ nonsense @@\n", "line 3: not the header"},
		{"too short", "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n", "shorter than its header"},
		{"too long", "--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-a\n+b\n c\n", "line 6: the hunk is longer"},
		{"bad counts", "--- a/x\n+++ b/x\n@@ -1,1 +1,2 @@\n-a\n-b\n+c\n+d\n", "do not add up"},
		{"bad sign", "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n*a\n", `line 4: a line of a hunk begins with '*'`},
	} {
		if _, err := parsePatch(c.patch); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestParseTwoFiles(t *testing.T) {
	files, err := parsePatch("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/y/z\n+++ b/y/z\n@@ -7 +7 @@\n-c\n+d\n")
	if err != nil || len(files) != 2 || files[0].path != "x" || files[1].path != "y/z" || files[1].hunks[0].line != 7 {
		t.Errorf("%v, %v", files, err)
	}
}
