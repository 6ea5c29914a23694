package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley/cluster/cert"
)

// The names of the nodes of a run and of their services.
const (
	clusterName = "chaos"
	tableName   = "table"
	groupName   = "order"
	clientName  = "driver"
)

// The times in the configuration of the nodes.
const (
	beat    = 100 * time.Millisecond
	suspect = time.Second
)

func nodeName(i int) string { return fmt.Sprintf("n%d", i+1) }

func nodeNames(which []int) string {
	var names []string
	for _, i := range which {
		names = append(names, nodeName(i))
	}
	return strings.Join(names, " ")
}

// The services of a cluster whose nodes only crash, and of one in which a node may lie.
const (
	crashServices = "groups:\n  - name: " + groupName + "\n    level: total\n" +
		"tables:\n  - name: " + tableName + "\n    state: keyvalue\n"
	byzantineServices = "m: 1\ngroups:\n  - name: " + groupName + "\n    level: byzantine\n"
)

// shared is the part of the configuration that is the same on all nodes: the services and the members.
type shared string

// certify creates the authority and all certificates of a cluster of n nodes.
func certify(dir string, w environment, n int, services string) (shared, error) {
	whole := cert.Whole{
		Cluster: clusterName, Clients: []string{clientName}, Hosts: []string{"localhost", "127.0.0.1"},
		Valid: 30 * 24 * time.Hour,
	}
	for i := range n {
		whole.Nodes = append(whole.Nodes, nodeName(i))
	}
	signers, err := whole.Create(filepath.Join(dir, "certs"))
	text := new(strings.Builder)
	text.WriteString(services + "members:\n")
	for i, key := range signers {
		address, _, _ := w.listen(i)
		fmt.Fprintf(text, "  - name: %s\n    address: %s\n    signer: %s\n", nodeName(i), address, cert.FormatSigner(key))
	}
	return shared(text.String()), err
}

// configure writes the configuration of a node; more are additional lines.
func configure(dir string, w environment, i int, all shared, more string) error {
	_, api, metrics := w.listen(i)
	text := fmt.Sprintf("cluster: %s\nname: %s\napi: %s\nmetrics: %s\ncertificates: %s\ndata: %s\ndurable: true\n",
		clusterName, nodeName(i), api, metrics, filepath.Join(dir, "certs"), w.data(i))
	text += fmt.Sprintf("times:\n  beat: %v\n  suspect: %v\n", beat, suspect)
	// All nodes and clients share one computer, so reading a clock may take long.
	text += "clocks:\n  error: 10ms\n"
	text += more + string(all)
	file := configFile(dir, i)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o600)
}

func configFile(dir string, i int) string { return filepath.Join(dir, nodeName(i), "node.yaml") }
