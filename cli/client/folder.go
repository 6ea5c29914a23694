package client

import (
	"fmt"
	"path/filepath"
)

// DirVariable is the environment variable with the default of --dir.
const DirVariable = "PARLEY_DIR"

// NodeName returns the name of node i of a local cluster, counted from 0.
func NodeName(i int) string { return fmt.Sprintf("node%d", i+1) }

// ConfigOf returns the configuration file of a node of a local cluster.
func ConfigOf(dir, name string) string { return filepath.Join(dir, name, "node.yaml") }
