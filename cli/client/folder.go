package client

import (
	"fmt"
	"path/filepath"
)

// DirVariable names the variable of the environment that stands for --dir.
const DirVariable = "PARLEY_DIR"

// NodeName is the name of node i of a local cluster.
func NodeName(i int) string { return fmt.Sprintf("node%d", i+1) }

// ConfigOf is the file with the configuration of a node of a local cluster.
func ConfigOf(dir, name string) string { return filepath.Join(dir, name, "node.yaml") }
