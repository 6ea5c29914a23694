// Package exercise implements "parley exercise": it lists the exercises of a course, writes modules in which
// students complete a machine, and grades them.
//
// # Decisions
//
// A machine is graded by the command that its own module builds, because Go cannot load the machine into a running
// program. Motive: a student can repeat the failing run with the student's own command, and see all its pictures.
// Cost: a student can write a machine that prints a false grade. So teachers copy only the machine into a folder of
// their own, read it, and grade it there.
//
// A promise gives points only if a run tested it. A run tests a promise if the property is promised in this run, and
// demands something. Some promises require that the machine does something, such as deciding. If one of these
// breaks, or was not tested, no promise gives points. Motive: a machine that does nothing keeps most promises. Cost:
// a machine with a single bug in its work gets no points.
package exercise

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley/cli/console"
	"parley/cli/create"
	"parley/exercises/model"
	"parley/internal/lists"
	"parley/internal/nearest"
)

//go:embed text
var texts embed.FS

// exercise is one of the exercises.
type exercise struct {
	name, title string
	constructor string // in package exercises
	lesson      string // the page that teaches it
	// work are the promises that say that the machine does its work: without them, the others give no points.
	work   []string
	points []points
	// simulated are arguments of "parley run". The runs of each have the seeds 1 to seeds.
	simulated []string
	seeds     uint64
	explored  []string // arguments of "parley explore"
}

// points are the points for a promise.
type points struct {
	promise string
	points  int
}

// all are the exercises, in a good order for learning.
var all = []exercise{
	{
		name: "om", title: "agreement by oral messages, OM(m)", constructor: "OM", lesson: "04-oral-messages.md",
		work: []string{"validity"}, points: []points{{"agreement", 8}, {"validity", 6}, {"termination", 3}, {"integrity", 3}},
		simulated: []string{
			"--values 1", "--values 7 --faulty 2=flip", "--values 1 --faulty 3=twofaced", "--values 1 --faulty 1=twofaced",
			"--values 1 --faulty 1=random", "--values 0 --faulty 4=random", "--values 1 --faulty 2=silent",
			"--values 1 --faulty 1=twin", "--values 1 --faulty 2=omit-send", "--values 1 --faulty 1=crash@r0:2",
			"-n 7 -m 2 --values 1 --faulty 1=twofaced,5=flip", "-n 7 -m 2 --values 1 --faulty 3=random,5=random",
			"-n 7 -m 2 --values 5 --faulty 1=random,2=random",
		},
		seeds: 20, explored: []string{"-n 4 -m 1"},
	},
	{
		name: "fifo", title: "FIFO broadcast over reliable broadcast", constructor: "FIFO", lesson: "08-fifo-causal.md",
		work:   []string{"validity"},
		points: []points{{"FIFO order", 10}, {"validity", 4}, {"agreement", 3}, {"integrity", 3}},
		simulated: []string{
			"--workload '{broadcasts: 10, within: 1000}'", "-n 3 --workload '{broadcasts: 10, from: [1], within: 100}'",
			"--workload '{broadcasts: 10, within: 2000}' --random '{crashes: 1, within: 2000}'",
			"--workload '{broadcasts: 6, within: 2000}' --twice 0.3",
		},
		seeds: 40, explored: []string{"-n 3"},
	},
	{
		name: "priorities", title: "atomic broadcast by agreed priorities", constructor: "Priorities",
		lesson: "09-total-order.md", work: []string{"validity"},
		points: []points{{"total order", 10}, {"validity", 4}, {"agreement", 3}, {"integrity", 3}},
		simulated: []string{
			"--workload '{broadcasts: 10, within: 500}'", "-n 3 --workload '{broadcasts: 8, within: 2000}'",
			"-n 5 --workload '{broadcasts: 10, within: 1000}'", "-n 2 --workload '{broadcasts: 6, within: 100}'",
		},
		seeds: 40, explored: []string{"-n 3"},
	},
	{
		name: "twophase", title: "two-phase commit", constructor: "TwoPhase", lesson: "12-commit.md",
		work: []string{"non-triviality", "termination"},
		points: []points{
			{"atomicity", 6}, {"commit validity", 5}, {"non-triviality", 4}, {"stability", 2}, {"termination", 3},
		},
		simulated: []string{
			"--values yes", "--values yes,no,yes,yes", "--values no,yes,yes,yes", "--values yes,yes,yes,no", "--values no",
			"--values yes --random '{crashes: 1, within: 2500}'",
			"--values yes,yes,no,yes --random '{crashes: 1, within: 2500}'",
			"-n 2 --values yes", "--values yes --loss 0.2",
		},
		seeds: 20, explored: []string{"-n 3 --crashes 1"},
	},
}

// find returns the exercise with a name.
func find(command, name string) (exercise, error) {
	names := lists.Of(all, func(e exercise) string { return e.name })
	i := slices.Index(names, name)
	if i < 0 {
		return exercise{}, fmt.Errorf("%s: there is no exercise %.200q: %s", command, name, nearest.Names(name, names))
	}
	return all[i], nil
}

// sum returns the points of the exercise.
func (e exercise) sum() (sum int) {
	for _, p := range e.points {
		sum += p.points
	}
	return sum
}

