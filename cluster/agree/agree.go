// Package agree implements a node's service for agreements. There are two kinds: agreement on the value of one
// node, and agreement on the vector of the values of all nodes.
package agree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/agreement/stream"
	"parley/cluster/host"
	"parley/cluster/kernel"
	"parley/cluster/link"
	"parley/cluster/protocols"
)

// Request requests an agreement on a value of this node.
type Request struct {
	Value     []byte // at most MaxValue bytes; for m > 2 at most 32 with stream.EIG, stream.OM and stream.Tetra
	Algorithm stream.Algorithm
	// M is how many nodes may be faulty. The default is the largest number that the algorithm tolerates.
	M int
	// Evidence requests a report of each node on what it received. The call waits for the reports, but at most one
	// round. With stream.Tetra there are no such reports.
	Evidence bool
}

// Decision is the value that all correct nodes decide in one slot.
type Decision struct {
	Source    parley.ID
	Algorithm stream.Algorithm
	M         int
	// Slot numbers the agreements of one source, algorithm, and m, from 1.
	Slot  uint64
	Value []byte // must not be modified
	// Nothing says that the nodes decided on nothing, because the value of the source did not get through in time. Then
	// Value is nil. This happens only with stream.Tetra.
	Nothing bool
	// Evidence, if it was requested, says what nodes received. At the source it has the reports of all nodes
	// that reported in time. At another node it has only that node's own report.
	Evidence []stream.Evidence
}

// ErrReserved is the error for a value that is reserved to mean "no value". It also matches
// [kernel.ErrRefused].
var ErrReserved = errors.New("this value is reserved: it stands for no value")

// ErrBusy is the error of a request to a node whose earlier agreements are undecided, with stream.Tetra. It also
// matches [kernel.ErrRefused].
var ErrBusy = errors.New("too many agreements of this node are undecided: ask again later")

// Agree makes all correct nodes agree on a value of this node: see cluster.Node.Agree.
func (s *Service) Agree(ctx context.Context, q Request) (Decision, error) {
	t := s.key(q.Algorithm, q.M, s.k.Self)
	d := Decision{Source: s.k.Self, Algorithm: t.Algorithm, M: t.M}
	switch {
	case len(q.Value) > t.Limit():
		return d, fmt.Errorf("%w: the value has %d bytes: with %v and m = %d at most %d are allowed",
			kernel.ErrTooLarge, len(q.Value), t.Algorithm, t.M, t.Limit())
	case bytes.Equal(q.Value, stream.NoValue()):
		return d, fmt.Errorf("%w: %w", kernel.ErrRefused, ErrReserved)
	case q.Evidence && !t.Timed():
		return d, fmt.Errorf("%w: nodes keep no evidence of agreements by %v: omit evidence, or use eig, om, sm or phaseking",
			kernel.ErrRefused, t.Algorithm)
	}
	o, err := s.ready(t)
	if err != nil {
		return d, err
	}
	a, err := o.ask(ctx, stream.SourceRequest(q.Value, q.Evidence))
	d.Slot, d.Value, d.Evidence, d.Nothing = a.slot, a.value, a.evidence, a.nothing
	return d, err
}

// key returns the key of a stream; m 0 stands for the most faulty nodes that the algorithm tolerates.
func (s *Service) key(a stream.Algorithm, m int, source parley.ID) stream.Key {
	return stream.Key{Algorithm: a, M: cmp.Or(m, a.Most(len(s.k.Members))), Source: source}
}

// ready returns a stream that takes requests, or the error of one that does not.
func (s *Service) ready(t stream.Key) (*streamHandle, error) {
	if err := s.k.Takes(true); err != nil {
		return nil, err
	}
	if err := s.budget.Allows(t); err != nil {
		return nil, fmt.Errorf("%w: %w", kernel.ErrRefused, err)
	}
	if err := s.fits(t); err != nil {
		return nil, err
	}
	o, err := s.open(t)
	if errors.Is(err, host.ErrStopped) {
		return nil, fmt.Errorf("%w: %w", kernel.ErrClosed, err)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", kernel.ErrRefused, err)
	}
	return o, nil
}

// Stop ends the callbacks that were registered by the call that returned the Stop. It is a function and an io.Closer.
// Further calls do nothing.
type Stop func()

// Close calls the function. The error is always nil.
func (s Stop) Close() error {
	s()
	return nil
}

// Decisions calls the function each for every decision of this node, until stop is called: see
// cluster.Node.Decisions.
func (s *Service) Decisions(each func(Decision)) (stop Stop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := &each
	s.listen(append(slices.Clone(s.listeners()), mine))
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		isMine := func(one *func(Decision)) bool { return one == mine }
		s.listen(slices.DeleteFunc(slices.Clone(s.listeners()), isMine))
	}
}

