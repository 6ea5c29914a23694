package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// curlFile returns the curl configuration with the certificate of the client that has all rights.
func curlFile(dir string) string { return filepath.Join(dir, "curl") }

// writeCurl writes the curl configuration, and a file env next to it that sets the addresses of the APIs for shells.
func writeCurl(dir string, nodes []*Node) error {
	certs, err := filepath.Abs(filepath.Join(dir, "certs"))
	if err != nil {
		return err
	}
	quoted := func(file string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(filepath.Join(certs, file)) + `"`
	}
	text := fmt.Sprintf("# curl -K this file: client admin of the cluster, who may do everything\n"+
		"cacert = %s\ncert = %s\nkey = %s\nheader = \"Content-Type: application/json\"\nsilent\nshow-error\n",
		quoted("ca.pem"), quoted("client-admin.pem"), quoted("client-admin.key"))
	if err := os.WriteFile(curlFile(dir), []byte(text), 0o600); err != nil {
		return err
	}
	var env strings.Builder
	fmt.Fprintf(&env, "# where the nodes' APIs are\nAPI=https://%s\n", nodes[0].API)
	for i, n := range nodes {
		fmt.Fprintf(&env, "API%d=https://%s\n", i+1, n.API)
	}
	return os.WriteFile(filepath.Join(dir, "env"), []byte(env.String()), 0o600)
}
