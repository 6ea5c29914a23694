// Command chat lets three people talk through their nodes. Causal order ensures that nobody sees an answer
// before its question.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"parley/cluster"
	"parley/examples/nodes"
)

func main() {
	if err := talk(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// configure chooses causal order: a node delivers a message after all messages that its sender had seen.
func configure(c *cluster.Config) {
	c.Groups = []cluster.GroupConfig{{Name: "chat", Level: cluster.Causal}}
}

// people are the users of the nodes, in the order of the nodes.
var people = []string{"Ada", "Ben", "Cleo"}

func talk(ctx context.Context, out io.Writer) error {
	all, end, err := nodes.Start(ctx, len(people), configure)
	if err != nil {
		return err
	}
	defer end()
	if err := say(ctx, all[0], "Where do we eat?"); err != nil {
		return err
	}
	if _, err := hear(ctx, all[1], 1); err != nil { // Ben reads it first
		return err
	}
	if err := say(ctx, all[1], "At the harbor."); err != nil {
		return err
	}
	for i, node := range all {
		lines, err := hear(ctx, node, 2)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s sees:\n  %s\n", people[i], strings.Join(lines, "\n  "))
	}
	return nil
}

// say sends a line to all nodes.
func say(ctx context.Context, node *cluster.Node, line string) error {
	_, err := node.Group("chat").Broadcast(ctx, []byte(line))
	return err
}

// hear returns the first n lines that a node delivers, and waits for them.
func hear(ctx context.Context, node *cluster.Node, n int) (lines []string, err error) {
	chat, err := node.Group("chat").Subscribe(1) // from the beginning
	if err != nil {
		return nil, err
	}
	defer func() { _ = chat.Close() }()
	for d, err := range chat.All(ctx) {
		if err != nil {
			return nil, err
		}
		if lines = append(lines, people[d.From]+": "+string(d.Payload)); len(lines) == n {
			break
		}
	}
	return lines, nil
}
