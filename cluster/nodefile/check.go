package nodefile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"parley/cluster"
	"parley/cluster/api/participant"
	"parley/cluster/disk"
	"parley/cluster/store"
)

// Finding is one result of Check.
type Finding struct {
	Key     string `json:"key"`
	Text    string `json:"text"` // in words
	Problem bool   `json:"problem"`
}

// Check checks the environment of the file: certificates, addresses, and folders, in their current state.
func (f *File) Check(ctx context.Context) []Finding {
	out := []Finding{{Key: "members", Text: f.inWords()}, f.checkIdentity()}
	for _, a := range f.listens() {
		if a.address != "" {
			out = append(out, f.checkListen(ctx, a.key, a.address))
		}
	}
	for _, m := range f.Members {
		host, _, _ := net.SplitHostPort(m.Address)
		if net.ParseIP(host) != nil {
			continue
		}
		found := Finding{Key: "members", Text: m.Name + ": " + host}
		if ips, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
			found.Text, found.Problem = m.Name+": "+err.Error(), true
		} else {
			found.Text += " is " + strings.Join(ips, ", ")
		}
		out = append(out, found)
	}
	if f.Participant != "" {
		out = append(out, checkParticipant(ctx, f.Name, f.Participant))
	}
	out = append(out, checkData(f.Folder(f.Data), f.Durable))
	if f.Traces != "" {
		out = append(out, checkFolder("traces", f.Folder(f.Traces), f.Folder(f.Traces)))
	}
	return out
}

// inWords describes the cluster.
func (f *File) inWords() string {
	m := cmp.Or(f.M, (len(f.Members)-1)/3)
	text := fmt.Sprintf("%d members, of which %d may lie", len(f.Members), m)
	if f.Lab != nil {
		text += ", and this one does: " + f.Lab.Traitor.Name
	}
	for i, g := range f.Groups {
		text += []string{"; groups ", ", "}[min(i, 1)] + g.Name
	}
	for i, t := range f.Tables {
		text += []string{"; tables ", ", "}[min(i, 1)] + t.Name
	}
	if f.Commit.Protocol != cluster.TwoPhase {
		text += "; transactions by " + f.Commit.Protocol.String()
	}
	if f.Links != cluster.Streams {
		text += "; linked by " + f.Links.String()
	}
	return text
}

func (f *File) checkIdentity() Finding {
	c, err := f.identity()
	if err != nil {
		// Keep the key of the error's line, which need not be certificates.
		var placed *Error
		if errors.As(err, &placed) {
			return Finding{placed.Key, fmt.Sprintf("line %d: %s", placed.Line, placed.Text), true}
		}
		return Finding{"certificates", err.Error(), true}
	}
	until := c.Self.Certificate().NotAfter
	left := time.Until(until)
	text := fmt.Sprintf("%d days", int(left.Hours()/24))
	if left < 48*time.Hour {
		text = left.Round(time.Minute).String()
	}
	return Finding{Key: "certificates", Text: fmt.Sprintf(
		"node %s of cluster %s, valid for %s, until %s; its signer is the one pinned",
		f.Name, f.Cluster, text, until.UTC().Format("2006-01-02 15:04 UTC"))}
}

// checkListen checks whether an address is free, or in use by this node: the lock on its data folder says whether it
// runs.
func (f *File) checkListen(ctx context.Context, key, address string) Finding {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		if f.Data == "" {
			const unclear = " is in use: by this node if it is running, which without data nothing shows"
			return Finding{Key: key, Text: address + unclear}
		}
		if !f.running() {
			return Finding{key, address + " is in use by another process: stop it, or change " + key, true}
		}
		return Finding{Key: key, Text: address + " is in use by this node, which is running"}
	case err != nil:
		return Finding{key, err.Error(), true}
	}
	if err := l.Close(); err != nil {
		return Finding{key, err.Error(), true}
	}
	return Finding{Key: key, Text: address + " is free"}
}

// running reports whether a process holds the lock on the node's data folder.
func (f *File) running() bool {
	name := filepath.Join(f.Folder(f.Data), "records", store.LockName)
	if _, err := os.Stat(name); err != nil {
		return false
	}
	lock, err := disk.System{}.Lock(name)
	if err == nil {
		_ = lock.Close()
	}
	return errors.Is(err, disk.ErrLocked)
}

func checkData(dir string, durable bool) Finding {
	if dir == "" {
		const none = "none: all is in memory, and a node that has ended must not start again under its name"
		return Finding{Key: "data", Text: none}
	}
	text := dir + ", from which the node restarts while a majority of the others runs"
	if durable {
		text = dir + ", from which the node restarts, also after all nodes have ended"
	}
	return checkFolder("data", dir, text)
}

// checkFolder checks whether a folder can be written to, or created. It leaves no files behind.
func checkFolder(key, dir, text string) Finding {
	info, err := os.Stat(dir)
	above := dir // the nearest existing folder
	for errors.Is(err, os.ErrNotExist) && filepath.Dir(above) != above {
		above = filepath.Dir(above)
		info, err = os.Stat(above)
	}
	switch {
	case err != nil:
		return Finding{key, err.Error(), true}
	case !info.IsDir():
		return Finding{key, above + " is not a folder", true}
	case above != dir:
		text += "; it does not exist yet, and is created at the start"
	}
	tried, err := os.MkdirTemp(above, ".parley-check-")
	if err == nil {
		err = os.Remove(tried)
	}
	if err != nil {
		return Finding{key, fmt.Sprintf("nothing can be written in %s: %v", above, err), true}
	}
	return Finding{Key: key, Text: text}
}

// checkParticipant checks whether the service can be reached. It may start later.
func checkParticipant(ctx context.Context, node, address string) Finding {
	client, err := participant.New(node, address)
	if err != nil {
		return Finding{"participant", err.Error(), true}
	}
	if err := client.Reach(ctx); err != nil {
		text := address + " does not answer, and until it does the node votes no: " + err.Error()
		return Finding{Key: "participant", Text: text}
	}
	return Finding{Key: "participant", Text: address + " answers"}
}
