package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// lay writes entries below a folder.
func lay(t *testing.T, root string, files map[string]file) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) { // folders before what is in them
		f, path := files[name], filepath.Join(root, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
		} else {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f.data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		mode := os.FileMode(f.mode & 0o777)
		if f.mode&0o1000 != 0 {
			mode |= os.ModeSticky
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if os.Getuid() == 0 {
			if err := os.Lchown(path, f.owner, f.owner); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// images returns the images of the archive by architecture.
func images(t *testing.T) map[string]v1.Image {
	t.Helper()
	archive, err := os.Open(only(t, "parley_*_image.oci.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	dir := t.TempDir()
	lay(t, dir, untar(t, archive))
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("got %d indexes (%v), want one", len(manifest.Manifests), err)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	if manifest, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	found := make(map[string]v1.Image)
	for _, m := range manifest.Manifests {
		if found[m.Platform.Architecture], err = index.Image(m.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// The image is from scratch: it has what the test names, and the command of the archives.
func TestImage(t *testing.T) {
	found := images(t)
	for _, target := range strings.Split(*targets, ",") {
		system, arch, _ := strings.Cut(target, "/")
		if system != "linux" {
			continue
		}
		if found[arch] == nil {
			t.Errorf("there is no image for %s", arch)
			continue
		}
		config, err := found[arch].ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != arch || config.Config.User != "65532:65532" || len(config.RootFS.DiffIDs) != 1 {
			t.Errorf("got %s, user %s, %d layers", config.Architecture, config.Config.User, len(config.RootFS.DiffIDs))
		}
		files := untar(t, mutate.Extract(found[arch]))
		for name := range files {
			switch name {
			case "parley", "LICENSE", "THIRD-PARTY-LICENSES", "tmp/", "var/", "var/lib/", "var/lib/parley/":
			default:
				t.Errorf("%s: it has %s", arch, name)
			}
		}
		if !bytes.Equal(files["parley"].data, archive(t, "linux", arch)["parley"]) {
			t.Errorf("%s: the command is not the one in the archive", arch)
		}
	}
}

// The image for this system is unpacked, and its entry point run in it as its user.
func TestImageRuns(t *testing.T) {
	needsRoot(t)
	img := images(t)[runtime.GOARCH]
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	lay(t, root, untar(t, mutate.Extract(img)))
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(config.Config.Entrypoint[0], append(config.Config.Entrypoint[1:], args...)...)
		cmd.Dir, cmd.Env = config.Config.WorkingDir, config.Config.Env
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Chroot: root, Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser},
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if out := run("--version"); !strings.Contains(out, commit(t)) {
		t.Errorf("got %q", out)
	}
	if out := run("run", "eig", "--n", "4", "--m", "1", "--faulty", "2=twofaced"); !agreed(out) {
		t.Errorf("got:\n%s", out)
	}
	run("cert", "init", "--cluster", "bank") // writes to the working folder
	if _, err := os.Stat(filepath.Join(root, config.Config.WorkingDir, "certs/ca.pem")); err != nil {
		t.Error(err)
	}
}
