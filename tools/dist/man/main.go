// Command man writes a man page for each command into a folder.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"parley/catalog"
	"parley/cli"
)

func main() {
	tree := cli.Tree(catalog.All())
	tree.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: "Parley", Manual: "Parley"}
	if err := doc.GenManTree(tree, header, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}
