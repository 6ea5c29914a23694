package main

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"parley/internal/must"
)

// bundle makes few files of the scripts and style sheets of the page. The names of all files that index.html leads to
// have a hash of their contents, so no cache mixes files of two versions. It fails by must.
func bundle(root string, files map[string][]byte) {
	for _, name := range []string{"parley.wasm", "parley.wasm.gz", "wasm_exec.js"} {
		rename(files, name, "worker.js")
	}
	worker := rename(files, "worker.js", "wasm.js")
	index := string(files["index.html"])
	index = oneSheet(index, files)
	made := esbuild(root, files, []string{"app.js", sheet})
	for name := range files { // order: each file is removed by itself
		switch keep := name == worker || strings.HasPrefix(name, "wasm_exec-"); path.Ext(name) {
		case ".js", ".css":
			if !keep {
				delete(files, name)
			}
		}
	}
	for name, of := range made { // order: an entry's name occurs in no other name
		files[name] = of.bytes
		if of.entry != "" {
			index = replaced("index.html", index, of.entry, name)
		}
	}
	files["index.html"] = []byte(index)
}

// sheet is the name of the style sheet that has the contents of all others.
const sheet = "lab.css"

// oneSheet makes one style sheet of those that a page names, in their order, and returns the page with that one.
func oneSheet(index string, files map[string][]byte) string {
	links := regexp.MustCompile(`<link rel="stylesheet" href="([^"]+)">\n`)
	for i, found := range links.FindAllStringSubmatch(index, -1) {
		if i == 0 {
			index = strings.Replace(index, found[0], strings.Replace(found[0], found[1], sheet, 1), 1)
		} else {
			index = strings.Replace(index, found[0], "", 1)
		}
		files[sheet] = append(files[sheet], files[found[1]]...)
	}
	return index
}

// rename adds a hash to the name of a file, also in the script that names it, and returns the new name. It fails by
// must.
func rename(files map[string][]byte, name, in string) string {
	b, ok := files[name]
	if !ok {
		must.Failf("the page has no %s", name)
	}
	sum := sha256.Sum256(b)
	base, kind, _ := strings.Cut(name, ".")
	hashed := base + "-" + base32.StdEncoding.EncodeToString(sum[:5]) + "." + kind
	files[hashed] = b
	delete(files, name)
	files[in] = []byte(replaced(in, string(files[in]), name, hashed))
	return hashed
}

// replaced replaces a name within quotes. It fails by must.
func replaced(in, text, name, by string) string {
	out := strings.NewReplacer(`"`+name+`"`, `"`+by+`"`, `"./`+name+`"`, `"./`+by+`"`).Replace(text)
	if out == text {
		must.Failf("%s does not name %q", in, name)
	}
	return out
}

// made is a file that esbuild has made.
type made struct {
	bytes []byte
	entry string // the file of which it was made, if index.html names that
}

// esbuild bundles entries, which are some of the files. It fails by must.
func esbuild(root string, files map[string][]byte, entries []string) map[string]made {
	find := exec.Command("go", "tool", "-modfile=tools/go.mod", "-n", "esbuild")
	find.Dir, find.Stderr = root, os.Stderr
	tool := strings.TrimSpace(string(must.Get(find.Output())))
	dir := must.Get(os.MkdirTemp("", "parley-site-"))
	defer os.RemoveAll(dir)
	write(filepath.Join(dir, "in"), files)
	run := exec.Command(tool, append([]string{
		"--bundle", "--format=esm", "--minify", "--target=es2022", "--legal-comments=none",
		"--entry-names=[name]-[hash]", "--outdir=../out", "--metafile=../meta.json",
		"--log-level=warning", "--log-override:unsupported-dynamic-import=silent",
	}, entries...)...)
	run.Dir, run.Stderr = filepath.Join(dir, "in"), os.Stderr
	must.Do(run.Run())
	var meta struct {
		Outputs map[string]struct{ EntryPoint string }
	}
	must.Do(json.Unmarshal(must.Get(os.ReadFile(filepath.Join(dir, "meta.json"))), &meta))
	out := make(map[string]made)
	for name, of := range meta.Outputs { // order: each file is read by itself
		name = path.Base(name)
		m := made{bytes: must.Get(os.ReadFile(filepath.Join(dir, "out", name)))}
		for _, entry := range entries {
			if of.EntryPoint == entry {
				m.entry = entry
			}
		}
		out[name] = m
	}
	return out
}
