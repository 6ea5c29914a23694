package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// A binary for another system is not run: its format and what the go command wrote into it are checked.
func TestBinaries(t *testing.T) {
	for _, target := range strings.Split(*targets, ",") {
		t.Run(strings.ReplaceAll(target, "/", "-"), func(t *testing.T) {
			system, arch, _ := strings.Cut(target, "/")
			data := archive(t, system, arch)[binaryName(system)]
			if err := format(data, system, arch); err != nil {
				t.Error(err)
			}
			info, err := buildinfo.Read(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if want := "v" + version(t); info.Main.Version != want {
				t.Errorf("got version %s, want %s", info.Main.Version, want)
			}
			b := &binary{info: info}
			for key, want := range map[string]string{
				"GOOS": system, "GOARCH": arch, "CGO_ENABLED": "0", "-trimpath": "true",
				"vcs.revision": commit(t), "vcs.modified": "false",
			} {
				if got := b.setting(key); got != want {
					t.Errorf("%s: got %q, want %q", key, got, want)
				}
			}
			checkBOM(t, only(t, fmt.Sprintf("parley_*_%s_%s.cdx.json", system, arch)), info)
		})
	}
}

// format demands that a file is a program for a system, and for Linux that it is linked with nothing.
func format(data []byte, system, arch string) error {
	r := bytes.NewReader(data)
	switch system {
	case "linux":
		f, err := elf.NewFile(r)
		if err != nil {
			return err
		}
		if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]; f.Machine != want {
			return fmt.Errorf("got a program for %v, want %v", f.Machine, want)
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
				return fmt.Errorf("it is not static: it has a segment %v", p.Type)
			}
		}
	case "darwin":
		f, err := macho.NewFile(r)
		if err != nil {
			return err
		}
		if want := map[string]macho.Cpu{"amd64": macho.CpuAmd64, "arm64": macho.CpuArm64}[arch]; f.Cpu != want {
			return fmt.Errorf("got a program for %v, want %v", f.Cpu, want)
		}
	case "windows":
		f, err := pe.NewFile(r)
		if err != nil {
			return err
		}
		want := map[string]uint16{"amd64": pe.IMAGE_FILE_MACHINE_AMD64, "arm64": pe.IMAGE_FILE_MACHINE_ARM64}[arch]
		if f.Machine != want {
			return fmt.Errorf("got a program for %#x, want %#x", f.Machine, want)
		}
	default:
		return fmt.Errorf("no format of %s is known", system)
	}
	return nil
}

// checkBOM demands that a list of modules names exactly those in the binary.
func checkBOM(t *testing.T, name string, info *buildinfo.BuildInfo) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	if bom.BOMFormat != cdx.BOMFormat || bom.Metadata.Component.Version != info.Main.Version {
		t.Errorf("%s: got %s of %s", name, bom.BOMFormat, bom.Metadata.Component.Version)
	}
	want := []string{"pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range info.Deps {
		want = append(want, "pkg:golang/"+m.Path+"@"+m.Version)
	}
	var got []string
	for _, c := range *bom.Components {
		got = append(got, c.PackageURL)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || len(got) < 10 {
		t.Errorf("%s: got modules %q, want %q", name, got, want)
	}
}

func TestBinaryRuns(t *testing.T) {
	program := unpack(t)
	stamp := output(t, program, "--version")
	if !strings.Contains(stamp, "parley version v"+version(t)+" (commit "+commit(t)+", 20") {
		t.Errorf("got %q", stamp)
	}
	if out := output(t, program, "run", "eig", "--n", "4", "--m", "1", "--faulty", "2=twofaced"); !agreed(out) {
		t.Errorf("got:\n%s", out)
	}
}

// agreed reports whether a run of eig printed that agreement held.
func agreed(out string) bool {
	return strings.Contains(out, "agreement") && strings.Contains(out, "held") && !strings.Contains(out, "VIOLATED")
}
