package main

import (
	"debug/buildinfo"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// binary is the command for one system.
type binary struct {
	os, arch string
	path     string // relative to the working folder
	info     *buildinfo.BuildInfo
	date     time.Time // of the commit
}

// build compiles the command for a system, as in linux/amd64, and reads back what the go command wrote into it.
func build(target string) (*binary, error) {
	system, arch, ok := strings.Cut(target, "/")
	if !ok {
		return nil, fmt.Errorf("-targets: %q is no system as in linux/amd64", target)
	}
	b := &binary{os: system, arch: arch, path: filepath.Join("stage", system+"_"+arch, "parley")}
	if system == "windows" {
		b.path += ".exe"
	}
	// The settings of the caller must not change a release.
	env := []string{
		"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + arch, "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1",
		"GOARM64=v8.0", "GOFIPS140=off",
	}
	_, err := command("source", env, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w",
		"-o", filepath.Join("..", b.path), "./cmd/parley")
	if err != nil {
		return nil, err
	}
	if b.info, err = buildinfo.ReadFile(b.path); err != nil {
		return nil, err
	}
	if b.date, err = time.Parse(time.RFC3339, b.setting("vcs.time")); err != nil {
		return nil, fmt.Errorf("%s: the go command wrote no commit into it: %w", b.path, err)
	}
	return b, nil
}

// setting returns what the go command wrote into the binary under a key.
func (b *binary) setting(key string) string {
	for _, s := range b.info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
