package cli_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cli/local"
)

// badCall is a command line of the cluster side with input that is not allowed, or that no node answers.
type badCall struct {
	line   string // without "parley"; node.yaml is the file of node1 in the cluster bank, of which no node runs
	status int
	want   string // part of the only line on the standard error
}

// badCalls are calls of nodes.
var badCalls = []badCall{
	{"status", 2, "--dir: it is missing: name the folder of a local cluster, or with --at the nodes of any"},
	{"status --dir full", 2, "--dir: open full/node1/node.yaml: no such file or directory: the folder of a cluster was expected"},
	{"status --dir nowhere", 2, "--dir: open nowhere/node1/node.yaml: no such file or directory: the folder of a cluster was expected"},
	{"status --dir bank --at nobody", 2, `--at: "nobody": allowed are node1, node2, node3`},
	{"status --at localhost", 2, `--at: "localhost": HOST:PORT was expected, as in localhost:7101`},
	{"status --at localhost:99999 --certificates bank/certs", 2, `--at: "localhost:99999": a PORT from 1 to 65535 was expected`},
	{"status --at localhost:7101", 2, "--certificates: it is missing: name the folder with ca.pem"},
	{"status --at localhost:7101 --certificates nowhere", 2, `open nowhere/client-admin.pem: no such file or directory: "parley cert`},
	{"status --dir bank --as nobody", 2, `--as: open bank/certs/client-nobody.pem: no such file or directory: "parley cert client" issues`},
	{"status --dir bank --as ../x", 2, `--as: "../x" is no name: allowed are 1 to 63 of a-z, 0-9 and -`},
	{"status --dir bank --timeout 0s", 2, "--timeout: 0s: a time above 0 was expected"},
	{"status --dir bank --timeout 10", 2, `--timeout: "10": a time with its unit was expected, as in 100ms or 1.5s`},
	{"status --dir bank --verbos", 2, "unknown flag --verbos: did you mean --verbose?"},
	{"status --dir bank --at node1", 3, "node1: dial tcp 127.0.0.1:"},
	{"clock --dir bank --at node2", 3, "node2: dial tcp 127.0.0.1:"},
	{"clock --dir bank --wait -1s", 2, "--wait: -1s: a time from 0 on was expected, as in 10s"},
	{"agree --dir bank", 2, "parley agree: VALUE was expected, and none is given"},
	{"agree a -m 99999999999 --dir bank", 2, `-m: "99999999999": allowed are whole numbers from 0 to 4294967295`},
	{"status extra --dir bank", 2, `parley status: unexpected argument "extra": "parley status --help" shows what is allowed`},
	{"clock extra --dir bank", 2, `parley clock: unexpected argument "extra"`},
	{"agree a b --dir bank", 2, "one VALUE was expected, and 2 are given: quote it, or use --name for several values"},
	{"agree a --algorithm x --dir bank", 2, `--algorithm: "x": allowed are eig, om, sm, phaseking and tetra`},
	{"agree a --rule median --dir bank", 2, "--rule: it needs --name"},
	{"agree --name x --rule mean node1=1 --dir bank", 2, `--rule: "mean": allowed are majority, median, minimum and maximum`},
	{"agree a --otherwise 1 --dir bank", 2, "--otherwise: it needs --rule"},
	{"agree --name x --evidence node1=1 --dir bank", 2, "--evidence: it is not allowed with --name"},
	{"agree --name x node9=1 --dir bank", 2, `"node9=1": NODE=VALUE was expected, and the nodes are node1, node2, node3`},
	{"agree --name x node1=1 node1=2 --dir bank", 2, `"node1=2": node1 has a value already`},
	{"agree --name x --rule median node1=a --dir bank", 2, `"node1=a": a whole number was expected behind the =`},
	{"broadcast --dir bank", 2, "parley broadcast: GROUP was expected, and none is given"},
	{"broadcast total x --level loud --dir bank", 2, `--level: "loud": allowed are total, reliable, uniform, fifo, causal, atomic, byz`},
	{"subscribe total --count 0 --dir bank", 2, "--count: 0: a number above 0 was expected"},
	{"subscribe total --from -1 --dir bank", 2, `--from: "-1": a whole number from 0 on was expected`},
	{"table frob", 2, `parley table: unknown command "frob": allowed are add, delete, do, get, put, query`},
	{"table put t k --dir bank", 2, "parley table put: TABLE and KEY and VALUE were expected, and 2 are given"},
	{"table add t k many --dir bank", 2, `parley table add: "many": a whole number was expected`},
	{"table add t k -1 --dir bank", 2, "write arguments that begin with - after --, as in"},
	{"agree x -m -1 --dir bank", 2, `-m: "-1": a whole number from 0 on was expected`},
	{"agree --name '' node1=x --dir bank", 2, "--name: 0 bytes: allowed are 1 to 64"},
	{"table", 2, "parley table: name a command: allowed are add, delete, do, get, put, query"},
	{"status --timeout 999999999h --dir bank", 2, `--timeout: "999999999h": the largest that is allowed is 2562047h`},
	{"commit '' node1=a --dir bank", 2, "TRANSACTION has 0 bytes: allowed are 1 to 255"},
	{"commit t1 --dir bank", 2, "parley commit: TRANSACTION and NODE=WHAT were expected, and only one is given"},
	{"commit t1 node1 --dir bank", 2, `"node1": NODE=WHAT was expected, each node once`},
	{"commit t1 node1=a node1=b --dir bank", 2, `"node1=b": NODE=WHAT was expected, each node once`},
	{"commit " + strings.Repeat("t", 256) + " node1=a --dir bank", 2, "TRANSACTION has 256 bytes: allowed are 1 to 255"},
}

