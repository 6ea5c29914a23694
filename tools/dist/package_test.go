package main

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sassoftware/go-rpmutils"
)

// packaged are the files of both packages, beside the man pages and the script for zsh.
var packaged = []string{
	"usr/bin/parley", "usr/lib/systemd/system/parley.service", "usr/share/parley/node.yaml",
	"usr/share/doc/parley/copyright", "usr/share/doc/parley/THIRD-PARTY-LICENSES",
	"usr/share/bash-completion/completions/parley", "usr/share/fish/vendor_completions.d/parley.fish",
	"usr/share/man/man1/parley.1.gz", "usr/share/man/man1/parley-node.1.gz",
}

// checkPackaged demands what both packages have, and that the command is the one in the archive.
func checkPackaged(t *testing.T, arch string, files map[string][]byte, zsh string) {
	t.Helper()
	for _, name := range append(slices.Clone(packaged), zsh) {
		if len(files[name]) == 0 {
			t.Errorf("%s: no %s", arch, name)
		}
	}
	for name := range files {
		if strings.HasPrefix(name, "etc/") {
			t.Errorf("%s: %s would overwrite a file of the operator", arch, name)
		}
	}
	if !bytes.Equal(files["usr/bin/parley"], archive(t, "linux", arch)["parley"]) {
		t.Errorf("%s: the command is not the one in the archive", arch)
	}
	if !bytes.Contains(files["usr/share/parley/node.yaml"], []byte("\ndata: /var/lib/parley\n")) {
		t.Errorf("%s: the example does not name the folder of the service", arch)
	}
}

// rpmArch is what a .rpm calls an architecture.
var rpmArch = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

func linuxArchs() (archs []string) {
	for _, target := range strings.Split(*targets, ",") {
		if arch, ok := strings.CutPrefix(target, "linux/"); ok {
			archs = append(archs, arch)
		}
	}
	return archs
}

func TestDebs(t *testing.T) {
	for _, arch := range linuxArchs() {
		name := only(t, "parley_*_"+arch+".deb")
		want := "parley " + strings.Replace(version(t), "-", "~", 1) + " " + arch
		if got := output(t, "dpkg-deb", "--show", "--showformat=${Package} ${Version} ${Architecture}", name); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		files := make(map[string][]byte)
		for name, f := range untar(t, strings.NewReader(output(t, "dpkg-deb", "--fsys-tarfile", name))) {
			if f.owner != 0 {
				t.Errorf("%s: %s belongs to user %d", arch, name, f.owner)
			}
			if !strings.HasSuffix(name, "/") {
				files[name] = f.data
			}
		}
		checkPackaged(t, arch, files, "usr/share/zsh/vendor-completions/_parley")
	}
}

func TestRPMs(t *testing.T) {
	for _, arch := range linuxArchs() {
		in, err := os.Open(only(t, "parley-*."+rpmArch[arch]+".rpm"))
		if err != nil {
			t.Fatal(err)
		}
		rpm, err := rpmutils.ReadRpm(in)
		if err != nil {
			t.Fatal(err)
		}
		name, err := rpm.Header.GetNEVRA()
		if err != nil {
			t.Fatal(err)
		}
		want := strings.ReplaceAll(strings.Replace(version(t), "-", "~", 1), "-", "_")
		if name.Name != "parley" || name.Version != want || name.Arch != rpmArch[arch] {
			t.Errorf("got %v, want version %s", name, want)
		}
		files, contents := make(map[string][]byte), payload(t, rpm)
		for {
			f, err := contents.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if f.Mode()&0o170000 == 0o100000 { // a regular file
				files[strings.TrimLeft(f.Name(), "./")] = all(t, contents)
			}
		}
		checkPackaged(t, arch, files, "usr/share/zsh/site-functions/_parley")
		_ = in.Close()
	}
}

func payload(t *testing.T, rpm *rpmutils.Rpm) rpmutils.PayloadReader {
	t.Helper()
	r, err := rpm.PayloadReaderExtended()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rpm itself reads the package and checks its sums, where it is installed.
func TestRPMInstalls(t *testing.T) {
	needsRoot(t)
	if _, err := exec.LookPath("rpm"); errors.Is(err, exec.ErrNotFound) {
		t.Log("rpm is not installed here: that it installs the package was NOT CHECKED")
		return
	}
	root := newRoot(t)
	name := only(t, "parley-*."+rpmArch[runtime.GOARCH]+".rpm")
	output(t, "rpm", "--checksig", "--nosignature", name)
	output(t, "rpm", "--root", root, "--nodeps", "--install", name)
	installed(t, root)
	output(t, "rpm", "--root", root, "--nodeps", "--erase", "parley")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/parley")); err == nil {
		t.Error("the command is still there")
	}
}

// installed demands what holds once either package was installed: a user that cannot log in, and a service that is not
// enabled.
func installed(t *testing.T, root string) {
	t.Helper()
	user := strings.Split(strings.TrimSpace(within(t, root, "getent", "passwd", "parley")), ":")
	if len(user) != 7 || user[2] == "0" || user[6] != "/usr/sbin/nologin" {
		t.Errorf("got user %q", user)
	}
	out, _ := exec.Command("systemctl", "--root", root, "is-enabled", "parley.service").CombinedOutput()
	if got := strings.TrimSpace(string(out)); got != "disabled" { // the exit status is 1 then
		t.Errorf("got a service that is %q, want disabled", got)
	}
	if out := within(t, root, "/usr/bin/parley", "--version"); !strings.Contains(out, commit(t)) {
		t.Errorf("got %q", out)
	}
	if out := within(t, root, "bash", "-c", "source /usr/share/bash-completion/completions/parley && complete -p parley"); out !=
		"complete -o default -F __start_parley parley\n" {
		t.Errorf("got completion %q", out)
	}
	var pages []string
	for _, name := range slices.Sorted(maps.Keys(archive(t, "linux", runtime.GOARCH))) {
		if page, ok := strings.CutPrefix(name, "man1/"); ok {
			pages = append(pages, page)
		}
	}
	for _, page := range pages {
		if _, err := os.Stat(filepath.Join(root, "usr/share/man/man1", page+".gz")); err != nil {
			t.Error(err)
		}
	}
}
