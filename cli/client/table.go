package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"parley"
	"parley/cli/console"
	"parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
	"parley/internal/lists"
)

// Table is "parley table".
func Table(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "table",
		Aliases: []string{"log"},
		Short:   "Read and change a replicated table",
		Long: "A table is a replicated state machine: every node of a cluster has a replica. A table " +
			"usually holds keys with values and counters. It can also be another state machine, such as " +
			"a bank account, or one of your own. One log orders all commands, " +
			"including reads, so the table is linearizable: each command takes effect at one instant " +
			"between its call and its answer. Parley table may send a change several times, but the table " +
			"executes it only once.\n\n" +
			"In a table of level byzantine, up to m nodes may be faulty. A faulty node may lie to its own " +
			"callers. With --m M, each command calls several nodes, and accepts only an answer that M+1 of " +
			"them give.\n\n" +
			"The exit status is 1 if the table refused the command or the key has no value. It is 2 if the " +
			"table does not exist, the command is not allowed, or the client lacks the right to write. It " +
			"is 3 if there was no answer in time.",
		Example: "  parley table put table greeting hello --dir bank\n  parley table get table greeting --dir bank\n" +
			"  parley table do bank 'deposit 150' --dir bank",
		Args: cobra.ArbitraryArgs, RunE: console.OneOf,
	}
	cmd.AddCommand(
		logOne(a, "get TABLE KEY", "Print the value of a key", "table greeting", false,
			func(ctx context.Context, n Node, t *tableCall) error {
				r, err := n.Table.Get(ctx, &parleyv1.GetRequest{Table: t.table, Key: t.arg(0)})
				return t.got(r, err, printed(r.GetValue()))
			}),
		logOne(a, "put TABLE KEY VALUE", "Set the value of a key", "table greeting hello", true,
			func(ctx context.Context, n Node, t *tableCall) error {
				r, err := n.Table.Put(ctx, &parleyv1.PutRequest{Table: t.table, Key: t.arg(0), Value: t.arg(1), Call: t.call})
				return t.got(r, err, fmt.Sprintf("version %d", r.GetVersion()))
			}),
		logOne(a, "add TABLE KEY NUMBER", "Add a number to a counter, and print the sum", "table visits 1", true,
			func(ctx context.Context, n Node, t *tableCall) error {
				by, _ := strconv.ParseInt(string(t.arg(1)), 10, 64) // checked before
				r, err := n.Table.Add(ctx, &parleyv1.AddRequest{Table: t.table, Key: t.arg(0), By: by, Call: t.call})
				return t.got(r, err, strconv.FormatInt(r.GetSum(), 10))
			}),
		logOne(a, "delete TABLE KEY", "Delete the value of a key", "table visits", true,
			func(ctx context.Context, n Node, t *tableCall) error {
				r, err := n.Table.Delete(ctx, &parleyv1.DeleteRequest{Table: t.table, Key: t.arg(0), Call: t.call})
				return t.got(r, err, "deleted")
			}),
		logOne(a, "do TABLE COMMAND", "Execute a command of the table's state machine", "bank 'deposit 150'", true,
			func(ctx context.Context, n Node, t *tableCall) error {
				r, err := n.Table.Do(ctx, &parleyv1.DoRequest{Table: t.table, Command: t.arg(0), Call: t.call})
				t.refused = r.GetRefused()
				return t.got(r, err, printed(r.GetAnswer()))
			}),
		logOne(a, "query TABLE COMMAND", "Execute a command that only reads", "bank balance", false,
			func(ctx context.Context, n Node, t *tableCall) error {
				r, err := n.Table.Query(ctx, &parleyv1.QueryRequest{Table: t.table, Command: t.arg(0)})
				t.refused = r.GetRefused()
				return t.got(r, err, printed(r.GetAnswer()))
			}),
	)
	return cmd
}

// tableAnswers has an answer to each command.
var tableAnswers = map[string]proto.Message{
	"get": &parleyv1.GetResponse{}, "put": &parleyv1.PutResponse{}, "add": &parleyv1.AddResponse{},
	"delete": &parleyv1.DeleteResponse{}, "do": &parleyv1.DoResponse{}, "query": &parleyv1.QueryResponse{},
}

// tableCall is one command for a table.
type tableCall struct {
	table string
	args  []string
	call  *parleyv1.Call // if it changes something

	node    string // that answered
	answer  proto.Message
	text    string // the answer as text
	refused bool   // the table did not execute it
}

func (t *tableCall) arg(i int) []byte { return []byte(t.args[i]) }

// got stores an answer, if there is one.
func (t *tableCall) got(r proto.Message, err error, text string) error {
	t.answer, t.text = r, text
	return err
}

// print prints the answer. It returns an error if the table refused the command.
func (t *tableCall) print(a *console.App, verb string, asJSON bool) error {
	if asJSON {
		if err := printAnswer(a, t.node, t.answer); err != nil || !t.refused {
			return err
		}
		return console.ExitError(console.Violated)
	}
	if t.refused {
		return Failed(fmt.Errorf("table %s: table %s refused the command: %s", verb, t.table, t.text))
	}
	_, err := fmt.Fprintln(a.Out, t.text)
	return err
}

