package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// These tests check a release, as "make dist-check" runs them. They need Linux, git, dpkg and systemd-analyze. Those that
// install a package or change the root folder need root too, and fail without it.

var (
	folder  = flag.String("dist", "", "the `folder` of the release to check")
	targets = flag.String("targets", allTargets, "the systems that it is for")
)

// apart is the variable of the environment that says that the process is in namespaces of its own.
const apart = "PARLEY_DIST_APART"

// TestMain gives the tests mounts and a network of their own if it may, so that nothing of them stays, and no other
// program has their ports.
func TestMain(m *testing.M) {
	flag.Parse()
	if *folder == "" {
		fmt.Fprintln(os.Stderr, "say which release: -dist FOLDER, as make dist makes it")
		os.Exit(2)
	}
	if own := runtime.GOOS + "/" + runtime.GOARCH; !slices.Contains(strings.Split(*targets, ","), own) {
		fmt.Fprintf(os.Stderr, "-targets must have %s, because these tests run what is for this system\n", own)
		os.Exit(2)
	}
	switch {
	case os.Getuid() != 0:
	case os.Getenv(apart) == "":
		runtime.LockOSThread() // the child ends with this thread
		cmd := exec.Command(os.Args[0], os.Args[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.Env = append(os.Environ(), apart+"=yes")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL,
		}
		if err := cmd.Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	default:
		if err := loopback(); err != nil {
			fmt.Fprintln(os.Stderr, "the loopback interface:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// loopback starts the loopback interface of a network namespace.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	up, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	up.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, up)
}

// needsRoot fails a test that is not run by root.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this check changes the root folder: run make dist-check as root")
	}
}

// output runs a command, and returns what it prints.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// only returns the one file of the release that a pattern matches.
func only(t *testing.T, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(*folder, pattern))
	if err != nil || len(names) != 1 {
		t.Fatalf("%s: got %q (%v), want one file", pattern, names, err)
	}
	return names[0]
}

// commit is the commit that the release must be of.
func commit(t *testing.T) string { return strings.TrimSpace(output(t, "git", "rev-parse", "HEAD")) }

// version is the version of the release, from the name of the image.
func version(t *testing.T) string {
	_, rest, _ := strings.Cut(filepath.Base(only(t, "parley_*_image.oci.tar")), "_")
	return strings.TrimSuffix(rest, "_image.oci.tar")
}

// archive returns the files of the archive for a system, without the folder that they are in.
func archive(t *testing.T, system, arch string) map[string][]byte {
	t.Helper()
	if system == "windows" {
		z, err := zip.OpenReader(only(t, "parley_*_windows_"+arch+".zip"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = z.Close() }()
		files := make(map[string][]byte)
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			files[below(f.Name)] = all(t, r)
		}
		return files
	}
	data, err := os.ReadFile(only(t, "parley_*_"+system+"_"+arch+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	for name, f := range untar(t, z) {
		files[below(name)] = f.data
	}
	return files
}

func below(name string) string {
	_, rest, _ := strings.Cut(name, "/")
	return rest
}

func all(t *testing.T, r io.Reader) []byte {
	t.Helper()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// untar returns the entries of a tar archive by name, without a dot and slashes at the beginning. The name of a folder
// ends with a slash.
func untar(t *testing.T, r io.Reader) map[string]file {
	t.Helper()
	files := make(map[string]file)
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		name := strings.Trim(h.Name, "./")
		if h.Typeflag == tar.TypeDir {
			name += "/"
		}
		files[name] = file{name: name, data: all(t, in), mode: h.Mode, owner: h.Uid}
	}
}

func TestSums(t *testing.T) {
	sums, err := os.ReadFile(filepath.Join(*folder, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(*folder)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, e := range entries {
		if e.Name() == "SHA256SUMS" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(*folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&want, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	if string(sums) != want.String() {
		t.Errorf("got:\n%swant:\n%s", sums, &want)
	}
}

func TestArchives(t *testing.T) {
	for _, target := range strings.Split(*targets, ",") {
		system, arch, _ := strings.Cut(target, "/")
		files := archive(t, system, arch)
		for _, name := range []string{
			"LICENSE", "THIRD-PARTY-LICENSES", "README.md", "CHANGELOG.md", "man1/parley.1", "man1/parley-node.1",
			"completions/parley.bash", "completions/_parley", "completions/parley.fish",
		} {
			if len(files[name]) == 0 {
				t.Errorf("%s: no %s", target, name)
			}
		}
		for _, module := range []string{"Go go1", "github.com/spf13/cobra v", "golang.org/x/sys v"} {
			if !bytes.Contains(files["THIRD-PARTY-LICENSES"], []byte("\n"+module)) {
				t.Errorf("%s: no license of %s", target, module)
			}
		}
	}
}

// A second release of the same commit has the same bytes, whatever the zone, the language and the mask for new files. It
// is built without a network.
func TestSecondReleaseIsTheSame(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	again := filepath.Join(t.TempDir(), "again")
	cmd := exec.Command("go", "run", ".", "-out", again, "-targets", *targets)
	cmd.Env = append(os.Environ(), "GOPROXY=off", "TZ=Pacific/Chatham", "LC_ALL=tr_TR.UTF-8")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first, err := os.ReadFile(filepath.Join(*folder, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(filepath.Join(again, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Errorf("got:\n%swant:\n%s", second, first)
	}
}

// binaryName is the name of the command in an archive.
func binaryName(system string) string {
	if system == "windows" {
		return "parley.exe"
	}
	return "parley"
}

// unpack writes the command for this system to a file that runs.
func unpack(t *testing.T) string {
	t.Helper()
	name := path.Join(t.TempDir(), "parley")
	if err := os.WriteFile(name, archive(t, runtime.GOOS, runtime.GOARCH)["parley"], 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}
