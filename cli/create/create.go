// Package create implements "parley new": it writes a new module with a first protocol or service.
package create

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/console"
)

//go:embed protocol service
var templates embed.FS

// Command is "parley new".
func Command(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Write a module with a new protocol or service",
		Long: "New writes a Go module into a new folder. The module compiles, and has a test and a command. " +
			"New changes no other file. The exit status is 0, or 2 if the folder exists or the name is not " +
			"allowed.",
		Args: cobra.ArbitraryArgs,
		RunE: console.OneOf,
	}
	cmd.AddCommand(
		command(a, "protocol", "Write a module with a protocol, its test, and its command",
			"The protocol has 90 lines: agreement by flooding, which tolerates crashes. Replace it by your "+
				"own protocol. The command also has all protocols of Parley.",
			"go run ./cmd/NAME run NAME --faulty 1=crash@r0:1", "go run ./cmd/NAME explore NAME -n 3 -m 1 --crashes 1"),
		command(a, "service", "Write a module with a replicated service and its command",
			"The service is a replicated counter: replace it by your own service. The test runs three nodes "+
				"in memory and kills one of them. The command runs one node of a cluster, and serves the "+
				"client API. It reads a configuration file of the form that \"parley node --example\" "+
				"prints.",
			"go build ./cmd/NAME",
			"parley cluster up -n 3 --dir nodes   # writes certificates and configurations; stop it with Ctrl-C",
			"rm -r nodes/node*/data               # the nodes need empty folders, because they have one more table",
			"./NAME nodes/node1/node.yaml         # in three terminals: node1, node2 and node3",
			"parley table do NAME 'add 3' --dir nodes"),
	)
	return cmd
}

// aName is a name that can be a package, a protocol and a folder.
var aName = regexp.MustCompile(`^[a-z][a-z0-9]{0,30}$`)

// command is "parley new KIND".
func command(a *console.App, kind, short, long string, next ...string) *cobra.Command {
	var source string
	cmd := &cobra.Command{
		Use:   kind + " NAME",
		Short: short,
		Long: short + ", in the new folder NAME. " + long + "\n\n" +
			"There is no release of Parley yet, so the module uses a checkout of Parley: the folder of " +
			"--source.",
		Example: "  parley new " + kind + " mine",
		Args:    console.Args(1, 1, "one NAME is needed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if !aName.MatchString(name) {
				return fmt.Errorf("parley new %s: %.200q is not a name: write at most 31 lower-case letters and "+
					"digits, a letter first", kind, name)
			}
			if token.IsKeyword(name) || slices.Contains([]string{"init", "main", "parley"}, name) {
				return fmt.Errorf("parley new %s: %q cannot name a Go package that a command imports: choose another name",
					kind, name)
			}
			if _, err := a.Find(name); err == nil && kind == "protocol" {
				return fmt.Errorf("parley new %s: there is a protocol %q already: choose another name", kind, name)
			}
			root, err := Checkout(source)
			if err != nil {
				return err
			}
			files, err := module(kind, name, root)
			if err != nil {
				return err
			}
			if err := Write(cmd.CommandPath(), name, files); err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "wrote the module example.org/%s, which replaces parley by %s\n\n"+
				"try it:\n  cd %s\n  go test ./...\n", name, root, name)
			for _, line := range next {
				fmt.Fprintf(a.Out, "  %s\n", strings.ReplaceAll(line, "NAME", name))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&source, "source", "", "`folder` of a checkout of Parley (default: the checkout "+
		"that contains the current folder)")
	return cmd
}

// parleyPath is the path of Parley's module, and moduleLine the line of its go.mod that names it.
var (
	parleyPath = reflect.TypeFor[parley.Protocol]().PkgPath()
	moduleLine = []byte("module " + parleyPath + "\n")
)

// Checkout returns the absolute path of the checkout of Parley that the flag --source names, or in which the command
// runs.
func Checkout(given string) (string, error) {
	dir, err := filepath.Abs(given)
	if err != nil {
		return "", &parley.FlagError{Flag: "source", Err: err}
	}
	for at := dir; ; at = filepath.Dir(at) {
		if b, err := os.ReadFile(filepath.Join(at, "go.mod")); err == nil && bytes.HasPrefix(b, moduleLine) {
			return at, nil
		}
		if given != "" || at == filepath.Dir(at) {
			return "", parley.FlagErrorf("source", "%s is not a checkout of Parley: name the folder with its go.mod", dir)
		}
	}
}

// Module returns go.mod and go.sum of the new module example.org/NAME, which uses the checkout of Parley at root.
func Module(name, root string) (map[string][]byte, error) {
	files := make(map[string][]byte)
	for _, file := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		files[file] = b
	}
	mod := bytes.Replace(files["go.mod"], moduleLine, []byte("module example.org/"+name+"\n"), 1)
	files["go.mod"] = fmt.Appendf(mod, "\nrequire %[1]s v0.0.0\n\nreplace %[1]s => %[2]s\n", parleyPath, root)
	return files, nil
}

// module returns the files of a new module of a kind, by their names.
func module(kind, name, root string) (map[string][]byte, error) {
	files, err := Module(name, root)
	if err != nil {
		return nil, err
	}
	for file, to := range map[string]string{
		"mine.go.txt": name + ".go", "mine_test.go.txt": name + "_test.go",
		"main.go.txt": filepath.Join("cmd", name, "main.go"),
	} {
		b, err := fs.ReadFile(templates, kind+"/"+file)
		if err != nil {
			return nil, err
		}
		b = regexp.MustCompile(`\bmine(_test)?\b`).ReplaceAll(b, []byte(name+"$1"))
		files[to] = bytes.ReplaceAll(b, []byte(`Name: "flood"`), []byte(`Name: "`+name+`"`))
	}
	return files, nil
}

// Write writes files into a new folder. command is the command that does so, for errors.
func Write(command, dir string, files map[string][]byte) error {
	if err := os.Mkdir(dir, 0o755); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: the folder %q exists already: choose another name, or remove it", command, dir)
	} else if err != nil {
		return fmt.Errorf("%s: %w", command, console.PathError(err))
	}
	for name, b := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
