// Package cert holds the commands that create, show and revoke the certificates of a cluster.
package cert

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/console"
	"parley/cluster/cert"
)

// Command is "parley cert".
func Command(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cert",
		Short: "Issue, show and revoke certificates",
		Long: "An authority is a folder with a key (ca.key) and its certificate (ca.pem). The authority " +
			"signs a certificate for each node and each client of a cluster, and keeps a list of the " +
			"revoked certificates (crl.pem). Nodes and " +
			"clients authenticate each other with their certificates. A node also gets a signer: a key that " +
			"signs messages of protocols. The configuration of each node names the signers of all " +
			"nodes.\n\n" +
			"Copy ca.pem and crl.pem to each node and client. Copy the files with a node's or client's name " +
			"only to that node or client. Never copy ca.key. The exit status is 2 if a command refused its " +
			"input and changed nothing.",
		Example: "  parley cert init --cluster bank\n  parley cert issue a b c d\n" +
			"  parley cert client alice --rights read,write\n  parley cert show",
		Args: cobra.ArbitraryArgs, RunE: console.OneOf,
	}
	cmd.AddCommand(initCommand(a), issueCommand(a), clientCommand(a), revokeCommand(a), showCommand(a))
	return cmd
}

// flags are the flags that the certificate commands have in common.
type flags struct {
	dir    string
	asJSON bool
	valid  durationFlag
	renew  bool
}

func (f *flags) declare(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "dir", "certs", "`folder` of the authority")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print the result as JSON")
}

// declareIssue adds the flags of the commands that create certificates.
func (f *flags) declareIssue(cmd *cobra.Command) {
	f.declare(cmd)
	console.Prints(cmd.Flags(), "cert-issue", issuedOutput{})
	f.valid = durationFlag(90 * day)
	cmd.Flags().Var(&f.valid, "valid", "how long the certificates are valid: `time` from 1m to 100y, as in 24h, 90d or 1y")
	cmd.Flags().BoolVar(&f.renew, "renew", false,
		"replace certificates and their keys; old certificates stay valid until they expire")
}

const day = 24 * time.Hour

// durationFlag is a duration flag that also accepts days and years, as in 24h, 90d or 10y.
type durationFlag time.Duration

// Set, String and Type implement a flag's value.
func (s *durationFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	for suffix, unit := range map[string]time.Duration{"d": day, "y": 365 * day} {
		if count, ok := strings.CutSuffix(text, suffix); ok {
			var n uint64
			n, err = strconv.ParseUint(count, 10, 16)
			d = time.Duration(min(n, 1e5)) * unit // prevents overflow
		}
	}
	if err != nil || d < cert.MinValid || d > cert.MaxValid {
		return errors.New("allowed are 1m to 100y, as in 24h, 90d or 10y")
	}
	*s = durationFlag(d)
	return nil
}

func (s *durationFlag) String() string {
	switch d := time.Duration(*s); {
	case d >= 365*day && d%(365*day) == 0:
		return fmt.Sprintf("%dy", d/(365*day))
	case d >= day && d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	default:
		return d.String()
	}
}

// Type names the value in the help.
func (s *durationFlag) Type() string { return "time" }

// rightsFlag is rights as a flag.
type rightsFlag cert.Rights

// Set, String and Type implement a flag's value.
func (r *rightsFlag) Set(text string) error {
	parsed, err := cert.ParseRights(text)
	if err != nil {
		return errors.New("allowed are read, write and admin, with commas between them")
	}
	*r = rightsFlag(parsed)
	return nil
}

func (r *rightsFlag) String() string { return cert.Rights(*r).String() }

// Type names the value in the help.
func (r *rightsFlag) Type() string { return "rights" }

// someNames demands at least one NAME, and none twice.
func someNames(cmd *cobra.Command, args []string) error {
	seen := make(map[string]bool)
	for _, name := range args {
		if err := cert.CheckName(name); err != nil {
			return fmt.Errorf("%s: %w", cmd.CommandPath(), err)
		}
		if seen[name] {
			return fmt.Errorf("%s: %q is named twice", cmd.CommandPath(), name)
		}
		seen[name] = true
	}
	return console.Args(1, 0, "at least one NAME was expected")(cmd, args)
}

// authorityOutput is the JSON output of "parley cert init".
type authorityOutput struct {
	Cluster string    `json:"cluster"`
	Dir     string    `json:"dir"`
	Serial  string    `json:"serial"`
	Until   time.Time `json:"until"`
}

