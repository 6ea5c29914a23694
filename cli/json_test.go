package cli_test

import (
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/cobra"

	"parley/catalog"
	"parley/cli"
	"parley/cli/console"
)

// schemaFolder is the folder of the schemas, found before a test changes its folder.
var schemaFolder = func() string {
	dir, err := filepath.Abs("../docs/reference/schema")
	if err != nil {
		panic(err)
	}
	return dir
}()

// schemaOf returns the schema with a name.
func schemaOf(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(filepath.Join(schemaFolder, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// objects returns the JSON values of a text.
func objects(t *testing.T, text string) (all []any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	for {
		var v any
		err := dec.Decode(&v)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		all = append(all, v)
	}
}

// formsOf returns the names of the schemas of what a command prints.
func formsOf(cmd *cobra.Command) (names []string) {
	for _, p := range console.Forms(cmd.Flags()) {
		names = append(names, p.Schema)
	}
	return names
}

// checkJSON checks every object in the output of a command line against the command's schemas, and that a key more
// would be refused. It returns the schemas that fit.
func checkJSON(t *testing.T, args []string, out string) (fit []string) {
	t.Helper()
	cmd, _, err := cli.Commands(catalog.All()).Find(args)
	if err != nil {
		t.Fatal(err)
	}
	if len(formsOf(cmd)) == 0 && cmd.HasSubCommands() { // "run", whose file names the protocol
		cmd = cmd.Commands()[0]
	}
	values := objects(t, out)
	if len(values) == 0 {
		t.Errorf("%q printed no JSON", args)
	}
	for _, v := range values {
		var errs []error
		fits := ""
		for _, name := range formsOf(cmd) {
			s := schemaOf(t, name)
			if err := s.Validate(v); err != nil {
				errs = append(errs, err)
				continue
			}
			fits = name
			more := maps.Clone(v.(map[string]any))
			more["surplus"] = true
			if s.Validate(more) == nil {
				t.Errorf("%s allows any key", name)
			}
		}
		if fits == "" {
			t.Errorf("%q printed what fits none of the schemas %q: %v\n%s", args, formsOf(cmd), errs, out)
		}
		fit = append(fit, fits)
	}
	return fit
}

// everyForm returns the names of all schemas of commands.
func everyForm() map[string]bool {
	all := make(map[string]bool)
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, name := range formsOf(cmd) {
			all[name] = true
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(cli.Commands(catalog.All()))
	return all
}

// The schemas that need a cluster: see clientJSON and the tests of nodes.
var clusterForms = []string{
	"agree", "agree-name", "agree-rule", "broadcast", "clock", "cluster-node", "cluster-up", "commit", "doctor",
	"node-check", "node-verify", "status", "subscribe", "table-add", "table-delete", "table-do", "table-get", "table-put",
	"table-query",
}

// What a command prints with --json fits its schema.
func TestJSONOutput(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	left := everyForm()
	for _, name := range clusterForms {
		if !left[name] {
			t.Errorf("%s is no schema", name)
		}
		delete(left, name)
	}
	for _, line := range []string{
		"list", "list om", "exercise list", "bounds -n 4 -m 1", "conform " + root + "/internal/conform/testdata",
		"run eig -n 4 -m 1 --faulty 2=twofaced", "run fifo --random '{crashes: 1}'", "run --scenario " + root + "/docs/scenarios/byzantine.yaml",
		"run convergence --until 9000", "run atomic", "run twophase", "run om --trace run.jsonl", "trace show run.jsonl",
		"run --replay run.jsonl", "audit run.jsonl", "audit --machine group/order " + root + "/testdata/traces",
		"sweep om --faulty 2=random --seeds 1..20", "sweep om -n 3 --beyond-bound --faulty 2=random --seeds 1..20",
		"explore om -n 3 -m 1 --beyond-bound", "explore diffusion --losses 1", "explore om -n 4 -m 1",
		"explore eig -n 3 -m 1 --beyond-bound --indistinguishable", "bench eig -n 4 -m 1", "bench sm -n 4 -m 1",
		"bench order --dur 20ms --phases one,open --rate 100", "bench failover --reps 1 --before 100ms --after 200ms",
		"cert init --cluster bank --dir c", "cert issue a b --dir c", "cert client x --dir c", "cert revoke a --dir c",
		"cert show --dir c", "cert show c/node-a.pem c/node-b.pem c/ca.pem c/crl.pem c/client-x.key c/signer-b.pub",
	} {
		args := append(words(line), "--json")
		out, stderr, status := run(args...)
		if status > console.Violated {
			t.Errorf("%s: status %d, %s", line, status, stderr)
			continue
		}
		for _, name := range checkJSON(t, args, out) {
			delete(left, name)
		}
	}
	delete(left, "exercise") // TestExerciseGrades prints it
	for name := range left {
		t.Errorf("no command printed %s", name)
	}
}

// clientJSON checks the JSON of all commands that call a cluster, on the cluster of the other tests.
func clientJSON(t *testing.T) {
	t.Helper()
	t.Setenv("PARLEY_DIR", "bank")
	seen := make(map[string]bool)
	for _, line := range []string{
		"agree attack", "agree attack --evidence", "agree --name json node1=a node2=b",
		"agree --name json-rule --rule maximum node1=1 node2=2", "broadcast total x", "subscribe total --from 1 --count 2",
		"table put table k v", "table get table k", "table add table c 3", "table delete table k", "table do bank 'deposit 5'",
		"table query bank balance", "table do bank 'rob the bank'", "commit json-1 node1=x", "clock", "status",
	} {
		args := append(words(line), "--json")
		out, stderr, status := run(args...)
		if status > console.Violated {
			t.Errorf("%s: status %d, %s", line, status, stderr)
			continue
		}
		for _, name := range checkJSON(t, args, out) {
			seen[name] = true
		}
	}
	for line, want := range map[string]console.Failure{
		"table get table nothing":         {Status: 1, Node: "node1", Code: "not_found", Reason: "no value"},
		"table put nowhere a b":           {Status: 2, Code: "not_found", Reason: "no table"},
		"agree x -m 2 --at node1":         {Status: 2, Node: "node1", Code: "invalid_argument", Reason: "invalid"},
		"status --as nobody":              {Status: 2, Flag: "as"},
		"status --at node1 --timeout 1ns": {Status: 3, Node: "node1", Code: "deadline_exceeded"},
	} {
		_, stderr, status := run(append(words(line), "--json")...)
		got := checkErrors(t, stderr)
		if len(got) != 1 || status != want.Status {
			t.Errorf("%s: status %d, %s", line, status, stderr)
			continue
		}
		one := got[0]
		one.Message = ""
		if one != want {
			t.Errorf("%s: got %+v, want %+v", line, one, want)
		}
	}
	for _, name := range clusterForms {
		if slices.Contains([]string{"cluster-up", "cluster-node", "doctor", "node-check", "node-verify"}, name) {
			continue // each has a test of its own
		}
		if !seen[name] {
			t.Errorf("no command printed %s", name)
		}
	}
}

// checkErrors demands that each line is an error in the form of its schema, and returns them.
func checkErrors(t *testing.T, stderr string) (all []console.Failure) {
	t.Helper()
	s := schemaOf(t, "error")
	for _, v := range objects(t, stderr) {
		if err := s.Validate(v); err != nil {
			t.Errorf("%v: %v", v, err)
		}
	}
	for line := range strings.Lines(stderr) {
		var out console.ErrorOutput
		if err := json.Unmarshal([]byte(line), &out); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		all = append(all, out.Error)
	}
	return all
}

// With --json an error is one JSON object on the standard error, and the status is the same as without.
func TestJSONErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("bad.yaml", []byte("protocol: eig\nn: many\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("bad.jsonl", []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]console.Failure{
		"run eig --seed x":     {Status: 2, Flag: "seed", Message: `--seed: "x": a whole number from 0 on was expected`},
		"run eig --values 1,2": {Status: 2, Flag: "values"},
		"run eig --sed 1":      {Status: 2, Flag: "sed", Hint: "did you mean --seed?"},
		"run eigg": {Status: 2, Hint: `did you mean eig? "parley list" names all`,
			Message: `unknown protocol "eigg": did you mean eig? "parley list" names all`},
		"run --scenario bad.yaml":   {Status: 2, File: "bad.yaml", Line: 2},
		"sweep bad.yaml":            {Status: 2, File: "bad.yaml", Line: 2},
		"trace show bad.jsonl":      {Status: 2, File: "bad.jsonl", Line: 1},
		"run --replay bad.jsonl":    {Status: 2, File: "bad.jsonl", Line: 1},
		"statu":                     {Status: 2, Hint: "did you mean status?"},
		"status":                    {Status: 2, Flag: "dir"},
		"node --config absent.yaml": {Status: 2, Flag: "config"},
		"conform absent.json":       {Status: 2},
		"list --guarantees=perhaps": {Status: 2, Flag: "guarantees"},
	} {
		_, plain, status := run(words(line)...)
		out, stderr, same := run(append(words(line), "--json")...)
		if strings.HasPrefix(line, "statu ") || line == "statu" { // where no command says that it has --json
			_, stderr, same = run("--json", "statu")
		}
		got := checkErrors(t, stderr)
		if len(got) != 1 || same != status || got[0].Status != status || out != "" {
			t.Errorf("%s: status %d and %d, %s%s", line, status, same, out, stderr)
			continue
		}
		if want.Message == "" {
			want.Message = got[0].Message
		}
		if line != "statu" && "parley: "+got[0].Message+"\n" != plain {
			t.Errorf("%s: got %q, and without --json %q", line, got[0].Message, plain)
		}
		if line == "statu" {
			continue
		}
		if got[0] != want {
			t.Errorf("%s: got %+v, want %+v", line, got[0], want)
		}
	}
}

// Scenarios, traces and worked cases fit their schemas, and a key more does not.
func TestFilesFitSchemas(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, stderr, status := run("run", "--scenario", filepath.Join(schemaFolder, "../../scenarios/byzantine.yaml"),
		"--trace", "run.jsonl"); status > console.Violated {
		t.Fatal(stderr)
	}
	root := filepath.Join(schemaFolder, "../../..")
	for schema, patterns := range map[string][]string{
		"scenario": {root + "/docs/scenarios/*.yaml"},
		"trace":    {root + "/testdata/traces/*.jsonl", "run.jsonl"},
		"vectors":  {root + "/internal/conform/testdata/*.json"},
	} {
		s := schemaOf(t, schema)
		files := 0
		for _, pattern := range patterns {
			names, err := filepath.Glob(pattern)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				b, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				if schema == "scenario" {
					if b, err = yaml.YAMLToJSON(b); err != nil {
						t.Fatal(err)
					}
				}
				for _, v := range objects(t, string(b)) {
					if err := s.Validate(v); err != nil {
						t.Errorf("%s: %v", name, err)
						break
					}
					v.(map[string]any)["surplus"] = 1
					if s.Validate(v) == nil {
						t.Errorf("%s: a key more is allowed", name)
						break
					}
				}
				files++
			}
		}
		if files == 0 {
			t.Errorf("no file for %s", schema)
		}
	}
}
