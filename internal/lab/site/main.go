// Command site writes the lab (the web page of "parley lab") as static files into a folder. The engine of the page
// is compiled to WebAssembly. Any web server can serve the folder, at any path. The command needs the go command
// and the source of Parley.
//
//	go run ./internal/lab/site -out dist/site
//	go run ./internal/lab/site -size
//
// # Decisions
//
// The engine is compiled without inlining. Motive: the compressed program is 13 % smaller. Cost: a run takes up to
// twice as long, which is still a fraction of its budget; docs/lab-performance.md has the figures.
//
// Code that sorts by a comparison is compiled once, and not once for each type. Motive: the compressed program is 80 kB
// smaller. Cost: sorting in the browser is slower. The build replaces a file of Go's library, and a new version of Go
// may change this file. The order of equal elements is the same, because package sort uses the same algorithm without
// type parameters.
//
// The build bundles all scripts into one script, and all style sheets into one, by the tool esbuild. Motive: one script
// loads faster than thirty, and one style sheet compresses better than seven. The names contain a hash, so no cache can
// mix two versions. Cost: the static page is not, byte for byte, the page that "parley lab" serves. The module
// tools/browser tests both.
//
// The folder contains what the page first shows of each run of the gallery: the answers of the engine, made when the
// folder is written. Motive: a browser takes seconds to load the engine, and shows these runs in less than one second.
// Cost: the folder is 7 MB larger, and a browser loads only the runs that it shows. The list of questions in stored.go
// repeats what the views of the page ask. A question that is missing there waits for the engine.
//
// The folder contains the compiled engine twice: compressed and uncompressed. Motive: few servers compress WebAssembly,
// and old browsers cannot decompress it. Cost: the folder is larger. A browser loads only one of the two files.
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"parley/catalog"
	"parley/docs/scenarios"
	"parley/internal/draw/svg"
	"parley/internal/lab/engine"
	"parley/internal/lab/page"
	"parley/internal/lab/server"
	"parley/internal/must"
)

// mark is a file by which a later call knows a folder that it may replace.
const mark = ".parley-site"

// maxSize is the size that the compressed program may have, in bytes. The aim is 3.0 MB, and it has 3.68 MB: this limit
// only keeps it from growing.
const maxSize = 3_700_000

// most are the sizes that all files of a kind may have together, compressed, in bytes.
var most = map[string]int{".js": 70_000, ".css": 12_000}

func main() {
	out := flag.String("out", "dist/site", "the `folder` to write; what is in it is removed")
	root := flag.String("root", ".", "the `folder` of the module")
	size := flag.Bool("size", false, "write nothing: only demand that the program and the scripts are small enough")
	flag.Parse()
	if err := work(*root, *out, *size); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func work(root, out string, size bool) (err error) {
	defer must.Return(&err)
	version := versionOf(root)
	program := compile(root, version)
	packed := pack(program)
	fmt.Printf("parley.wasm: %d bytes, compressed %d\n", len(program), len(packed))
	if len(packed) > maxSize {
		must.Failf("the compressed program may have %d bytes", maxSize)
	}
	folder, stored := storedFolder(storedAnswers(engine.New(catalog.All(), scenarios.Files, version)))
	files := pageFiles(version, folder)
	files["parley.wasm"], files["parley.wasm.gz"] = program, packed
	files["wasm_exec.js"] = must.Get(os.ReadFile(filepath.Join(goroot(), "lib", "wasm", "wasm_exec.js")))
	bundle(root, files)
	maps.Copy(files, stored)
	sizes := make(map[string]int)
	for name, b := range files { // order: a sum
		sizes[filepath.Ext(name)] += len(pack(b))
	}
	for _, kind := range slices.Sorted(maps.Keys(most)) {
		fmt.Printf("files %s: compressed %d\n", kind, sizes[kind])
		if sizes[kind] > most[kind] {
			must.Failf("the compressed files %s may have %d bytes", kind, most[kind])
		}
	}
	if size {
		return nil
	}
	files[".nojekyll"] = nil // GitHub Pages publishes all files unchanged
	files[mark] = nil
	files["LICENSE.txt"] = must.Get(os.ReadFile(filepath.Join(root, "LICENSE")))
	write(out, files)
	fmt.Printf("%s: %d files of %s\n", out, len(files), version)
	return nil
}

// versionOf returns the last commit of the source and its date. It fails by must.
func versionOf(root string) string {
	commit := exec.Command("git", "log", "-1", "--format=commit %H of %cs")
	commit.Dir = root
	changes := exec.Command("git", "status", "--porcelain")
	changes.Dir = root
	version := strings.TrimSpace(string(must.Get(commit.Output())))
	if len(must.Get(changes.Output())) > 0 {
		version += ", with changes"
	}
	return version
}

// goroot returns the folder of Go. It fails by must.
func goroot() string {
	return strings.TrimSpace(string(must.Get(exec.Command("go", "env", "GOROOT").Output())))
}

// compile returns the engine as WebAssembly. It fails by must.
func compile(root, version string) []byte {
	dir := must.Get(os.MkdirTemp("", "parley-site-"))
	defer os.RemoveAll(dir)
	dir = must.Get(filepath.Abs(dir))
	file := filepath.Join(dir, "parley.wasm")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-l",
		"-overlay="+overlay(goroot(), dir), "-ldflags=-s -w -X 'main.version="+version+"'", "-o", file, "./cmd/labwasm")
	build.Dir = root
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	build.Stderr = os.Stderr
	must.Do(build.Run())
	return must.Get(os.ReadFile(file))
}