// initCommand is "parley cert init".
func initCommand(a *console.App) *cobra.Command {
	var f flags
	var cluster string
	cmd := &cobra.Command{
		Use:   "init --cluster NAME",
		Short: "Create the certificate authority of a cluster",
		Long: "Init creates an authority: its key ca.key, its certificate ca.pem, and an empty\n" +
			"revocation list crl.pem. The exit status is 2 if the folder already has an\n" +
			"authority.",
		Example: "  parley cert init --cluster bank\n  parley cert init --cluster post --dir post --valid 2y",
		Args:    console.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := cert.CheckName(cluster); err != nil {
				return parley.FlagErrorf("cluster", "%w", err)
			}
			made, err := cert.Create(f.dir, cluster, time.Duration(f.valid))
			if err != nil {
				return parley.FlagErrorf("dir", "%w", err)
			}
			until := made.Certificate().NotAfter
			if f.asJSON {
				return a.PrintJSON(authorityOutput{cluster, f.dir, cert.Serial(made.Certificate()), until})
			}
			_, err = fmt.Fprintf(a.Out, "authority of cluster %s, valid until %s\n"+
				"%s and %s: copy them to every node and client\n%s: the secret key, never copy it\n", cluster, dated(until),
				filepath.Join(f.dir, "ca.pem"), filepath.Join(f.dir, "crl.pem"), filepath.Join(f.dir, "ca.key"))
			return err
		},
	}
	f.declare(cmd)
	console.Prints(cmd.Flags(), "cert-init", authorityOutput{})
	f.valid = durationFlag(10 * 365 * day)
	cmd.Flags().StringVar(&cluster, "cluster", "", "`name` of the cluster (required)")
	cmd.Flags().Var(&f.valid, "valid", "how long the authority is valid: `time` from 1m to 100y, as in 90d or 10y")
	return cmd
}

// issueCommand is "parley cert issue".
func issueCommand(a *console.App) *cobra.Command {
	var f flags
	var hosts []string
	cmd := &cobra.Command{
		Use:   "issue NAME...",
		Short: "Issue certificates and signing keys of nodes",
		Long: "Issue creates a certificate, its key, and a signer for each node. Issue prints the " +
			"public key of each signer: a line that begins with \"ed25519:\". Add this line to the " +
			"configuration of all nodes.\n\n" +
			"curl and browsers check the host names and addresses in a certificate: set them with --hosts. " +
			"Nodes and Parley's clients check the name of the node instead.\n\n" +
			"With --renew, a node gets a new certificate and keeps its signer. To replace the signer too, " +
			"first revoke the node's certificates and remove the node's files. Then issue new files without " +
			"--renew. The exit status is 2 if a NAME already has a certificate. With --renew, it is 2 if a " +
			"NAME has no certificate yet.",
		Example: "  parley cert issue a b c d\n  parley cert issue e --hosts e.example.org,192.0.2.5 --valid 24h\n" +
			"  parley cert issue a --renew",
		Args: someNames,
		RunE: func(_ *cobra.Command, names []string) error {
			for _, h := range hosts {
				if err := cert.CheckHost(h); err != nil {
					return parley.FlagErrorf("hosts", "%w", err)
				}
			}
			return issueAll(a, f, cert.Node, names, func(by *cert.Authority, name string) (*cert.Issued, error) {
				return by.IssueNode(name, hosts, time.Duration(f.valid))
			})
		},
	}
	f.declareIssue(cmd)
	local := []string{"localhost", "127.0.0.1", "::1"}
	cmd.Flags().StringSliceVar(&hosts, "hosts", local, "host `names` and addresses in certificates, separated by commas")
	return cmd
}

// clientCommand is "parley cert client".
func clientCommand(a *console.App) *cobra.Command {
	var f flags
	rights := rightsFlag(cert.Read | cert.Write)
	cmd := &cobra.Command{
		Use:   "client NAME...",
		Short: "Issue certificates of clients",
		Long: "Client creates a certificate and its key for each client. No right includes another right: a " +
			"client that may do everything needs read,write,admin. The exit status is 2 if a NAME already " +
			"has a certificate. With --renew, it is 2 if a NAME has no certificate yet.",
		Example: "  parley cert client alice\n  parley cert client root --rights read,write,admin --valid 24h",
		Args:    someNames,
		RunE: func(_ *cobra.Command, names []string) error {
			return issueAll(a, f, cert.Client, names, func(by *cert.Authority, name string) (*cert.Issued, error) {
				return by.IssueClient(name, cert.Rights(rights), time.Duration(f.valid))
			})
		},
	}
	f.declareIssue(cmd)
	cmd.Flags().Var(&rights, "rights", "`rights` of the clients, separated by commas: read|write|admin")
	return cmd
}

// issuedOutput is the JSON output of the commands that create certificates.
type issuedOutput struct {
	Certificates []issued `json:"certificates"`
}

// issued is a new certificate as the commands print it.
type issued struct {
	cert.Record
	Certificate string `json:"certificate"` // files
	Key         string `json:"key"`
	SignerKey   string `json:"signer_key,omitempty"`
	Signer      string `json:"signer,omitempty"` // the value to pin
}