// badClusters are commands about whole clusters, nodes, and certificates.
var badClusters = []badCall{
	{"cluster frob", 2, `parley cluster: unknown command "frob": allowed are down, drain, expel, forget, leave, up`},
	{"cluster up extra", 2, `parley cluster up: unexpected argument "extra"`},
	{"node extra", 2, `parley node: unexpected argument "extra"`},
	{"cluster up -n 0", 2, "-n: 0 nodes: allowed are 1 to 32"},
	{"cluster up -n 1000", 2, "-n: 1000 nodes: allowed are 1 to 32"},
	{"cluster up -n 4 -m 2", 2, "-m: 2 faulty nodes of 4: allowed is 1, because n > 3m"},
	{"cluster up -n 7 -m 0", 2, "-m: 0 faulty nodes of 7: allowed are 1 to 2, because n > 3m"},
	{"cluster up --traitor 9=flip", 2, `--traitor: "9" is not a node: allowed are 1 to 4`},
	{"cluster up --traitor 1", 2, `--traitor: "1": NODE=BEHAVIOR was expected, as in 3=twofaced`},
	{"cluster up --traitor 1=fly", 2, `--traitor: unknown behavior "fly": allowed are honest, silent, flip`},
	{"cluster up --traitor 1=flip,2=flip", 2, "--traitor: 2 nodes: with m = 1 at most 1 may lie"},
	{"cluster up --round 1ms", 2, "--round: 1ms: allowed are 10ms to 1h"},
	{"cluster up --participant x", 2, `--participant: "x": this is no address of a participant: allowed are http://127.0.0.1:PORT`},
	{"cluster up --dir bank --round 1s", 2, "--round: 1s, but bank holds a cluster that keeps its configuration, with 100ms: omit the flag, or delete"},
	{"cluster up --dir bank -n 5", 2, "-n: 5, but bank holds a cluster that keeps its configuration, with 3: omit the flag, or delete"},
	{"cluster up --dir full", 2, `--dir: full has letter: a folder that "parley cluster up" has made, or an empty one, was expected`},
	{"cluster up --dir full/letter", 2, "--dir: open full/letter: not a directory"},
	{"cluster down", 2, "--dir: it is missing: the folder of a running cluster was expected"},
	{"cluster down --dir bank", 2, `--dir: no cluster runs in bank: "parley cluster up --dir bank" starts one`},
	{"cluster leave node9 --dir bank", 2, `parley cluster leave: NODE: "node9": allowed are node1, node2, node3`},
	{"cluster leave node1 --at node2 --dir bank", 2, "--at: it is not allowed here: node1 itself is called"},
	{"cluster expel node9 --dir bank", 2, `parley cluster expel: NODE: "node9": allowed are node1, node2, node3`},
	{"cluster forget a b --dir bank", 2, "parley cluster forget: one NODE was expected, and 2 are given"},
	{"node --config nowhere.yaml", 2, `--config: open nowhere.yaml: no such file or directory: "parley node --example" prints one`},
	{"node --config bank", 2, "--config: read bank: is a directory"},
	{"node --config bank/node1/node.yaml --check --rejoin", 2, "--rejoin: it is not allowed with --check"},
	{"node verify", 2, "--dir: it is missing: the data folder of a stopped node was expected"},
	{"node verify --dir bank", 2, "--dir: bank has no records of a node: give the folder that"},
	{"doctor --config bank/node1/node.yaml", 2, "--round: it is missing"},
	{"doctor --round --config bank/node1/node.yaml --for 0s", 2, "--for: 0s: allowed are 1s to 24h"},
	{"doctor --round --config bank/node1/node.yaml --client nobody", 2, "--client: open bank/certs/client-nobody.pem: no such file"},
	{"doctor --round --config bank/node1/node.yaml --client admin", 3, "node1: dial tcp 127.0.0.1:"},
	{"demo --width -3", 2, "--width: -3: a number of columns from 20 on was expected, or 0"},
	{"cert init", 2, `--cluster: "" is no name: allowed are 1 to 63 of a-z, 0-9 and -`},
	{"cert init --cluster x --valid 1s", 2, `--valid: "1s": allowed are 1m to 100y, as in 24h, 90d or 10y`},
	{"cert init --cluster x --dir bank/certs", 2, "--dir: bank/certs/ca.key is there already: a folder without an authority was expected"},
	{"cert issue --dir bank/certs", 2, "parley cert issue: at least one NAME was expected, and none is given"},
	{"cert issue 'a b' --dir bank/certs", 2, `parley cert issue: "a b" is no name: allowed are 1 to 63 of a-z, 0-9 and -`},
	{"cert issue a a --dir bank/certs", 2, `parley cert issue: "a" is named twice`},
	{"cert issue node1 --dir bank/certs", 2, "node node1 has a certificate that is valid until "},
	{"cert issue z --renew --dir bank/certs", 2, "--renew: node z has no certificate to replace: omit --renew"},
	{"cert issue z --valid 99y --dir bank/certs", 2, "--valid: 99y: the authority is valid only until "},
	{"cert issue z --hosts 'a b' --dir bank/certs", 2, `--hosts: "a b" is neither a host name nor an address`},
	{"cert issue a --dir nowhere", 2, `--dir: stat nowhere/ca.pem: no such file or directory: an authority was expected, as `},
	{"cert client bob --rights all --dir bank/certs", 2, `--rights: "all": allowed are read, write and admin, with commas`},
	{"cert revoke nobody --dir bank/certs", 2, `no certificate of "nobody" was issued: a NAME, node/NAME, client/NAME or a serial was expected`},
	{"cert show full/letter", 2, "full/letter: neither a certificate nor a revocation list, a key or a signer"},
}

