package cert

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cli/console"
	"parley/cluster/cert"
)

// showCommand is "parley cert show".
func showCommand(a *console.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "show [FILE...]",
		Short: "Show certificates and what is wrong with them",
		Long: "Show lists the certificates that the authority has issued. With FILEs, it prints for each " +
			"FILE: its kind, its owner, the end of its validity, and what is wrong with it. It checks a " +
			"FILE against ca.pem and crl.pem. These two files are in the folder of --dir. " +
			"Without --dir, they are in the folder of the FILE. Show changes nothing.\n\n" +
			"The exit status is 1 if something is wrong with a file, and 2 if a file is no certificate, " +
			"key, signer, or revocation list. Show still prints the other files.",
		Example: "  parley cert show\n  parley cert show certs/node-a.pem certs/signer-a.pub",
		RunE: func(cmd *cobra.Command, files []string) error {
			if len(files) == 0 {
				return showAuthority(a, f)
			}
			if !cmd.Flags().Changed("dir") {
				f.dir = ""
			}
			return showFiles(a, f, files)
		},
	}
	f.declare(cmd)
	console.Prints(cmd.Flags(), "cert-show", recordsOutput{})
	console.Prints(cmd.Flags(), "cert-show-files", filesOutput{})
	return cmd
}

// recordsOutput is the JSON output of "parley cert show" without files.
type recordsOutput struct {
	Certificates []record `json:"certificates"`
}

// record is an entry of the authority's index.
type record struct {
	cert.Record
	State string `json:"state"`
}

// filesOutput is the JSON output of "parley cert show" with files. A file may hold several things.
type filesOutput struct {
	Found []cert.Description `json:"found"`
}

func showAuthority(a *console.App, f flags) error {
	by, err := cert.Open(f.dir)
	if err != nil {
		return initFirst(err)
	}
	now, rows := time.Now(), []record{}
	for _, r := range by.Records() {
		rows = append(rows, record{r, r.State(now)})
	}
	if f.asJSON {
		return a.PrintJSON(recordsOutput{rows})
	}
	own := by.Certificate()
	text := "valid until " + dated(own.NotAfter)
	if now.After(own.NotAfter) {
		text = "expired on " + dated(own.NotAfter)
	}
	fmt.Fprintf(a.Out, "authority of cluster %s, %s\n", by.Cluster(), text)
	if len(rows) == 0 {
		fmt.Fprintln(a.Out, "it has issued nothing")
		return nil
	}
	wide := len("name")
	for _, r := range rows {
		wide = max(wide, len(r.Name))
	}
	fmt.Fprintf(a.Out, "%-6s  %-*s  %-32s  %-20s  %s\n", "kind", wide, "name", "serial", "until", "state")
	for _, r := range rows {
		if r.Rights != 0 {
			r.State += "; may " + strings.ReplaceAll(r.Rights.String(), ",", ", ")
		}
		fmt.Fprintf(a.Out, "%-6s  %-*s  %s  %s  %s\n", r.Kind, wide, r.Name, r.Serial, dated(r.Until), r.State)
	}
	return nil
}

func showFiles(a *console.App, f flags, files []string) error {
	all, status := []cert.Description{}, console.Fine
	for _, file := range files {
		trust, err := cert.LoadTrust(cmp.Or(f.dir, filepath.Dir(file)), nil)
		if err != nil && (f.dir != "" || !errors.Is(err, fs.ErrNotExist)) {
			return initFirst(err)
		}
		found, err := cert.Inspect(file, trust)
		if err != nil {
			status = console.Usage
			a.Complain(status, err)
			continue
		}
		for _, d := range found {
			if d.Problem != "" {
				status = max(status, console.Violated)
			}
		}
		all = append(all, found...)
	}
	if f.asJSON {
		return console.End(status, a.PrintJSON(filesOutput{all}))
	}
	for _, d := range all {
		printDescription(a, d)
	}
	return console.End(status, nil)
}

// printDescription prints what the file is, and one line for each of its properties.
func printDescription(a *console.App, d cert.Description) {
	fmt.Fprintf(a.Out, "%s: %s\n", d.File, d.What)
	line := func(key, text string) {
		if text != "" {
			fmt.Fprintf(a.Out, "  %-6s  %s\n", key, text)
		}
	}
	line("name", d.Name)
	line("use", d.Use)
	line("rights", d.Rights.String())
	line("hosts", strings.Join(d.Hosts, ", "))
	line("serial", d.Serial)
	switch {
	case !d.Until.IsZero():
		line("valid", dated(d.From)+" to "+dated(d.Until))
	case !d.From.IsZero():
		line("made", dated(d.From))
	}
	line("number", d.Number)
	if d.Number != "" {
		line("lists", fmt.Sprintf("%d revoked", d.Revoked))
	}
	line("signer", d.Signer)
	line("state", cmp.Or(d.Problem, "nothing is wrong with it"))
}
