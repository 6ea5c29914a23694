package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// filePatch is what a patch does to one file.
type filePatch struct {
	path  string
	hunks []hunk
}

// hunk replaces some lines by others. Lines keep their newline.
type hunk struct {
	line     int // where the old lines stood when the patch was made, from 1
	old, new []string
}

var hunkHeader = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// parsePatch reads a unified diff. Lines before the first file and those that
// git adds between files are skipped. Errors name the line.
func parsePatch(text string) ([]filePatch, error) {
	var files []filePatch
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); {
		line := strings.TrimRight(lines[i], "\n")
		switch {
		case strings.HasPrefix(line, "--- ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+++ "):
			path, err := patchedPath(line, strings.TrimRight(lines[i+1], "\n"))
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			files = append(files, filePatch{path: path})
			i += 2
		case strings.HasPrefix(line, "@@"):
			if len(files) == 0 {
				return nil, fmt.Errorf("line %d: a hunk before the name of a file", i+1)
			}
			h, n, err := parseHunk(lines[i:])
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1+n, err)
			}
			last := &files[len(files)-1]
			last.hunks = append(last.hunks, h)
			i += n
		case len(files) > 0 && len(files[len(files)-1].hunks) > 0 && line != "" && strings.ContainsAny(line[:1], "+- "):
			return nil, fmt.Errorf("line %d: the hunk is longer than its header says", i+1)
		default:
			i++
		}
	}
	for _, f := range files {
		if len(f.hunks) == 0 {
			return nil, fmt.Errorf("nothing changes in %s", f.path)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no file is changed: a line --- and a line +++ were expected")
	}
	return files, nil
}

// patchedPath returns the path that both header lines name.
func patchedPath(minus, plus string) (string, error) {
	name := func(line, prefix string) string {
		path, _, _ := strings.Cut(line[4:], "\t")
		return strings.TrimPrefix(strings.TrimSpace(path), prefix)
	}
	from, to := name(minus, "a/"), name(plus, "b/")
	if from != to {
		return "", fmt.Errorf("%q becomes %q: a mutant changes files in their place", from, to)
	}
	return from, nil
}

// parseHunk reads the hunk that lines begin with and tells how many lines it
// takes up. With an error, it tells where.
func parseHunk(lines []string) (h hunk, n int, err error) {
	head := hunkHeader.FindStringSubmatch(lines[0])
	if head == nil {
		return h, 0, fmt.Errorf("not the header of a hunk: %q", strings.TrimSpace(lines[0]))
	}
	h.line, _ = strconv.Atoi(head[1])
	left := [2]int{1, 1} // lines still to come, old and new
	for i, count := range head[2:] {
		if count != "" {
			left[i], _ = strconv.Atoi(count)
		}
	}
	for n = 1; left[0] > 0 || left[1] > 0; n++ {
		if n == len(lines) || lines[n] == "" {
			return h, n, fmt.Errorf("the hunk is shorter than its header says")
		}
		sign, body := lines[n][0], lines[n][1:]
		if sign == '\n' { // an empty line of context whose blank an editor has eaten
			sign, body = ' ', "\n"
		}
		if n+1 < len(lines) && strings.HasPrefix(lines[n+1], `\`) {
			body = strings.TrimSuffix(body, "\n")
		}
		switch sign {
		case ' ':
			h.old, h.new = append(h.old, body), append(h.new, body)
			left[0], left[1] = left[0]-1, left[1]-1
		case '-':
			h.old = append(h.old, body)
			left[0]--
		case '+':
			h.new = append(h.new, body)
			left[1]--
		case '\\':
		default:
			return h, n, fmt.Errorf("a line of a hunk begins with %q", sign)
		}
	}
	if left != [2]int{} {
		return h, n, fmt.Errorf("the lines of the hunk do not add up to its header")
	}
	return h, n, nil
}

// apply returns the text with all hunks applied. Old lines must match exactly,
// but may have moved up or down since the patch was made.
func apply(text string, hunks []hunk) (string, error) {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	var out []string
	done, moved := 0, 0 // lines of the text used up; how far the last hunk had moved
	for i, h := range hunks {
		expected := h.line - 1
		if len(h.old) == 0 {
			expected = h.line // it stands behind the line that its header names
		}
		at := find(lines, h.old, expected+moved, done)
		if at < 0 {
			return "", fmt.Errorf("hunk %d (line %d) does not match", i+1, h.line)
		}
		out = append(out, lines[done:at]...)
		out = append(out, h.new...)
		done, moved = at+len(h.old), at-expected
	}
	return strings.Join(append(out, lines[done:]...), ""), nil
}

// find returns where the wanted lines stand, nearest to the line expected and
// not before first, or -1.
func find(lines, want []string, expected, first int) int {
	matches := func(at int) bool {
		if at < first || at+len(want) > len(lines) {
			return false
		}
		for i, w := range want {
			if lines[at+i] != w {
				return false
			}
		}
		return true
	}
	for distance := range len(lines) + max(expected, 0) + 1 {
		for _, at := range [...]int{expected - distance, expected + distance} {
			if matches(at) {
				return at
			}
		}
		if len(want) == 0 { // without context only the exact place will do
			break
		}
	}
	return -1
}
