// Command dist builds a release from the commit that is checked out. A release has archives with binaries, a .deb
// and a .rpm package, a container image, a list of the modules in each binary, and checksums.
//
//	go -C tools/dist run . [-out FOLDER] [-targets linux/amd64,windows/arm64]
//
// The command clones the repository and builds in the clone. So only committed files can get into a release, and
// the go command writes the commit into the binaries. All times in the files are the time of the commit. So if the
// same version of Go builds the same commit again, the release has the same bytes.
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

func main() {
	out := flag.String("out", "../../dist", "the `folder` of the release, which is emptied first")
	only := flag.String("targets", allTargets, "the systems to build for")
	flag.Parse()
	// Ctrl-C ends the command that runs, and so this one, which then removes its working folder.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	if err := dist("../..", *out, strings.Split(*only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// dist builds a release of the repository at root.
func dist(root, out string, targets []string) (err error) {
	root, rootErr := filepath.Abs(root)
	out, outErr := filepath.Abs(out)
	work, workErr := os.MkdirTemp("", "parley-dist-")
	if err := errors.Join(rootErr, outErr, workErr); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if changes, err := command(root, nil, "git", "status", "--porcelain"); err != nil {
		return err
	} else if changes != "" {
		fmt.Fprintln(os.Stderr, "dist: the release is of the last commit: changes that are not committed are left out")
	}
	if _, err := command(root, nil, "git", "clone", "--quiet", root, filepath.Join(work, "source")); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o755)); err != nil {
		return err
	}
	if err := os.Chdir(work); err != nil { // packaging/nfpm.yaml names files relative to it
		return err
	}
	r := &release{out: out}
	for _, name := range targets {
		b, err := build(name)
		if err != nil {
			return err
		}
		r.binaries = append(r.binaries, b)
	}
	if err := r.stage(); err != nil {
		return err
	}
	for _, make := range []func() error{r.archives, r.packages, r.image, r.boms, r.sums} {
		if err := make(); err != nil {
			return err
		}
	}
	return nil
}

// release is what is built. The working folder has the clone in "source", and in "stage" what goes into packages.
type release struct {
	out      string
	binaries []*binary
}

// version is the version of the release without the letter v.
func (r *release) version() string { return strings.TrimPrefix(r.binaries[0].info.Main.Version, "v") }

// name returns the name of a file of the release for one system.
func (r *release) name(b *binary, suffix string) string {
	return filepath.Join(r.out, fmt.Sprintf("parley_%s_%s_%s%s", r.version(), b.os, b.arch, suffix))
}

// sums writes the checksums of all files, as sha256sum does.
func (r *release) sums() error {
	entries, err := os.ReadDir(r.out) // in order of names
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(data), e.Name())
		fmt.Printf("%9d  %s\n", len(data), e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(text.String()), 0o644)
}

// command runs a command in a folder and returns its output; env is added to the environment.
func command(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}