// Command is "parley exercise".
func Command(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exercise",
		Short: "Write and grade exercises for a course",
		Long: "Exercise is for courses. In an exercise, a student completes the machine of a protocol. \"parley exercise " +
			"new\" writes a module with a machine that has holes, and \"parley exercise check\" grades it.",
		Args: cobra.ArbitraryArgs,
		RunE: console.OneOf,
	}
	cmd.AddCommand(listCommand(a), newCommand(a), checkCommand(a), gradeCommand(a))
	return cmd
}

// listed is an exercise in the JSON output of "parley exercise list".
type listed struct {
	Name     string `json:"name"`
	Title    string `json:"title"`
	Protocol string `json:"protocol"` // the name of the student's protocol in its command
	Points   int    `json:"points"`
	Lesson   string `json:"lesson"`
}

// listOutput is the JSON output of "parley exercise list".
type listOutput struct {
	Exercises []listed `json:"exercises"`
}

func listCommand(a *console.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the exercises", Args: console.NoArgs,
		Long: "List prints the exercises, in a good order for learning. It changes nothing. The exit status is 0.",
		RunE: func(*cobra.Command, []string) error {
			out := listOutput{lists.Of(all, func(e exercise) listed {
				return listed{e.name, e.title, e.protocol(), e.sum(), "docs/tutorials/learn/" + e.lesson}
			})}
			if asJSON {
				return a.PrintJSON(out)
			}
			for _, e := range out.Exercises {
				fmt.Fprintf(a.Out, "%-12s%-42s%d points\n", e.Name, e.Title, e.Points)
			}
			fmt.Fprintf(a.Out, "\nbegin one: parley exercise new %s\n", all[0].name)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	console.Prints(cmd.Flags(), "exercise-list", listOutput{})
	return cmd
}

func newCommand(a *console.App) *cobra.Command {
	var source string
	cmd := &cobra.Command{
		Use:   "new NAME [DIR]",
		Short: "Write a module with an exercise",
		Long: "New writes a Go module into the new folder DIR. Without DIR, the folder is called NAME. The module " +
			"compiles. It has a machine with holes, a README with the task, and a command. New changes no other file. " +
			"The exit status is 0, or 2 if the folder exists or there is no such exercise.\n\n" +
			"There is no release of Parley yet, so the module uses a checkout of Parley: the folder of --source.",
		Example:   "  parley exercise new om\n  parley exercise new twophase homework-3",
		Args:      console.Args(1, 2, "NAME and perhaps DIR are needed"),
		ValidArgs: lists.Of(all, func(e exercise) string { return e.name }), // for completion
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := find(cmd.CommandPath(), args[0])
			if err != nil {
				return err
			}
			dir := args[len(args)-1]
			root, err := create.Checkout(source)
			if err != nil {
				return err
			}
			files, err := e.files(root)
			if err != nil {
				return err
			}
			if err := create.Write(cmd.CommandPath(), dir, files); err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "wrote the exercise %[1]s into the folder %[2]s\n\nread %[2]s/README.md, complete "+
				"%[2]s/%[1]s.go, and then:\n  parley exercise check %[2]s\n", e.name, dir)
			return nil
		},
	}
	cmd.Flags().StringVar(&source, "source", "", "`folder` of a checkout of Parley (default: the checkout "+
		"that contains the current folder)")
	return cmd
}

// files returns the files of the module of the exercise.
func (e exercise) files(root string) (map[string][]byte, error) {
	files, err := create.Module(e.name, root)
	if err != nil {
		return nil, err
	}
	solution, err := fs.ReadFile(model.Sources, e.name+"/"+e.name+".go")
	if err != nil {
		return nil, err
	}
	readme, err := fs.ReadFile(texts, "text/"+e.name+".md")
	if err != nil {
		return nil, err
	}
	files[e.name+".go"], files["README.md"], files[e.main()] = withHoles(solution), readme, e.command()
	return files, nil
}

// main is the file of the module's command.
func (e exercise) main() string { return "cmd/" + e.name + "/main.go" }

// command returns the source of the module's command.
func (e exercise) command() []byte {
	text, err := fs.ReadFile(texts, "text/main.go.txt")
	if err != nil {
		panic(err) // it is embedded
	}
	return []byte(strings.NewReplacer("NAME", e.name, "CONSTRUCTOR", e.constructor).Replace(string(text)))
}

// hole finds the parts of a solution that students write.
var hole = regexp.MustCompile(`(?ms)^(\t+)// hole: (.*?)\n((?:\t+// .*?\n)*)(.*?)\n\t+// end of hole\n`)

// withHoles returns a solution without the parts that students write.
func withHoles(solution []byte) []byte {
	return hole.ReplaceAllFunc(solution, func(part []byte) []byte {
		m := hole.FindSubmatch(part)
		indent := m[1]
		var out bytes.Buffer
		fmt.Fprintf(&out, "%s// TODO(you): %s\n", indent, m[2])
		var instead bytes.Buffer
		for line := range bytes.Lines(m[3]) {
			if code, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("// | ")); ok {
				fmt.Fprintf(&instead, "%s%s\n", indent, code)
			} else {
				out.Write(line)
			}
		}
		out.Write(instead.Bytes())
		return out.Bytes()
	})
}
