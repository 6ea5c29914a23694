package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"parley/cluster/disk"
	"parley/internal/lists"
)

// manifest names the files of a store and describes the contents of each. It is replaced as a whole when a
// log is closed, when a new one begins and when a base replaces older files.
type manifest struct {
	store uint64
	base  *sealed  // what is left of all logs before the first one, if there were any
	logs  []sealed // closed, oldest first
	open  uint64   // the log being written; 0 if all are closed
	next  uint64   // the number of the next file
}

// sealed is a file that is not written any more and must be complete.
type sealed struct {
	kind uint32
	file uint64
	place
}

func (s sealed) name() string {
	if s.kind == baseKind {
		return baseName(s.file)
	}
	return logName(s.file)
}

const (
	manifestName = "manifest"
	manifestNew  = "manifest.new"
)

func logName(n uint64) string  { return fmt.Sprintf("log-%08d", n) }
func baseName(n uint64) string { return fmt.Sprintf("base-%08d", n) }

func (m *manifest) encode() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "parley store %d\nstore %016x\nnext %d\n", version, m.store, m.next)
	for _, s := range m.closed() {
		what := map[uint32]string{baseKind: "base", logKind: "log"}[s.kind]
		fmt.Fprintf(&b, "%s %d bytes %d number %d chain %08x\n", what, s.file, s.offset, s.number, s.chain)
	}
	if m.open != 0 {
		fmt.Fprintf(&b, "open %d\n", m.open)
	}
	fmt.Fprintf(&b, "sum %08x\n", checksum([]byte(b.String())))
	return []byte(b.String())
}

// parseManifest parses a manifest, and returns what is wrong with it.
func parseManifest(b []byte) (m *manifest, wrong string) {
	text := string(b)
	var v int
	if _, err := fmt.Sscanf(text, "parley store %d\n", &v); err == nil && v != version {
		return nil, fmt.Sprintf("the format is %d, and this program knows %d", v, version)
	}
	at := strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n") + 1
	if text[at:] != fmt.Sprintf("sum %08x\n", checksum(b[:at])) {
		return nil, "the checksum does not match"
	}
	m = new(manifest)
	for line := range strings.Lines(text[:at]) {
		what, _, _ := strings.Cut(line, " ")
		s := sealed{kind: logKind}
		var err error
		switch what {
		case "parley":
		case "store":
			_, err = fmt.Sscanf(line, "store %x", &m.store)
		case "next":
			_, err = fmt.Sscanf(line, "next %d", &m.next)
		case "open":
			_, err = fmt.Sscanf(line, "open %d", &m.open)
		case "base", "log":
			_, err = fmt.Sscanf(line, what+" %d bytes %d number %d chain %x", &s.file, &s.offset, &s.number, &s.chain)
			if what == "base" {
				s.kind, m.base = baseKind, &s
			} else {
				m.logs = append(m.logs, s)
			}
		default:
			err = errRecord
		}
		if err != nil {
			return nil, fmt.Sprintf("%q is no line of a manifest", strings.TrimSpace(line))
		}
	}
	return m, ""
}

func (m *manifest) clone() *manifest {
	out := *m
	out.logs = slices.Clone(m.logs)
	return &out
}

// closed returns the closed files, oldest first.
func (m *manifest) closed() (all []sealed) {
	if m.base != nil {
		all = append(all, *m.base)
	}
	return append(all, m.logs...)
}

// end returns the number of the last record in the closed files.
func (m *manifest) end() (number uint64) {
	for _, s := range m.closed() {
		number = s.number
	}
	return number
}

// names returns the names of the closed files.
func (m *manifest) names() []string { return lists.Of(m.closed(), sealed.name) }

// bytes returns the size of the closed files.
func (m *manifest) bytes() (n int64) {
	for _, s := range m.closed() {
		n += s.offset
	}
	return n
}

// write replaces the manifest of a folder: after a crash either the old one or the new one is there.
func (m *manifest) write(d disk.Disk, dir string) error {
	name := filepath.Join(dir, manifestNew)
	if err := d.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := d.Create(name)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(m.encode(), 0); err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := d.Rename(name, filepath.Join(dir, manifestName)); err != nil {
		return err
	}
	return d.SyncDir(dir)
}

// readManifest returns the manifest of a folder, nil if neither a manifest nor a file that it would name
// exists.
func readManifest(d disk.Disk, dir string) (*manifest, error) {
	names, err := d.List(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, manifestName)
	b, err := disk.ReadFile(d, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		for _, name := range names {
			switch {
			case strings.HasPrefix(name, "log-"), strings.HasPrefix(name, "base-"):
				return nil, &Damage{File: path, Offset: -1, What: "the file is missing"}
			case strings.HasPrefix(name, "OPTIONS-"), strings.HasSuffix(name, ".sst"), strings.HasPrefix(name, "marker."):
				return nil, fmt.Errorf("%w: %s", ErrOldFormat, dir)
			}
		}
		return nil, nil
	case err != nil:
		return nil, err
	}
	m, wrong := parseManifest(b)
	if wrong != "" {
		return nil, &Damage{File: path, Offset: -1, What: wrong}
	}
	return m, nil
}
