package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley/internal/draw"
)

// scenes are what the demonstration shows: the article's seven processes, first
// with a General who lies, then with a loyal one.
var scenes = []struct {
	title, story string
	args         []string
}{
	{
		"1. The General lies",
		"Seven processes are to agree on an order, although up to two of them may be traitors. Here P1, the " +
			"General, is one: he orders 0 from P2, P3 and P4, and 1 from P5, P6 and P7. In round 1 each lieutenant " +
			"tells all of them, itself included, what it heard, and in round 2 what it heard in round 1: {0,132} reads " +
			"\"P2 says that P3 said that P1 ordered 0\". What a lieutenant has been told makes its tree; from the " +
			"leaves up, every node takes the value of more than half of its children, and the default, 0, if there is " +
			"none. Three lieutenants heard 0 and three heard 1: a tie.",
		[]string{"--n=7", "--m=2", "--values=0", "--faulty=1=twofaced"},
	},
	{
		"2. The General is loyal, and two lieutenants lie",
		"Now P1 orders 1 from all. P3 and P6 are the traitors: P3 twists every word, and P6 those that it says to " +
			"P5 and P7. (They have no need to lie to each other.) They cannot keep the loyal lieutenants from obeying " +
			"the order.",
		[]string{"--n=7", "--m=2", "--values=1", "--faulty=3=flip,6=twofaced"},
	},
}

// next are the commands that the demonstration ends with.
var next = []string{
	"parley run eig -n 6 -m 2 --beyond-bound --faulty 2=twofaced,3=twofaced",
	"parley run sm -n 4 -m 2 --faulty 1=twofaced,2=random",
	"parley bounds -n 10 -m 3",
}

// demo is "parley demo".
func (a *app) demo() *cobra.Command {
	var width int
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "Watch seven processes agree although two of them lie",
		Example: "  parley demo",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.showDemo(a.width(width))
		},
	}
	cmd.Flags().IntVar(&width, "width", 0, "columns to fold to (default: the terminal's)")
	return cmd
}

func (a *app) showDemo(width int) error {
	p, err := a.find("eig")
	if err != nil {
		return err
	}
	for _, scene := range scenes {
		if err := paragraph(a.out, width, scene.title, scene.story); err != nil {
			return err
		}
		f := newRunFlags(p, pflag.NewFlagSet("eig", pflag.ContinueOnError))
		if err := f.fs.Parse(scene.args); err != nil {
			return err
		}
		f.view.width = width
		if err := a.execute(f); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.out); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(a.out, "Try next:"); err != nil {
		return err
	}
	for _, command := range next {
		if _, err := fmt.Fprintln(a.out, "  "+command); err != nil {
			return err
		}
	}
	return nil
}

// paragraph writes a heading and a text below it.
func paragraph(w io.Writer, width int, title, text string) error {
	_, err := fmt.Fprintf(w, "%s\n\n%s\n\n", title, draw.Fold(text, width))
	return err
}
