package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"

	"parley/internal/must"
)

// shared makes the functions of package slices that sort by a comparison use the functions of package sort, which exist
// once and not once for each type.
const shared = `
type lessSwap struct {
	Less func(i, j int) bool
	Swap func(i, j int)
}

func lessSwapOf[E any](data []E, cmp func(a, b E) int) lessSwap {
	return lessSwap{
		func(i, j int) bool { return cmp(data[i], data[j]) < 0 },
		func(i, j int) { data[i], data[j] = data[j], data[i] },
	}
}

func pdqsortCmpFunc[E any](data []E, a, b, limit int, cmp func(a, b E) int) {
	pdqsort_func(lessSwapOf(data, cmp), a, b, limit)
}

func stableCmpFunc[E any](data []E, n int, cmp func(a, b E) int) {
	stable_func(lessSwapOf(data, cmp), n)
}
`

// overlay writes the file for the flag -overlay of "go build" into a folder, and returns its name. It fails by must.
func overlay(goroot, dir string) string {
	source := must.Get(os.ReadFile(filepath.Join(goroot, "src", "sort", "zsortfunc.go")))
	if bytes.Count(source, []byte("\npackage sort\n")) != 1 {
		must.Failf("package sort of Go has changed: its functions cannot be shared")
	}
	source = bytes.Replace(source, []byte("\npackage sort\n"), []byte("\npackage slices\n"), 1)
	sorting := filepath.Join(dir, "sorting.go")
	must.Do(os.WriteFile(sorting, append(source, shared...), 0o644))
	replaced := map[string]map[string]string{
		"Replace": {filepath.Join(goroot, "src", "slices", "zsortanyfunc.go"): sorting},
	}
	name := filepath.Join(dir, "overlay.json")
	must.Do(os.WriteFile(name, must.Get(json.Marshal(replaced)), 0o644))
	return name
}