func issueAll(a *console.App, f flags, kind cert.Kind, names []string,
	issue func(*cert.Authority, string) (*cert.Issued, error),
) error {
	var all []*cert.Issued
	err := cert.Update(f.dir, func(by *cert.Authority) error {
		if until := by.Certificate().NotAfter; time.Now().Add(time.Duration(f.valid)).After(until) {
			return parley.FlagErrorf("valid", "%s: the authority is valid only until %s: choose a shorter time",
				&f.valid, dated(until))
		}
		for _, name := range names {
			if err := mayIssue(by, f, kind, name); err != nil {
				return err
			}
		}
		for _, name := range names {
			made, err := issue(by, name)
			if err != nil {
				return err
			}
			all = append(all, made)
		}
		return nil
	})
	if err != nil {
		return initFirst(err)
	}
	var out []issued
	for _, made := range all {
		if err := made.Save(f.dir, f.renew); err != nil {
			return err
		}
		i := issued{Record: made.Record}
		i.Certificate, i.Key = cert.Files(f.dir, kind, made.Name)
		if kind == cert.Node && !f.renew {
			i.SignerKey, _ = cert.SignerFiles(f.dir, made.Name)
			i.Signer = cert.FormatSigner(made.SignerKey())
		}
		out = append(out, i)
	}
	if f.asJSON {
		return a.PrintJSON(issuedOutput{out})
	}
	for _, i := range out {
		fmt.Fprintf(a.Out, "%s %s: %s and %s, valid until %s\n", kind, i.Name, i.Certificate, i.Key, dated(i.Until))
		if i.Signer != "" {
			fmt.Fprintf(a.Out, "  signer %s\n  %s\n", i.SignerKey, i.Signer)
		}
	}
	return nil
}

// mayIssue returns an error if there already is a certificate, or with --renew if there is none.
func mayIssue(by *cert.Authority, f flags, kind cert.Kind, name string) error {
	known := false
	for _, r := range by.Records() {
		if r.Kind != kind || r.Name != name {
			continue
		}
		known = true
		if !f.renew && r.State(time.Now()) == "valid" {
			return fmt.Errorf("%s %s has a certificate that is valid until %s: --renew replaces it", kind, name, dated(r.Until))
		}
	}
	if f.renew {
		if !known {
			return parley.FlagErrorf("renew", "%s %s has no certificate to replace: omit --renew", kind, name)
		}
		return nil
	}
	var files [4]string
	files[0], files[1] = cert.Files(f.dir, kind, name)
	files[2], files[3] = cert.SignerFiles(f.dir, name)
	for i, file := range files {
		if _, err := os.Lstat(file); err == nil && (i < 2 || kind == cert.Node) {
			return fmt.Errorf("%s exists already: --renew replaces it", file)
		}
	}
	return nil
}

// initFirst adds what to do where there is no authority.
func initFirst(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return parley.FlagErrorf("dir", "%w: an authority was expected, as \"parley cert init\" creates it", err)
	}
	return err
}

// revokedOutput is the JSON output of "parley cert revoke".
type revokedOutput struct {
	Certificates []cert.Record `json:"certificates"`
}

// revokeCommand is "parley cert revoke".
func revokeCommand(a *console.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "revoke NAME|SERIAL...",
		Short: "Revoke certificates",
		Long: "Revoke adds certificates to the authority's revocation list, crl.pem. It revokes all " +
			"certificates of each NAME, and the certificate with each SERIAL number. If a node and a client " +
			"have the same name, write node/NAME or client/NAME. The exit status is 2 if a NAME or SERIAL " +
			"is unknown.\n\n" +
			"Then copy crl.pem to all nodes. The nodes read the new list within a minute, and close the " +
			"connections of the revoked certificates. To revoke a node's signer, remove the signer from the " +
			"configuration of all nodes.",
		Example: "  parley cert revoke alice\n  parley cert revoke node/e",
		Args:    console.Args(1, 0, "at least one NAME or SERIAL was expected"),
		RunE: func(_ *cobra.Command, args []string) error {
			var all []cert.Record
			err := cert.Update(f.dir, func(by *cert.Authority) error {
				for _, what := range args {
					found, err := by.Revoke(what)
					if err != nil {
						return err
					}
					all = append(all, found...)
				}
				return nil
			})
			if err != nil {
				return initFirst(err)
			}
			if f.asJSON {
				return a.PrintJSON(revokedOutput{all})
			}
			for _, r := range all {
				who := "a certificate that is not in the index"
				if r.Kind != 0 {
					who = r.Kind.String() + " " + r.Name
				}
				fmt.Fprintf(a.Out, "revoked: %s, serial %s\n", who, r.Serial)
			}
			fmt.Fprintf(a.Out, "copy %s to all nodes\n", filepath.Join(f.dir, "crl.pem"))
			return nil
		},
	}
	f.declare(cmd)
	console.Prints(cmd.Flags(), "cert-revoke", revokedOutput{})
	return cmd
}

func dated(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
