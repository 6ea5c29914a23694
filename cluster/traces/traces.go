// Package traces writes the traces of a node's machines to files, and keeps their latest events in memory.
package traces

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"parley"
	"parley/cluster/disk"
	"parley/cluster/host"
	"parley/trace"
)

// Tracing says where a node writes the traces of its machines. Each machine has one trace, in the format of the
// simulator, written as events happen. Machines do not wait for the writing. Events that cannot be written fast
// enough are dropped, and the trace records this.
type Tracing struct {
	// Open is called for each machine with the header of its trace, and returns the destination of the trace.
	// Folder returns such a function. If Open fails, the node logs the error and continues.
	Open func(h trace.Header) (io.WriteCloser, error)
	// Limit is how many bytes are written for each machine, and Buffer how many bytes may wait to be written. By
	// default there is no limit, and the buffer is 8 MiB.
	Limit  int64
	Buffer int
}

// Folder returns a function that creates a file for each trace in a folder. If necessary, it also creates the folder.
// A file name consists of the machine, the node, and the node's incarnation.
func Folder(dir string) func(h trace.Header) (io.WriteCloser, error) {
	return func(h trace.Header) (io.WriteCloser, error) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		machine := strings.ReplaceAll(h.Node.Machine, "/", "-")
		name := fmt.Sprintf("%s.%s.%d.jsonl", machine, h.Name(parley.ID(h.Node.Self)), h.Node.Life)
		return os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
}

// Tracer writes the traces of a node, and holds its recorder.
type Tracer struct {
	Recorder *host.Recorder
	c        *Tracing // nil: no traces are written
	log      *slog.Logger

	mu   sync.Mutex
	open []traced
}

// traced is one trace that is being written.
type traced struct {
	machine string
	stream  *trace.Stream
	file    io.Closer
}

// New returns a tracer without traces, with a recorder of the given size in bytes.
func New(c *Tracing, recorder int, log *slog.Logger) *Tracer {
	return &Tracer{Recorder: host.NewRecorder(recorder), c: c, log: log}
}

// Begin begins the trace of a machine, and returns the function that adds events. It returns nil if there is no
// trace.
func (t *Tracer) Begin(h trace.Header) func(trace.Event) {
	w, err := t.c.Open(h)
	if err == nil {
		var s *trace.Stream
		s, err = trace.NewStream(w, h, trace.StreamOptions{Buffer: t.c.Buffer, Limit: t.c.Limit})
		if err == nil {
			t.mu.Lock()
			t.open = append(t.open, traced{h.Node.Machine, s, w})
			t.mu.Unlock()
			return s.Add
		}
		err = errors.Join(err, w.Close())
	}
	t.log.Error("trace cannot be created; this machine has none", "machine", h.Node.Machine, "err", err)
	return nil
}

// Close ends the traces. A trace that cannot be written does not fail the node.
func (t *Tracer) Close() {
	t.mu.Lock()
	open := t.open
	t.open = nil
	t.mu.Unlock()
	for _, one := range open {
		err := errors.Join(one.stream.Close(), one.file.Close())
		if dropped := one.stream.Dropped(); dropped > 0 || err != nil {
			t.log.Warn("trace is incomplete", "machine", one.machine, "dropped", dropped, "err", err)
		}
	}
}

// FlightFile is the file to which the recorder is dumped when the node fails.
const FlightFile = "flight.jsonl"

// Dump writes the recorded events to FlightFile in a folder, and replaces an existing file. If dir is empty, it
// writes to a temporary file. It returns the file's name.
func (t *Tracer) Dump(d disk.Disk, dir string) (file string, err error) {
	if dir == "" {
		f, err := os.CreateTemp("", "flight-*.jsonl")
		if err != nil {
			return "", err
		}
		return f.Name(), errors.Join(t.Recorder.Dump(f, host.Excerpt{}), f.Close())
	}
	var b bytes.Buffer
	if err := t.Recorder.Dump(&b, host.Excerpt{}); err != nil {
		return "", err
	}
	file = filepath.Join(dir, FlightFile)
	if err := d.Remove(file + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	f, err := d.Create(file + ".new")
	if err != nil {
		return "", err
	}
	_, err = f.WriteAt(b.Bytes(), 0)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return file, d.Rename(file+".new", file)
}