// Service is a node's service for agreements: its open streams.
type Service struct {
	k      *kernel.Kernel
	budget Budget
	delay  delays

	mu    sync.Mutex
	table map[stream.Key]*streamHandle
	heard atomic.Pointer[[]*func(Decision)]
}

// New returns a service without open streams. The kernel must have its host and its store before a stream is
// opened.
func New(k *kernel.Kernel, list []Config) *Service {
	return &Service{k: k, budget: NewBudget(len(k.Members), k.Round, list), table: make(map[stream.Key]*streamHandle)}
}

func (s *Service) listen(list []*func(Decision)) { s.heard.Store(&list) }

func (s *Service) listeners() []*func(Decision) {
	if list := s.heard.Load(); list != nil {
		return *list
	}
	return nil
}

// Absent opens the stream of a channel on which a message came, and reports whether there is such a stream.
func (s *Service) Absent(channel uint32) bool {
	if channel < kernel.FirstStream || channel > kernel.LastStream {
		return false
	}
	t := protocols.StreamOf(channel)
	_, err := s.open(t)
	if err != nil {
		s.k.Log.Debug("message for a stream that cannot be opened; dropped", "channel", channel, "err", err)
	}
	return err == nil
}

// open returns a stream, opening it if necessary. All nodes open streams lazily, because there is only a bounded
// number of them.
func (s *Service) open(t stream.Key) (*streamHandle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.table[t]; o != nil {
		return o, nil
	}
	if err := s.budget.Allows(t); err != nil {
		return nil, err
	}
	if t.Algorithm == stream.SM && !s.k.Signs {
		return nil, errors.New("this node has no key to sign with: it needs a signer")
	}
	o := &streamHandle{s: s, t: t, waiting: make(map[uint64]chan agreeResult)}
	o.room, o.evidenceRoom = make(chan struct{}, s.budget.Window(t)), make(chan struct{}, stream.MaxEvidenceRequests)
	var err error
	o.process, err = s.k.Host.Open(host.Options{
		Channel: protocols.Channel(t), Name: protocols.StreamName(t), Machine: s.k.Play(s.protocol(t)), Upper: o,
		Again: s.k.Again || s.k.Rejoin,
		Class: link.Bulk,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", protocols.StreamName(t), err)
	}
	s.table[t] = o
	return o, nil
}

// Reopen opens all streams of a restarted node. So the node takes part again as soon as possible, and not
// only when a request arrives. Until it takes part, it counts as faulty.
func (s *Service) Reopen() {
	if !s.k.Again && !s.k.Rejoin {
		return
	}
	for t := range s.budget.Streams() {
		if t.Algorithm == stream.SM && !s.k.Signs {
			continue
		}
		if _, err := s.open(t); err != nil {
			s.k.Log.Warn("stream of agreements cannot be opened; its agreements fail", "stream", protocols.StreamName(t),
				"err", err)
		}
	}
}

// protocol returns the protocol of a stream.
func (s *Service) protocol(t stream.Key) parley.Protocol {
	return stream.New(stream.Config{
		Key: t, N: len(s.k.Members), Window: s.budget.Window(t), Name: s.k.Name, DiskIntact: s.k.Intact,
	}, protocols.Schedule(s.k.Round))
}

// RoundOf returns the shortest round that allows a node to be late by the given time.
func RoundOf(late time.Duration) time.Duration {
	when := protocols.Schedule(100 * time.Millisecond)
	return time.Duration(float64(late) * float64(when.Delta) / float64(when.Slack))
}

// StreamStatus is the status of one stream: of all agreements with the same algorithm, m, and source.
type StreamStatus struct {
	Algorithm string `json:"algorithm"`
	M         int    `json:"m"`
	Source    string `json:"source,omitempty"` // empty for vectors, whose sources are all nodes
	kernel.SlotStatus
}

// Status returns the status of all open streams, given how often each machine has abstained.
func (s *Service) Status(abstained map[string]uint64) []StreamStatus {
	list := []StreamStatus{}
	for _, o := range s.all() {
		one := StreamStatus{Algorithm: o.t.Algorithm.String(), M: o.t.M}
		if !o.t.All() {
			one.Source = s.k.Name(o.t.Source)
		}
		if slots := kernel.Slots(o.process, abstained[protocols.StreamName(o.t)]); slots != nil {
			one.SlotStatus = *slots
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b StreamStatus) int {
		return cmp.Or(cmp.Compare(a.Algorithm, b.Algorithm), cmp.Compare(a.M, b.M), cmp.Compare(a.Source, b.Source))
	})
	return list
}

// all returns the open streams.
func (s *Service) all() []*streamHandle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.table))
}

// Busy reports whether a request waits for its answer.
func (s *Service) Busy() bool {
	return slices.ContainsFunc(s.all(), func(o *streamHandle) bool { return len(o.room) > 0 })
}