// takeNothing are the commands without arguments.
var takeNothing = []string{
	"status", "clock", "cluster up", "cluster down", "node", "node verify", "doctor", "cert init", "demo",
	"completion bash",
}

// badConfigs are changes of a node's configuration, old text and new, with what "parley node" says after the name of the
// file. Package nodefile tests the others.
var badConfigs = [][3]string{
	{"cluster: local", "cluster: other", `:1: cluster: "other": the authority in bank/certs belongs to cluster local`},
	{"cluster: local", "cluster: {", ":3: not YAML: "},
	{"name: node1\n", "name: node9\n", `:2: name: "node9" is none of the members: allowed are node1, node2, node3`},
	{"certificates: ../certs", "certificates: nowhere", ":4: certificates: open bank/node1/nowhere/ca.pem: no such file or directory"},
	{"data: data", "data: node.yaml", ": data: open bank/node1/node.yaml: not a directory"},
}

// badFiles are files of certificates with other contents, which come from another file or are given (empty: no file),
// with what "parley node" says.
var badFiles = [][3]string{
	{"node-node1.key", "", "open bank/certs/node-node1.key: no such file or directory"},
	{"node-node1.key", "junk\n", `bank/certs/node-node1.key: block 1: a PEM block "PRIVATE KEY" was expected`},
	{"node-node1.key", "node-node2.key", "bank/certs/node-node1.key: the key does not belong to the certificate in node-node1.pem"},
	{"node-node1.pem", "", "open bank/certs/node-node1.pem: no such file or directory"},
	{"ca.pem", "junk\n", `bank/certs/ca.pem: block 1: a PEM block "CERTIFICATE" was expected`},
	{"crl.pem", "junk\n", `bank/certs/crl.pem: block 1: a PEM block "X509 CRL" was expected`},
	{"signer-node1.key", "", "open bank/certs/signer-node1.key: no such file or directory"},
	{"signer-node1.key", "signer-node2.key", ": members: signer: ed25519:"},
}

