package cli_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/cluster/cert"
)

// A program of fewer than 40 lines, in a module of its own, is a node of a cluster: three processes that run it
// deliver each other's orders in the same order and count the same.
func TestOutsideCluster(t *testing.T) {
	dir, goTool := outside(t, map[string]string{"shop.go.txt": "main.go"})
	if b, err := os.ReadFile(filepath.Join(dir, "main.go")); err != nil || strings.Count(string(b), "\n") >= 40 {
		t.Fatalf("it has %d lines: %v", strings.Count(string(b), "\n"), err)
	}
	goTool("build", "-o", "shop.exe", ".")
	configs := shops(t, dir, 3)
	outs, errs, codes := make([]string, 3), make([]string, 3), make([]error, 3)
	var counted, all sync.WaitGroup
	counted.Add(len(configs))
	for i, config := range configs {
		all.Go(func() {
			var done sync.Once
			defer done.Do(counted.Done)
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "shop.exe"), config)
			var said, logged strings.Builder
			cmd.Stdout = &said
			stdin, in := cmd.StdinPipe()
			stderr, out := cmd.StderrPipe()
			if codes[i] = errors.Join(in, out, cmd.Start()); codes[i] != nil {
				return
			}
			go func() { // they end when all have counted
				counted.Wait()
				_ = stdin.Close()
			}()
			for lines := bufio.NewScanner(stderr); lines.Scan(); {
				if fmt.Fprintln(&logged, lines.Text()); strings.HasSuffix(lines.Text(), " sold so far") {
					done.Do(counted.Done)
				}
			}
			codes[i] = cmd.Wait()
			outs[i], errs[i] = said.String(), logged.String()
		})
	}
	all.Wait()
	for i := range configs {
		if codes[i] != nil || outs[i] != outs[0] || strings.Count(outs[i], "an order at shop") != 3 {
			t.Errorf("shop%d: %v\n%s%s", i+1, codes[i], outs[i], errs[i])
		}
	}
	all3 := strings.Join(errs, "")
	for sum := range 3 {
		if !strings.Contains(all3, fmt.Sprintf(" %d sold so far\n", sum+1)) {
			t.Errorf("nobody has counted to %d: %s", sum+1, all3)
		}
	}
}

// shops writes the configurations and certificates of a cluster of n nodes, and returns the names of the
// configuration files.
func shops(t *testing.T, dir string, n int) (configs []string) {
	t.Helper()
	certs := filepath.Join(dir, "certs")
	if _, err := cert.Create(certs, "shops", 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	var members strings.Builder
	err := cert.Update(certs, func(by *cert.Authority) error {
		for i := range n {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			name := fmt.Sprintf("shop%d", i+1)
			issued, err := by.IssueNode(name, []string{"127.0.0.1"}, time.Hour)
			if err != nil {
				return err
			}
			if err := issued.Save(certs, false); err != nil {
				return err
			}
			fmt.Fprintf(&members, "  - {name: %s, address: \"%s\", signer: \"%s\"}\n", name, l.Addr(), cert.FormatSigner(issued.SignerKey()))
			if err := l.Close(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		name := fmt.Sprintf("shop%d", i+1)
		text := fmt.Sprintf("cluster: shops\nname: %s\ncertificates: certs\nmembers:\n%s"+
			"groups:\n  - {name: orders, level: total}\ntables:\n  - {name: stock, state: keyvalue}\n", name, &members)
		configs = append(configs, filepath.Join(dir, name+".yaml"))
		if err := os.WriteFile(configs[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return configs
}
