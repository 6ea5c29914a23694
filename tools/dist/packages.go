package main

import (
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers itself
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// packages writes a .deb and a .rpm for each binary for Linux, as packaging/nfpm.yaml says.
func (r *release) packages() error {
	for _, b := range r.binaries {
		if b.os != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			if err := r.pack(b, format); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *release) pack(b *binary, format string) error {
	variables := map[string]string{"ARCH": b.arch, "VERSION": r.version()}
	lookup := func(name string) string { return variables[name] }
	config, err := nfpm.ParseFileWithEnvMapping("source/packaging/nfpm.yaml", lookup)
	if err != nil {
		return err
	}
	info, err := config.Get(format)
	if err != nil {
		return err
	}
	info = nfpm.WithDefaults(info)
	info.MTime = b.date
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(r.out, packager.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	if err := packager.Package(info, out); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
