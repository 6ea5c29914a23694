package engine

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"parley"
	"parley/internal/form"
	"parley/trace"
)

// mostKept is how many traces an engine keeps, and shortest how much of a hash names one.
const (
	mostKept = 3
	shortest = 8
)

// kept are the runs of traces that were given to the engine, with the latest one at the end. Questions name them by
// the beginnings of their hashes, so an answer still depends only on its question.
type kept struct {
	sync.Mutex
	all []*made
}

// Keep keeps the run of a trace, for questions that name it by its hash. file is the name of the trace's file.
func (e *Engine) Keep(file string, h trace.Header, log *trace.Log) error {
	r, err := form.Remake(e.protocols, h)
	if err != nil {
		return err
	}
	m, err := newMade(r, log, h.Facts, nil)
	if err != nil {
		return err
	}
	m.recorded, m.file = true, file
	e.kept.add(m)
	return nil
}

// add keeps a run, and forgets the oldest one if there are too many.
func (k *kept) add(m *made) {
	k.Lock()
	defer k.Unlock()
	k.all = slices.DeleteFunc(k.all, func(o *made) bool { return o.log.Hash() == m.log.Hash() })
	k.all = append(k.all, m)
	k.all = slices.Delete(k.all, 0, max(0, len(k.all)-mostKept))
}

// find returns the kept run of a trace whose hash begins with text.
func (k *kept) find(text string) (*made, error) {
	k.Lock()
	defer k.Unlock()
	for _, m := range k.all {
		if len(text) >= shortest && strings.HasPrefix(m.log.Hash(), text) {
			return m, nil
		}
	}
	return nil, &parley.FlagError{Flag: "kept", Err: fmt.Errorf("the run of this link is in a trace file, with a hash "+
		"that begins with %.32s: drop that file on the page", text)}
}
