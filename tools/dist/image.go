package main

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// imageUser is the user that the program runs as in a container. It has no name there.
const imageUser = 65532

// image writes a container image for all binaries for Linux, from scratch, as an archive of an OCI image layout.
func (r *release) image() error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range r.binaries {
		if b.os != "linux" {
			continue
		}
		img, err := r.imageFor(b)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: b.os, Architecture: b.arch},
		}})
	}
	top, err := layout.Write("image", empty.Index)
	if err != nil {
		return err
	}
	// Both annotations name the image: the first for podman and skopeo, the second for containerd.
	names := map[string]string{
		"org.opencontainers.image.ref.name": r.version(),
		"io.containerd.image.name":          "localhost/parley:" + r.version(),
	}
	if err := top.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return err
	}
	var files []file
	err = filepath.WalkDir("image", func(path string, d fs.DirEntry, err error) error { // in order of names
		if err != nil || path == "image" {
			return err
		}
		f := file{name: filepath.ToSlash(path[len("image/"):]), mode: 0o644}
		if d.IsDir() {
			f.name, f.mode = f.name+"/", 0o755
		} else if f.data, err = os.ReadFile(path); err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		return err
	}
	name := filepath.Join(r.out, "parley_"+r.version()+"_image.oci.tar")
	return os.WriteFile(name, tarOf(files, r.binaries[0].date), 0o644)
}

// imageFor returns the image for one binary: the program, the licenses, a folder for its records, and one for
// temporary files.
func (r *release) imageFor(b *binary) (v1.Image, error) {
	files := []file{
		{name: "tmp/", mode: 0o1777},
		{name: "var/", mode: 0o755},
		{name: "var/lib/", mode: 0o755},
		{name: "var/lib/parley/", mode: 0o700, owner: imageUser},
	}
	for _, source := range []string{b.path, "source/LICENSE", "stage/THIRD-PARTY-LICENSES"} {
		data, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		f := file{name: filepath.Base(source), data: data, mode: 0o644}
		if source == b.path {
			f.mode = 0o755
		}
		files = append(files, f)
	}
	tarred := tarOf(files, b.date)
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(tarred)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.Append(base, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: b.date}, CreatedBy: "make dist", Comment: "from scratch"},
	})
	if err != nil {
		return nil, err
	}
	config, err := r.imageConfig(b, img)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(img, config)
}

// imageConfig says how a container of the image runs.
func (r *release) imageConfig(b *binary, img v1.Image) (*v1.ConfigFile, error) {
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = b.os, b.arch, v1.Time{Time: b.date}
	config.Config = v1.Config{
		User:       strconv.Itoa(imageUser) + ":" + strconv.Itoa(imageUser),
		Entrypoint: []string{"/parley"},
		WorkingDir: "/var/lib/parley",
		Labels: map[string]string{
			"org.opencontainers.image.title":    "parley",
			"org.opencontainers.image.version":  r.version(),
			"org.opencontainers.image.revision": b.setting("vcs.revision"),
			"org.opencontainers.image.created":  b.setting("vcs.time"),
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return config, nil
}
