package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/must"
)

// bug is a seeded bug, or FOLDER/* for the bugs of a folder without a line of their own.
type bug struct {
	name     string
	explored string // CASE MOVES PROPERTY, or - REASON
}

// seeded reads the results of exploration from the files PACKAGE/testdata/mutants.txt of the module at root, sorted
// by name. internal/mutants documents these files.
func seeded(root string) (all []bug, err error) {
	defer must.Return(&err)
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		must.Do(err)
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != root {
			return filepath.SkipDir
		}
		folder, is := strings.CutSuffix(filepath.ToSlash(must.Get(filepath.Rel(root, name))), "/testdata/mutants.txt")
		if !is {
			return nil
		}
		all = append(all, bug{name: folder + "/*"})
		for line := range strings.Lines(string(must.Get(os.ReadFile(name)))) {
			key, value, _ := strings.Cut(line, ":")
			switch key {
			case "name":
				all = append(all, bug{name: folder + "/" + strings.TrimSpace(value)})
			case "explored":
				all[len(all)-1].explored = strings.TrimSpace(value)
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b bug) int { return strings.Compare(a.name, b.name) })
	return all, err
}

// tabled returns the tables of the bugs that are found, and of those that are not, grouped by reason.
func tabled(bugs []bug) string {
	var found strings.Builder
	var reasons []string
	count, missed := 0, make(map[string][]string)
	for _, b := range bugs {
		by, rest, _ := strings.Cut(b.explored, " ")
		switch {
		case by == "":
		case by != "-":
			moves, property, _ := strings.Cut(rest, " ")
			fmt.Fprintf(&found, "| %s | %s | %s | %s |\n", b.name, by, moves, property)
			count++
		default:
			if missed[rest] == nil {
				reasons = append(reasons, rest)
			}
			missed[rest] = append(missed[rest], strings.ReplaceAll(b.name, "*", `\*`))
		}
	}
	out := fmt.Sprintf("\n## Seeded bugs that are found\n\nA case finds each of these %d bugs.\n\n", count) +
		"| seeded bug | case | transitions | what breaks |\n| --- | --- | --: | --- |\n" + found.String() +
		"\n## Seeded bugs that are not found\n\nEach line begins with the reason why no case finds the bugs that follow.\n"
	for _, reason := range reasons {
		out += fmt.Sprintf("\n- %s: %s", reason, strings.Join(missed[reason], ", "))
	}
	return out + "\n"
}
