package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// file is a file of an archive.
type file struct {
	name string
	data []byte
	mode int64
	// owner is the number of the file's user and group.
	owner int
}

// archives writes one archive for each binary: .zip for Windows, .tar.gz for the others.
func (r *release) archives() error {
	for _, b := range r.binaries {
		files, err := r.contents(b)
		if err != nil {
			return err
		}
		if b.os == "windows" {
			err = zipped(r.name(b, ".zip"), files, b.date)
		} else {
			err = tarred(r.name(b, ".tar.gz"), files, b.date)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// contents returns the files of an archive, below one folder.
func (r *release) contents(b *binary) ([]file, error) {
	sources := []string{b.path, "source/LICENSE", "source/README.md", "source/CHANGELOG.md", "stage/THIRD-PARTY-LICENSES"}
	for _, pattern := range []string{"stage/completions/*", "stage/man1/*.1"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		sources = append(sources, names...)
	}
	top := path.Base(r.name(b, ""))
	var files []file
	for _, source := range sources {
		data, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		f := file{name: path.Join(top, filepath.Base(source)), data: data, mode: 0o644}
		switch folder := filepath.Base(filepath.Dir(source)); {
		case source == b.path:
			f.mode = 0o755
		case slices.Contains([]string{"completions", "man1"}, folder):
			f.name = path.Join(top, folder, filepath.Base(source))
		}
		files = append(files, f)
	}
	return files, nil
}

func tarred(name string, files []file, date time.Time) error {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // which fails only for a level that does not exist
	_, err := z.Write(tarOf(files, date))
	return errors.Join(err, z.Close(), os.WriteFile(name, out.Bytes(), 0o644))
}

// tarOf returns a tar archive. A file whose name ends with a slash is a folder.
func tarOf(files []file, date time.Time) []byte {
	var out bytes.Buffer // which does not fail
	t := tar.NewWriter(&out)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), Uid: f.owner, Gid: f.owner, ModTime: date}
		_ = t.WriteHeader(h)
		_, _ = t.Write(f.data)
	}
	_ = t.Close()
	return out.Bytes()
}

func zipped(name string, files []file, date time.Time) error {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date}
		h.SetMode(os.FileMode(f.mode))
		w, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	return errors.Join(z.Close(), os.WriteFile(name, out.Bytes(), 0o644))
}