// beginsOnce reports whether an error begins with the program's name, or that of a command, and has it only there.
func beginsOnce(stderr string) bool {
	return strings.HasPrefix(stderr, "parley") && !strings.HasPrefix(stderr, "parley: parley ")
}

// refuse runs a command line, and demands its exit status and one line on the standard error with a part of it.
func refuse(t *testing.T, in badCall) {
	t.Helper()
	stdout, stderr, status := run(words(in.line)...)
	if status != in.status || stdout != "" || strings.Count(stderr, "\n") != 1 || !beginsOnce(stderr) ||
		!strings.Contains(stderr, in.want) || strings.Contains(stderr, "goroutine ") {
		t.Errorf("%s: got status %d, %q, %q; want %d, one line with %q", in.line, status, stdout, stderr, in.status, in.want)
	}
}

// Bad input of the commands for clusters ends in one line that names the flag, file, key or argument, and what is allowed.
func TestBadInputsOfClusters(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("PARLEY_DIR", "")
	plan := local.Plan{N: 3}
	if err := plan.Make(t.Context(), "bank"); err != nil {
		t.Fatal(err)
	}
	write := func(file string, text []byte) {
		t.Helper()
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(file string) []byte {
		t.Helper()
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if err := os.Mkdir("full", 0o700); err != nil {
		t.Fatal(err)
	}
	write("full/letter", []byte("hello\n"))
	config := filepath.Join("bank", "node1", "node.yaml")
	whole := []byte(strings.Replace(string(read(config)), "durable: false", "durable: true", 1))
	for _, in := range append(badCalls, badClusters...) {
		refuse(t, in)
	}
	for _, command := range takeNothing {
		refuse(t, badCall{command + " more", 2, fmt.Sprintf(`parley %[1]s: unexpected argument "more": "parley %[1]s --help"`, command)})
	}
	for _, c := range badConfigs {
		if !strings.Contains(string(whole), c[0]) {
			t.Fatalf("the configuration has no %q", c[0])
		}
		write(config, []byte(strings.Replace(string(whole), c[0], c[1], 1)))
		refuse(t, badCall{"node --config " + config, 2, config + c[2]})
	}
	write(config, whole)
	for _, c := range badFiles {
		file := filepath.Join("bank", "certs", c[0])
		before := read(file)
		switch {
		case c[1] == "":
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		case strings.HasSuffix(c[1], "\n"):
			write(file, []byte(c[1]))
		default:
			write(file, read(filepath.Join("bank", "certs", c[1])))
		}
		refuse(t, badCall{"node --config " + config, 2, c[2]})
		write(file, before)
	}
}

// A node whose address another process uses says so, with the key to change.
func TestNodeAddressInUse(t *testing.T) {
	t.Chdir(t.TempDir())
	plan := local.Plan{N: 1}
	if err := plan.Make(t.Context(), "bank"); err != nil {
		t.Fatal(err)
	}
	nodes, err := local.Nodes("bank")
	if err != nil {
		t.Fatal(err)
	}
	n := nodes[0]
	for key, address := range map[string]string{"members: address": n.Address, "api": n.API, "metrics": n.Metrics} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		refuse(t, badCall{"node --config " + n.Config, 2, fmt.Sprintf("%s: %s is in use: this node is running already, or ", key, address)})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
