package page_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/catalog"
	"parley/internal/draw/svg"
	"parley/internal/lab/page"
)

// each calls f with every file of the page that has one of the extensions.
func each(t *testing.T, extensions string, f func(name, text string)) {
	t.Helper()
	n := 0
	err := fs.WalkDir(page.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(extensions, path.Ext(name)) {
			return err
		}
		b, err := fs.ReadFile(page.Files, name)
		f(name, string(b))
		n++
		return err
	})
	if err != nil || n == 0 {
		t.Fatalf("%d files with %s: %v", n, extensions, err)
	}
}

func own(name string) bool { return !strings.HasPrefix(name, "vendor/") }

// unsafe are ways to make HTML or code of a text, and styles that the content security policy refuses.
var unsafe = regexp.MustCompile(`(?i)inner` + `HTML|outerHTML|insertAdjacent|document\.write|dangerouslySet|srcdoc|` +
	`\beval\b|new Function|"javascript:|style="|<style|cssText|setAttribute\("style|\bon[a-z]+="`)

func TestPageMakesNoHTMLOfText(t *testing.T) {
	each(t, ".js .html", func(name, text string) {
		if found := unsafe.FindString(text); own(name) && found != "" {
			t.Errorf("%s: %s", name, found)
		}
	})
}

// A test of the pattern, which would otherwise pass if it matched nothing.
func TestUnsafeCatches(t *testing.T) {
	for _, text := range []string{"x.inner" + "HTML = y", `<p style="color:red">`, "new Function(x)", `<a onclick="f()">`} {
		if !unsafe.MatchString(text) {
			t.Error(text)
		}
	}
}

// A new protocol needs no line of JavaScript.
func TestPageNamesNoProtocol(t *testing.T) {
	var names []string
	for _, p := range catalog.All() {
		names = append(names, regexp.QuoteMeta(p.Name))
	}
	named := regexp.MustCompile("[\"'`=:,](" + strings.Join(names, "|") + ")[\"'`&,]")
	if !named.MatchString(`{s: "eig"}`) || !named.MatchString("#/run?s=eig&n=7") {
		t.Fatal("the pattern finds nothing")
	}
	role := regexp.MustCompile(`role=("group"|\$\{[^}]*"group"[^}]*\})`) // of ARIA, called like a protocol
	each(t, ".js .html", func(name, text string) {
		if found := named.FindString(role.ReplaceAllString(text, "")); own(name) && found != "" {
			t.Errorf("%s names the protocol %s", name, found)
		}
	})
}

// Everything comes from the same folder: no address leads elsewhere, and every import exists.
func TestPageIsComplete(t *testing.T) {
	imports := regexp.MustCompile(`(?:from|import)\s*\(?\s*"([^"]+)"`)
	links := regexp.MustCompile(`(?:href|src)="([a-z][^"]*)"`)
	given := []string{"scene.css", "wasm_exec.js"} // from the form of the page
	exists := func(name, target string) {
		for _, g := range given {
			if target == g {
				return
			}
		}
		if _, err := fs.Stat(page.Files, target); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	each(t, ".js", func(name, text string) {
		for _, found := range imports.FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(found[1], ".") {
				t.Errorf("%s imports %s, which is not relative", name, found[1])
			}
			exists(name, path.Join(path.Dir(name), found[1]))
		}
	})
	each(t, ".html", func(name, text string) {
		for _, found := range links.FindAllStringSubmatch(text, -1) {
			exists(name, found[1])
		}
	})
	each(t, ".js .html .css", func(name, text string) {
		for _, address := range regexp.MustCompile(`https?://[a-z0-9.]+`).FindAllString(text, -1) {
			if own(name) && address != "http://www.w3.org" {
				t.Errorf("%s: %s", name, address)
			}
		}
	})
}

