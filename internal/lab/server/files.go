package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"io/fs"
	"net/http"
	"path"
	"time"

	"parley/internal/draw/svg"
)

// types are the types of files. The table of the operating system is not used, because it may be wrong.
var types = map[string]string{
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".json": "application/json",
	".md":   "text/plain; charset=utf-8",
	".png":  "image/png",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

// file is a file of the page.
type file struct {
	bytes     []byte
	kind, tag string
}

// files are all files by path.
type files map[string]file

func newFiles(page fs.FS) files {
	out := make(files)
	add := func(name string, b []byte) {
		sum := sha256.Sum256(b)
		f := file{b, types[path.Ext(name)], `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
		if f.kind == "" {
			f.kind = "application/octet-stream"
		}
		out["/"+name] = f
	}
	err := fs.WalkDir(page, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(page, name)
		add(name, b)
		return err
	})
	if err != nil {
		panic("server: the page cannot be read: " + err.Error())
	}
	add("scene.css", svg.Sheet())
	out["/"] = out["/index.html"]
	return out
}

// serve serves a file.
func (all files) serve(w http.ResponseWriter, r *http.Request) *refusal {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return refuse(http.StatusMethodNotAllowed, "Refused: a file takes only GET requests.")
	}
	f, ok := all[r.URL.Path]
	if !ok {
		return refuse(http.StatusNotFound, "There is no file %.100q: the page is at %s.", r.URL.Path,
			scheme(r)+"://"+r.Host+"/")
	}
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", f.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.bytes))
	return nil
}
