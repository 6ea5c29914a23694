package node

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/console"
	"parley/cluster"
	"parley/cluster/disk"
	"parley/cluster/store"
)

// verification is the JSON output of "parley node verify".
type verification struct {
	Folder   string `json:"folder"`
	Store    string `json:"store,omitempty"` // the number that it got at its creation, in hexadecimal
	Position uint64 `json:"position"`
	Machines int    `json:"machines"`
	Bytes    int64  `json:"bytes"`
	// Tail is absent if the node was stopped in order.
	Tail   *store.Tail   `json:"tail,omitempty"`
	Damage *store.Damage `json:"damage,omitempty"`
}

// verifyCommand is "parley node verify".
func verifyCommand(a *console.App) *cobra.Command {
	var dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify --dir FOLDER",
		Short: "Check the records of a stopped node",
		Long: "Verify reads all records of a stopped node, compares every checksum, and changes nothing. It " +
			"prints the position of the last record. If a record is damaged, it prints the file, the " +
			"position in the file, and what to do. The exit status is 1 if a record is damaged. It is 2 if " +
			"there is nothing to check, or the node is running.",
		Example: "  parley node verify --dir data",
		Args:    console.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if dir == "" {
				return parley.FlagErrorf("dir", "it is missing: the data folder of a stopped node was expected")
			}
			return verify(a, dir, asJSON)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "data `folder` of the node, as in its configuration (required)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	console.Prints(cmd.Flags(), "node-verify", verification{})
	return cmd
}

func verify(a *console.App, dir string, asJSON bool) error {
	var system disk.System
	records := filepath.Join(dir, "records")
	names, err := system.List(records)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(names, func(name string) bool { return name != store.LockName }) {
		return verifyNothing(a, dir, asJSON)
	}
	if slices.Contains(names, "lock") {
		lock, err := system.Lock(filepath.Join(records, "lock"))
		if errors.Is(err, disk.ErrLocked) {
			return parley.FlagErrorf("dir", "%s is in use: stop the node first", dir)
		} else if err == nil {
			defer func() { _ = lock.Close() }()
		} // a read-only folder can still be read
	}
	r, err := store.Verify(records, system)
	var found *store.Damage
	if err != nil && !errors.As(err, &found) {
		return err
	}
	v := verification{
		Folder: dir, Position: r.Position, Machines: r.Books, Bytes: r.Bytes, Tail: r.Tail, Damage: found,
	}
	if found == nil {
		v.Store = fmt.Sprintf("%016x", r.Store)
	}
	return printVerification(a, v, err, asJSON)
}

// verifyNothing is the check of a folder without records. The folder is a node's if it has a node's mark.
func verifyNothing(a *console.App, dir string, asJSON bool) error {
	files, err := disk.System{}.List(dir)
	if err != nil {
		return err
	}
	if !slices.Contains(files, cluster.MarkName) {
		return parley.FlagErrorf("dir", "%s has no records of a node: give the folder that \"data\" names in its "+
			"configuration", dir)
	}
	found := &store.Damage{File: filepath.Join(dir, "records"), Offset: -1, What: "all records are missing"}
	return printVerification(a, verification{Folder: dir, Damage: found}, found, asJSON)
}

// printVerification prints the result, and ends the command.
func printVerification(a *console.App, v verification, damage error, asJSON bool) error {
	status := console.Fine
	if damage != nil {
		status = console.Violated
	}
	switch {
	case asJSON:
		return console.End(status, a.PrintJSON(v))
	case damage != nil:
		fmt.Fprintln(a.Out, "DAMAGED:", damage)
		return console.End(status, nil)
	}
	fmt.Fprintf(a.Out, "whole: up to record %d of store %s, of %d machines, %d bytes\n",
		v.Position, v.Store, v.Machines, v.Bytes)
	if t := v.Tail; t != nil {
		fmt.Fprintf(a.Out, "The node did not stop in order: its records end at byte %d of %s.\n", t.Offset, t.File)
		fmt.Fprintln(a.Out, "What it was writing then was not acknowledged. Damage to its last sync would look the same.")
	}
	return nil
}