// The browser need not read a module to find out that it imports the next one: the page names all.
func TestPagePreloads(t *testing.T) {
	html, err := fs.ReadFile(page.Files, "index.html")
	if err != nil {
		t.Fatal(err)
	}
	// What no module imports statically, and what one of these imports in the static form only.
	entries := []string{"app.js", "server.js", "stored.js", "wasm.js", "worker.js"}
	each(t, ".js", func(name, text string) {
		listed := strings.Contains(string(html), fmt.Sprintf(`<link rel="modulepreload" href="%s">`, name))
		if listed == slices.Contains(entries, name) {
			t.Errorf("%s is preloaded: %t", name, listed)
		}
	})
}

// The vendored files are those that VENDOR.md lists.
func TestVendor(t *testing.T) {
	list, err := fs.ReadFile(page.Files, "vendor/VENDOR.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z.]+)` .* `([0-9a-f]{64})` \\|$").FindAllStringSubmatch(string(list), -1)
	sums := make(map[string]string)
	for _, row := range rows {
		sums[row[1]] = row[2]
	}
	each(t, ".js", func(name, text string) {
		if own(name) {
			return
		}
		base := path.Base(name)
		if got := fmt.Sprintf("%x", sha256.Sum256([]byte(text))); got != sums[base] {
			t.Errorf("%s has the sum %s, and VENDOR.md says %q", name, got, sums[base])
		}
		delete(sums, base)
	})
	if len(sums) > 0 {
		t.Errorf("not there: %v", sums)
	}
}

// Every class that a style sheet selects is in a script, or of a picture. Classes of outcomes have a hyphen for a space.
func TestStylesAreUsed(t *testing.T) {
	named := regexp.MustCompile(`\.(-?[a-zA-Z_][\w-]*)`)
	known := make(map[string]bool)
	for _, found := range named.FindAllSubmatch(svg.Sheet(), -1) {
		known[string(found[1])] = true
	}
	each(t, ".js .html", func(name, text string) {
		text += strings.ReplaceAll(text, "budget hit", "budget-hit")
		for _, word := range regexp.MustCompile(`[\w-]+`).FindAllString(text, -1) {
			known[word] = known[word] || own(name)
		}
	})
	n := 0
	each(t, ".css", func(name, text string) {
		text = regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(text, "")
		for _, rule := range regexp.MustCompile(`([^{}]+)\{`).FindAllStringSubmatch(text, -1) {
			for _, found := range named.FindAllStringSubmatch(rule[1], -1) {
				if n++; !known[found[1]] {
					t.Errorf("%s has a rule for the class %s, which nothing has", name, found[1])
				}
			}
		}
	})
	if n < 300 {
		t.Errorf("the style sheets select classes %d times", n)
	}
}

// Limits of sizes.
const (
	moduleLines   = 400
	moduleColumns = 140
	scriptBytes   = 130_000 // compressed, each file by itself with its comments; the static form has bundles of half of that
	styleBytes    = 18_000  // the same
)

func TestPageSizes(t *testing.T) {
	packed := func(text string) int {
		var b bytes.Buffer
		w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Len()
	}
	total := make(map[string]int)
	lines := 0
	each(t, ".js .css", func(name, text string) {
		if !own(name) {
			return
		}
		total[path.Ext(name)] += packed(text)
		if path.Ext(name) != ".js" {
			return
		}
		n := strings.Count(text, "\n")
		if lines += n; n > moduleLines {
			t.Errorf("%s: %d lines: at most %d", name, n, moduleLines)
		}
		if !strings.HasPrefix(text, "// ") {
			t.Errorf("%s does not begin with a comment that says what it is for", name)
		}
		i := 0
		for line := range strings.Lines(text) {
			if i++; len([]rune(strings.TrimRight(line, "\n"))) > moduleColumns && !strings.Contains(line, `: "M`) {
				t.Errorf("%s:%d: more than %d characters", name, i, moduleColumns)
			}
		}
	})
	t.Logf("JavaScript %d bytes compressed, %d lines of our own; CSS %d bytes", total[".js"], lines, total[".css"])
	if total[".js"] > scriptBytes || total[".css"] > styleBytes {
		t.Errorf("compressed sizes: %v", total)
	}
}