// logOne returns a command below "parley table". use names its arguments.
func logOne(a *console.App, use, short, example string, changes bool,
	call func(context.Context, Node, *tableCall) error,
) *cobra.Command {
	var f Flags
	var m int
	words := strings.Fields(use)
	cmd := &cobra.Command{
		Use:     use,
		Short:   short,
		Example: "  parley table " + words[0] + " " + example + " --dir bank",
		Args: func(cmd *cobra.Command, args []string) error {
			n := len(words) - 1
			if err := console.Args(n, n, strings.Join(words[1:], " and ")+" were expected")(cmd, args); err != nil {
				return err
			}
			if last := args[len(args)-1]; words[len(words)-1] == "NUMBER" && !isNumber(last) {
				return fmt.Errorf("parley table %s: %q: a whole number was expected", words[0], last)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			t := &tableCall{table: args[0], args: args[1:]}
			var err error
			if cmd.Flags().Changed("m") {
				err = askAlike(cmd.Context(), &f, m, changes, words[0], t, call)
			} else if changes {
				err = changeOnce(cmd.Context(), &f, words[0], t, call)
			} else {
				reads := words[0] == "get" // unknown for a query
				err = f.First(cmd.Context(), reads, func(ctx context.Context, n Node) error {
					t.node = n.Name
					return call(ctx, n, t)
				})
			}
			if err == nil {
				err = t.print(a, words[0], f.AsJSON)
			}
			return Report(a, err)
		},
	}
	f.Declare(cmd)
	cmd.Flags().IntVar(&m, "m", 0, "number of faulty `nodes` to tolerate: call several nodes, and accept only an "+
		"answer that m+1 of them give (default: rely on one node)")
	console.Prints(cmd.Flags(), "table-"+words[0], tableAnswers[words[0]])
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if strings.Contains(err.Error(), "unknown shorthand flag") {
			return fmt.Errorf("parley table %s: %w; write arguments that begin with - after --, as in "+
				"\"parley table %s --dir bank -- %s\"", words[0], err, words[0], strings.Join(words[1:], " "))
		}
		return console.UnknownFlag(cmd, err)
	})
	return cmd
}

// changeOnce has a table execute a command that changes something. Retries do not execute it twice.
func changeOnce(ctx context.Context, f *Flags, verb string, t *tableCall,
	call func(context.Context, Node, *tableCall) error,
) error {
	nodes, err := f.Open()
	if err != nil {
		return err
	}
	defer HangUp(nodes)
	ctx, release := f.limited(ctx)
	defer release()
	err = anyOf(nodes).Session(t.table).Do(ctx, func(ctx context.Context, c *client.Client, as *parleyv1.Call) error {
		n := nodeOf(nodes, c)
		t.call, t.node = as, n.Name
		return call(ctx, n, t)
	})
	return outcomeOf(ctx, f, verb, err)
}

// outcomeOf rewords the error of a change, if there is one.
func outcomeOf(ctx context.Context, f *Flags, verb string, err error) error {
	switch {
	case err != nil && ctx.Err() != nil &&
		(late(err) || errors.Is(err, context.DeadlineExceeded) || client.Elsewhere(err)):
		// It has tried one node after the other, and which error was the last is chance.
		outcome := ""
		if client.Unknown(err) {
			outcome = "; the outcome is unknown"
		}
		text := fmt.Sprintf("table %s: no answer came within %v, the --timeout%s", verb, f.Timeout, outcome)
		return failedCall{error: &rewordedError{error: err, text: text}, late: true}
	case err != nil:
		err = Failed(Said(Node{Name: "table " + verb}, err))
	}
	return err
}

// askAlike has a table execute a command, and accepts only an answer that m+1 nodes give.
func askAlike(ctx context.Context, f *Flags, m int, changes bool, verb string, t *tableCall,
	call func(context.Context, Node, *tableCall) error,
) error {
	nodes, err := f.Open()
	if err != nil {
		return err
	}
	defer HangUp(nodes)
	if f.Dir == "" {
		return parley.FlagErrorf("m", "it needs --dir, which says at which address each node is")
	}
	q, err := client.NewQuorum(m, lists.Of(nodes, func(n Node) *client.Client { return n.Client })...)
	if err != nil {
		return parley.FlagErrorf("m", "%d faulty nodes of %d: allowed are 0 to %d", m, len(nodes), max(0, len(nodes)-1)/2)
	}
	ctx, release := f.limited(ctx)
	defer release()
	var mu sync.Mutex
	var calls []*tableCall
	ask := func(ctx context.Context, c *client.Client, as *parleyv1.Call) (proto.Message, error) {
		own, n := *t, nodeOf(nodes, c)
		own.call, own.node = as, n.Name
		err := call(ctx, n, &own)
		if q, ok := own.answer.(*parleyv1.QueryResponse); ok && err == nil {
			q.Position = 0 // each node executes the query at another position
		}
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, &own)
		return own.answer, err
	}
	var answer proto.Message
	if changes {
		answer, err = q.Session(t.table).Do(ctx, ask)
	} else {
		answer, err = client.Agreed(ctx, q, func(ctx context.Context, c *client.Client) (proto.Message, error) {
			return ask(ctx, c, nil)
		})
	}
	if err != nil {
		return outcomeOf(ctx, f, verb, err)
	}
	mu.Lock()
	defer mu.Unlock()
	*t = *calls[slices.IndexFunc(calls, func(own *tableCall) bool { return proto.Equal(own.answer, answer) })]
	return nil
}
