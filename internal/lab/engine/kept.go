package engine

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"parley"
	"parley/internal/form"
	"parley/internal/input"
	"parley/internal/merged"
	"parley/trace"
)

// mostKept is how many recordings an engine keeps, and shortest how much of a hash names one.
const (
	mostKept = 3
	shortest = 8
)

// recording is a run of which there is a trace, or the traces of the nodes of a cluster.
type recording struct {
	hash  string
	run   *made   // nil: nodes
	nodes chooser // nil: a run
}

// ofNode reports whether a header belongs to the trace of a node.
func ofNode(h trace.Header) bool { return h.Node != nil && h.Node.Self != trace.Merged }

// recorded returns what traces record: one run, or nodes.
func (e *Engine) recorded(traces []trace.Trace) (r recording, err error) {
	if len(traces) != 1 || ofNode(traces[0].Header) {
		if e.merge == nil {
			return r, errNodes
		}
		return e.merge(traces)
	}
	t := traces[0]
	setup, err := form.Remake(e.protocols, t.Header)
	if err != nil {
		return r, &input.FileError{File: file, Line: 1, Err: err}
	}
	if r.run, err = newMade(setup, t.Log, t.Header.Facts, nil, nil); err == nil {
		r.run.recorded, r.run.file, r.hash = true, t.Name, t.Log.Hash()
	}
	return r, err
}

// recording reads a trace file, or a bundle of such files.
func (e *Engine) recording(from io.Reader) (recording, error) {
	in := bufio.NewReader(from)
	head, err := in.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return recording{}, err
	}
	var h trace.Header
	if bytes.HasPrefix(head, []byte(merged.Bundled)) || json.Unmarshal(head, &h) == nil && ofNode(h) {
		if e.readNodes == nil {
			return recording{}, errNodes
		}
		traces, err := e.readNodes(head, in)
		if err != nil {
			return recording{}, err
		}
		return e.recorded(traces)
	}
	h, log, err := trace.Read(io.MultiReader(bytes.NewReader(head), in))
	if err != nil {
		return recording{}, err
	}
	return e.recorded([]trace.Trace{{Header: h, Log: log}})
}

// make returns the run that flags choose.
func (r recording) make(flags map[string]string) (*made, error) {
	switch {
	case r.nodes != nil:
		return r.nodes.make(flags)
	case len(flags) > 0:
		return nil, parley.FlagErrorf("kept", "the trace has one run, so there is nothing to choose")
	}
	return r.run, nil
}

// kept are the recordings that were given to the engine, with the latest one at the end. Questions name them by the
// beginnings of their hashes, so an answer still depends only on its question.
type kept struct {
	sync.Mutex
	all []recording
}

// Keep keeps the run of a trace, or the traces of nodes, for questions that name them by the hash that Keep returns.
func (e *Engine) Keep(traces []trace.Trace) (hash string, err error) {
	r, err := e.recorded(traces)
	if err == nil {
		_, err = r.make(nil)
	}
	if err != nil {
		return "", err
	}
	e.kept.add(r)
	return r.hash, nil
}

// MaxTrace is the size of the largest trace file that an engine reads, or of the files of a bundle, in bytes.
const MaxTrace = 64 << 20

// KeepAnswer is the answer to a trace file that is kept.
type KeepAnswer struct {
	Hash string `json:"hash"` // by which questions name it
}

// KeepFile keeps the run of a trace file, or a bundle of the traces of nodes. It answers as Answer does: a
// [KeepAnswer], or what is wrong with the file.
func (e *Engine) KeepFile(from io.Reader) []byte {
	return encoded(e.keepFile(from))
}

func (e *Engine) keepFile(from io.Reader) (any, error) {
	r, err := e.recording(from)
	if err == nil {
		_, err = r.make(nil)
	}
	if err != nil {
		return nil, err
	}
	e.kept.add(r)
	return KeepAnswer{r.hash}, nil
}

// add keeps a recording, and forgets the oldest one if there are too many.
func (k *kept) add(r recording) {
	k.Lock()
	defer k.Unlock()
	k.all = slices.DeleteFunc(k.all, func(o recording) bool { return o.hash == r.hash })
	k.all = append(k.all, r)
	k.all = slices.Delete(k.all, 0, max(0, len(k.all)-mostKept))
}

// find returns the kept recording whose hash begins with text.
func (k *kept) find(text string) (recording, error) {
	k.Lock()
	defer k.Unlock()
	for _, r := range k.all {
		if len(text) >= shortest && strings.HasPrefix(r.hash, text) {
			return r, nil
		}
	}
	return recording{}, &parley.FlagError{Flag: "kept", Err: fmt.Errorf("the run of this link is in a trace file, with a "+
		"hash that begins with %.32s: drop that file on the page", text)}
}
