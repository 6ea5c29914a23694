// Package agree is a node's part in agreements: on the value of one node, and on the values of all under a name.
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
	"parley/lockstep"
)

// Request asks for an agreement on a value of this node's.
type Request struct {
	Value     []byte // at most MaxValue bytes; with stream.EIG and stream.OM for m > 2 at most 32
	Algorithm stream.Algorithm
	// M is how many nodes may lie; by default as many as the algorithm tolerates.
	M int
	// Evidence asks all nodes what they heard. The answer waits for them, a round at most.
	Evidence bool
}

// Decision is what all correct nodes agree on.
type Decision struct {
	Source    parley.ID
	Algorithm stream.Algorithm
	M         int
	// Slot numbers the agreements of the same source, algorithm and m, from 1.
	Slot  uint64
	Value []byte // which nobody may change
	// Evidence is, where it was asked for, what nodes say they heard: at the source of
	// all that told in time, at another node its own.
	Evidence []stream.Evidence
}

// ErrReserved is the error of the one value that stands for no value. It is [kernel.ErrRefused], too.
var ErrReserved = errors.New("the value is the one that stands for none")

// Agree has all correct nodes agree on a value of this one: see cluster.Node.Agree.
func (s *Service) Agree(ctx context.Context, q Request) (Decision, error) {
	t := s.key(q.Algorithm, q.M, s.k.Self)
	d := Decision{Source: s.k.Self, Algorithm: t.Algorithm, M: t.M}
	switch {
	case len(q.Value) > t.Limit():
		return d, fmt.Errorf("%w: a value of %d bytes: with %v and m = %d at most %d",
			kernel.ErrTooLarge, len(q.Value), t.Algorithm, t.M, t.Limit())
	case bytes.Equal(q.Value, stream.NoValue()):
		return d, fmt.Errorf("%w: %w", kernel.ErrRefused, ErrReserved)
	}
	o, err := s.ready(t)
	if err != nil {
		return d, err
	}
	a, err := o.ask(ctx, stream.SourceRequest(q.Value, q.Evidence))
	d.Slot, d.Value, d.Evidence = a.slot, a.value, a.evidence
	return d, err
}

// key names the stream of a question; m 0 stands for the most liars that the algorithm tolerates.
func (s *Service) key(a stream.Algorithm, m int, source parley.ID) stream.Key {
	return stream.Key{Algorithm: a, M: cmp.Or(m, a.Most(len(s.k.Members))), Source: source}
}

// ready returns a stream in which something may be asked for.
func (s *Service) ready(t stream.Key) (*streamHandle, error) {
	if err := s.k.Takes(true); err != nil {
		return nil, err
	}
	if err := s.budget.Allows(t); err != nil {
		return nil, fmt.Errorf("%w: %w", kernel.ErrRefused, err)
	}
	if err := s.fits(t.M); err != nil {
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

// Stop ends what the call that returned it began. It is a function and an io.Closer: either will do, and again
// does nothing more.
type Stop func()

// Close is the call of the function. The error is always nil.
func (s Stop) Close() error {
	s()
	return nil
}

// Decisions has a function called for every decision of this node until stop: see cluster.Node.Decisions.
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

// Service is a node's part in agreements: the streams that are open at it.
type Service struct {
	k      *kernel.Kernel
	budget Budget
	delay  delays

	mu    sync.Mutex
	table map[stream.Key]*streamHandle
	heard atomic.Pointer[[]*func(Decision)]
}

// New returns a service of which no stream is open. The kernel has its host and its store before one is.
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

// Absent opens the stream of a channel on which a message came, and tells whether there is one.
func (s *Service) Absent(channel uint32) bool {
	if channel < kernel.FirstStream || channel > kernel.LastStream {
		return false
	}
	t := StreamOf(channel)
	_, err := s.open(t)
	if err != nil {
		s.k.Log.Debug("a message of no stream", "channel", channel, "why", err)
	}
	return err == nil
}

// open returns a stream, which it opens if it is not open yet. All nodes do so lazily:
// there are only so many.
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
		return nil, errors.New("this node has no key to sign with")
	}
	o := &streamHandle{s: s, t: t, waiting: make(map[uint64]chan agreeResult)}
	o.room, o.whys = make(chan struct{}, s.budget.Window(t)), make(chan struct{}, stream.MaxEvidenceRequests)
	var err error
	o.process, err = s.k.Host.Open(host.Options{
		Channel: Channel(t), Name: Name(t), Machine: s.k.Play(s.protocol(t)), Upper: o,
		Again: s.k.Again || s.k.Rejoin,
		Class: link.Bulk,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name(t), err)
	}
	s.table[t] = o
	return o, nil
}

// Reopen opens all streams there may be at a node that has lived before, so that it takes
// part again as soon as it can, and not only when it is asked for something: until then it
// counts as faulty.
func (s *Service) Reopen() {
	if !s.k.Again && !s.k.Rejoin {
		return
	}
	for t := range s.budget.Streams() {
		if t.Algorithm == stream.SM && !s.k.Signs {
			continue
		}
		if _, err := s.open(t); err != nil {
			s.k.Log.Warn("a stream of agreements cannot be opened", "stream", Name(t), "why", err)
		}
	}
}

// protocol is the protocol of a stream.
func (s *Service) protocol(t stream.Key) parley.Protocol {
	return stream.New(stream.Config{
		Key: t, N: len(s.k.Members), Window: s.budget.Window(t), Name: s.k.Name, DiskIntact: s.k.Intact,
	}, schedule(s.k.Round))
}

// schedule is the schedule of agreements in streams, in which who has come back may begin a slot two messages after the
// first: a round has room for three messages and five times the slack.
func schedule(round time.Duration) lockstep.Schedule {
	return lockstep.Schedule{
		Delta: parley.Tick(round), Slack: parley.Tick(round) * 7 / 50, Early: true, OnDemand: true,
	}
}

// RoundOf returns the shortest round in which an act may be so late.
func RoundOf(late time.Duration) time.Duration {
	when := schedule(100 * time.Millisecond)
	return time.Duration(float64(late) * float64(when.Delta) / float64(when.Slack))
}

// StreamStatus is one stream of agreements: those of one algorithm, m and source.
type StreamStatus struct {
	Algorithm string `json:"algorithm"`
	M         int    `json:"m"`
	Source    string `json:"source,omitempty"` // no name: all are
	kernel.SlotStatus
}

// Status returns the status of all streams that are open, given how often each machine has abstained.
func (s *Service) Status(abstained map[string]uint64) []StreamStatus {
	list := []StreamStatus{}
	for _, o := range s.all() {
		one := StreamStatus{Algorithm: o.t.Algorithm.String(), M: o.t.M}
		if !o.t.All() {
			one.Source = s.k.Name(o.t.Source)
		}
		if slots := kernel.Slots(o.process, abstained[Name(o.t)]); slots != nil {
			one.SlotStatus = *slots
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b StreamStatus) int {
		return cmp.Or(cmp.Compare(a.Algorithm, b.Algorithm), cmp.Compare(a.M, b.M), cmp.Compare(a.Source, b.Source))
	})
	return list
}

// all are the streams that are open.
func (s *Service) all() []*streamHandle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.table))
}

// Busy tells whether somebody waits for an answer.
func (s *Service) Busy() bool {
	return slices.ContainsFunc(s.all(), func(o *streamHandle) bool { return len(o.room) > 0 })
}
