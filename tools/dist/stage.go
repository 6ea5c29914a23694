package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// stage makes the files that are the same in all packages.
func (r *release) stage() error {
	return errors.Join(r.manPages(), r.completions(), exampleConfig(), r.licenses())
}

// inSource runs the go command in the clone.
func inSource(args ...string) (string, error) {
	return command("source", []string{"GOFLAGS=-trimpath"}, "go", args...)
}

// completions writes a script for each shell, under the name that the shell expects.
func (r *release) completions() error {
	for shell, name := range map[string]string{"bash": "parley.bash", "zsh": "_parley", "fish": "parley.fish"} {
		script, err := inSource("run", "./cmd/parley", "completion", shell)
		if err != nil {
			return err
		}
		if err := write(filepath.Join("stage/completions", name), script); err != nil {
			return err
		}
	}
	return nil
}

// exampleConfig writes the configuration that "parley node --example" prints, with the folders of the package.
func exampleConfig() error {
	text, err := inSource("run", "./cmd/parley", "node", "--example")
	if err != nil {
		return err
	}
	const from, to = "\ndata: data\n", "\ndata: /var/lib/parley\n"
	if strings.Count(text, from) != 1 {
		return fmt.Errorf("parley node --example has no line %q", strings.TrimSpace(from))
	}
	return write("stage/node.yaml", strings.Replace(text, from, to, 1))
}

// manPages writes the man pages, and once more compressed, as packages have them.
func (r *release) manPages() error {
	pages, err := filepath.Abs("stage/man1")
	if err != nil {
		return err
	}
	if _, err := inSource("run", "./internal/reference", "-man", pages); err != nil {
		return err
	}
	names, err := filepath.Glob("stage/man1/*.1")
	if err != nil || len(names) == 0 {
		return errors.Join(err, errors.New("there are no man pages"))
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var small bytes.Buffer
		z, _ := gzip.NewWriterLevel(&small, gzip.BestCompression) // which fails only for a level that does not exist
		_, err = z.Write(text)
		if err = errors.Join(err, z.Close()); err != nil {
			return err
		}
		if err := write(filepath.Join("stage/man1.gz", filepath.Base(name)+".gz"), small.String()); err != nil {
			return err
		}
	}
	return nil
}

// licenses writes the license of Go and those of all modules in any of the binaries, which ask for that.
func (r *release) licenses() error {
	goroot, err := inSource("env", "GOROOT")
	if err != nil {
		return err
	}
	folders := map[string]string{"Go " + r.binaries[0].info.GoVersion: strings.TrimSpace(goroot)}
	titles := []string{"Go " + r.binaries[0].info.GoVersion}
	for _, b := range r.binaries {
		for _, m := range b.info.Deps {
			title := m.Path + " " + m.Version
			if folders[title] == "" {
				dir, err := inSource("list", "-m", "-f", "{{.Dir}}", m.Path)
				if err != nil {
					return err
				}
				folders[title], titles = strings.TrimSpace(dir), append(titles, title)
			}
		}
	}
	slices.Sort(titles[1:])
	var text strings.Builder
	text.WriteString("Parley contains the works below, under these licenses.\n")
	for _, title := range titles {
		names, err := filepath.Glob(filepath.Join(folders[title], "[LNC][IOi][CTc][EIe]*")) // LICENSE, License, NOTICE
		if err != nil || len(names) == 0 {
			return errors.Join(err, fmt.Errorf("%s: no license in %s", title, folders[title]))
		}
		for _, name := range names {
			license, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			fmt.Fprintf(&text, "\n%s\n%s, %s\n\n%s", strings.Repeat("=", 78), title, filepath.Base(name), license)
		}
	}
	return write("stage/THIRD-PARTY-LICENSES", text.String())
}

// write writes a file of the stage.
func write(name, text string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644))
}