// pack returns b compressed. It fails by must.
func pack(b []byte) []byte {
	var out bytes.Buffer
	w := must.Get(gzip.NewWriterLevel(&out, gzip.BestCompression))
	must.Get(w.Write(b))
	must.Do(w.Close())
	return out.Bytes()
}

// pageFiles returns the files of the page in its static form, with stored answers in a folder. It fails by must.
func pageFiles(version, stored string) map[string][]byte {
	files := map[string][]byte{"scene.css": svg.Sheet()}
	must.Do(fs.WalkDir(page.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[name], err = fs.ReadFile(page.Files, name)
		}
		return err
	}))
	files["index.html"] = []byte(static(string(files["index.html"]), version, stored))
	return files
}

// static returns the page with its engine in the browser, and with the policy that otherwise the server states. The
// policy does not say who may show the page in a frame, because a page cannot say that itself. It fails by must.
func static(html, version, stored string) string {
	const engine, charset = `<meta name="parley-engine" content="server">`, `<meta charset="utf-8">`
	for _, tag := range []string{engine, charset} {
		if strings.Count(html, tag) != 1 {
			must.Failf("index.html has the tag %s %d times", tag, strings.Count(html, tag))
		}
	}
	if first, _, _ := strings.Cut(html, charset); strings.Contains(first, "<script") || strings.Contains(first, "<link") {
		must.Failf("index.html has more than its head before %s", charset)
	}
	html = strings.Replace(html, engine, strings.Replace(engine, "server", "wasm", 1), 1)
	var kept strings.Builder // there is one script, and nothing to load before it asks
	for line := range strings.Lines(html) {
		if !strings.HasPrefix(line, `<link rel="modulepreload"`) {
			kept.WriteString(line)
		}
	}
	html = kept.String()
	return strings.Replace(html, charset, charset+"\n"+
		`<meta http-equiv="Content-Security-Policy" content="`+server.Policy+`">`+"\n"+
		`<meta name="referrer" content="no-referrer">`+"\n"+
		`<meta name="generator" content="Parley, `+version+`">`+"\n"+
		`<meta name="parley-answers" content="`+stored+`">`+"\n"+
		`<link rel="preload" href="`+stored+`/about.json" as="fetch" crossorigin>`, 1)
}

// write replaces a folder that an earlier call wrote. It fails by must.
func write(out string, files map[string][]byte) {
	switch entries, err := os.ReadDir(out); {
	case err == nil && len(entries) > 0:
		_, unmarked := os.Stat(filepath.Join(out, mark))
		if _, err := os.Lstat(filepath.Join(out, ".git")); unmarked != nil || err == nil {
			must.Failf("%s is not empty, and not a site: choose another folder", out)
		}
		must.Do(os.RemoveAll(out))
	case err != nil && !os.IsNotExist(err):
		must.Do(err)
	}
	for name, b := range files { // order: each file is written by itself
		file := filepath.Join(out, filepath.FromSlash(name))
		must.Do(os.MkdirAll(filepath.Dir(file), 0o755))
		must.Do(os.WriteFile(file, b, 0o644))
	}
}
