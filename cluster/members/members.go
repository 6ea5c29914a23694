// Package members tracks which nodes take part in a cluster: the views (current members) of a node's machines, and
// the members that were expelled.
package members

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"parley"
	"parley/cluster/host"
	"parley/cluster/kernel"
	"parley/cluster/link"
	"parley/internal/lists"
	"parley/membership/expel"
	"parley/membership/group"
)

// Service tracks the members of a node's cluster.
type Service struct {
	k      *kernel.Kernel
	out    func(all bool) // ends what this node is expelled from: everything, or services that tolerate only crashes
	votes  *host.Process
	closed []peerFilter // by node

	mu    sync.Mutex
	moved chan struct{}    // closed when a view changes
	views map[string]*view // by machine
}

// peerFilter says which frames of a node are dropped, and counts them.
type peerFilter struct {
	what    atomic.Uint64 // expel.Views or expel.All; 0: none are dropped
	dropped atomic.Uint64
}

// view is what this node knows of the views of one machine.
type view struct {
	process   *host.Process // nil until it is opened
	suspects  bool          // the machine suspects members, and is notified of broken links
	in        bool
	number    uint64
	members   parley.Set
	suspected parley.Set
}

// Open opens the machine that votes on expulsions, before links can come up. The function out is called when this
// node is expelled, but not within a step.
func Open(k *kernel.Kernel, out func(all bool)) (s *Service, err error) {
	s = &Service{
		k: k, out: out, closed: make([]peerFilter, len(k.Members)),
		moved: make(chan struct{}), views: make(map[string]*view),
	}
	p := expel.New(expel.Config{N: len(k.Members), M: k.M})
	s.votes, err = k.Host.Open(host.Options{
		Channel: kernel.AdminChannel, Name: p.Name, Machine: p.New(k.Self), Upper: s, Class: link.Urgent,
	})
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return s, nil
}

// Refuses reports whether this node drops a frame of another node. The argument liars says that the frame is for a
// service that tolerates Byzantine faults.
func (s *Service) Refuses(from parley.ID, liars bool) bool {
	c := &s.closed[from]
	what := c.what.Load()
	if what == 0 || what == expel.Views && liars {
		return false
	}
	c.dropped.Add(1)
	return true
}

// Expelled returns from what a node is expelled (expel.Views, expel.All, or 0), and how many of its frames were
// dropped.
func (s *Service) Expelled(id parley.ID) (from, dropped uint64) {
	return s.closed[id].what.Load(), s.closed[id].dropped.Load()
}

// Shut makes this node drop frames of another node: expel.Views or expel.All; 0: none.
func (s *Service) Shut(id parley.ID, from uint64) { s.closed[id].what.Store(from) }

// Deliver does nothing, because the machine delivers nothing.
func (s *Service) Deliver(parley.ID, parley.Path, parley.Msg) {}

// Indicate handles expulsions.
func (s *Service) Indicate(_ parley.Path, m parley.Msg) {
	switch m.Kind {
	case expel.Shut:
		s.Shut(m.Origin, m.Seq)
		s.k.Log.Warn("member is expelled", "member", s.k.Name(m.Origin), "incarnation", m.Value,
			"byzantine", m.Seq == expel.All)
	case expel.Opened:
		s.Shut(m.Origin, 0)
	case expel.Expelled:
		s.k.Shut(m.Seq)
		s.k.Work.Go(s.end)
	}
}

// end ends what this node is now expelled from: a second expulsion may have come since the one that scheduled it.
func (s *Service) end() {
	if s.k.State() == kernel.Left {
		return
	}
	all := s.k.ShutFrom() == expel.All
	s.k.Became(kernel.Expelled)
	s.k.Log.Error("this node is expelled; start it again to let it rejoin", "byzantine", all)
	s.out(all)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.views {
		v.in = false
	}
	s.move()
}

// move wakes callers that wait for a view. The lock is held.
func (s *Service) move() {
	close(s.moved)
	s.moved = make(chan struct{})
}

// watched is the layer above a machine with views.
type watched struct {
	host.UpperLayer
	s *Service
	v *view
}

// Watch opens a machine with views, with this service between it and its upper layer.
func (s *Service) Watch(o host.Options, suspects bool) (*host.Process, error) {
	v := new(view)
	s.mu.Lock()
	s.views[o.Name] = v
	s.mu.Unlock()
	o.Upper = watched{o.Upper, s, v}
	p, err := s.k.Host.Open(o)
	if err == nil {
		s.mu.Lock()
		v.process, v.suspects = p, suspects
		s.mu.Unlock()
	}
	return p, err
}

// Indicate records views and suspicions before the upper layer handles them.
func (w watched) Indicate(path parley.Path, m parley.Msg) {
	s := w.s
	s.mu.Lock()
	switch m.Kind {
	case parley.View:
		members, _, err := parley.ReadSet(m.Body, len(s.k.Members))
		if err != nil {
			panic(err) // the machine of this node wrote it
		}
		w.v.number, w.v.members, w.v.suspected = m.Seq, members, parley.Set{}
		w.v.in = members.Has(s.k.Self)
		s.move()
	case group.Excluded:
		w.v.in = false
		s.move()
	case parley.Suspect:
		w.v.suspected.Add(m.Origin)
	}
	s.mu.Unlock()
	if m.Kind == group.Expelled {
		s.votes.Beside(parley.Msg{Kind: expel.Excluded, Origin: m.Origin})
	}
	w.UpperLayer.Indicate(path, m)
}

// Linked notifies the voting machine of the incarnation of a connected node.
func (s *Service) Linked(id parley.ID, life uint64) {
	s.votes.Tell(parley.Msg{Kind: expel.Linked, Origin: id, Value: life})
}

// Tell notifies the machines that suspect members of a change of a link.
func (s *Service) Tell(m parley.Msg) {
	for _, p := range s.processes(func(v *view) bool { return v.suspects }) {
		p.Tell(m) // a stopped machine suspects nobody
	}
}

// processes returns the open machines of the selected views.
func (s *Service) processes(which func(v *view) bool) (list []*host.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.views {
		if v.process != nil && which(v) {
			list = append(list, v.process)
		}
	}
	return list
}

// Status returns the last view of a machine; empty if it has none.
func (s *Service) Status(machine string) (status kernel.ViewStatus, members parley.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.views[machine]
	if v == nil {
		return status, members
	}
	status = kernel.ViewStatus{In: v.in, View: v.number, Members: s.k.Names(v.members)}
	if v.suspected != (parley.Set{}) {
		status.Suspected = s.k.Names(v.suspected)
	}
	return status, v.members
}

// until waits until f holds for all views. When ctx or the node ends first, it returns the machines for which f
// does not hold, and the reason.
func (s *Service) until(ctx context.Context, f func(v *view) bool) (missing []string, why error) {
	for {
		s.mu.Lock()
		missing = nil
		for name, v := range s.views {
			if !f(v) {
				missing = append(missing, name)
			}
		}
		moved := s.moved
		s.mu.Unlock()
		if len(missing) == 0 {
			return nil, nil
		}
		select {
		case <-moved:
			continue
		case <-ctx.Done():
			why = context.Cause(ctx)
		case <-s.k.Ended:
			why = s.k.Closed()
		}
		slices.Sort(missing)
		return missing, why
	}
}

// ask sends a request to the selected machines.
func (s *Service) ask(m parley.Msg, which func(v *view) bool) error {
	request := func(p *host.Process) error { return p.Request(m) }
	return errors.Join(lists.Of(s.processes(which), request)...)
}

// Leave leaves all views. It fails if this node is still a member when ctx ends, or if others leave at the same
// time and too few stay.
func (s *Service) Leave(ctx context.Context) error {
	err := s.ask(parley.Msg{Kind: group.Leave}, func(v *view) bool { return v.in })
	majority := len(s.k.Members)/2 + 1 // which other leaving nodes may reach first; this node then ends as a member
	still, why := s.until(ctx, func(v *view) bool { return !v.in || v.members.Len() == majority && majority > 1 })
	if still != nil {
		return errors.Join(err, fmt.Errorf("cluster: still a member of %v: %w", still, why))
	}
	return errors.Join(err, s.MayLeave())
}

// MayLeave returns an error unless a majority of all nodes stays in each view without this node.
func (s *Service) MayLeave() error {
	if s.k.Broken() != nil || s.k.State() == kernel.Left {
		return s.k.Closed()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := len(s.k.Members)
	for name, v := range s.views {
		if rest := v.members.Len() - 1; v.in && all > 1 && rest < all/2+1 {
			return fmt.Errorf("%w: %s has %d members, and %d of %d nodes must stay: stop this node instead",
				kernel.ErrRefused, name, rest+1, all/2+1, all)
		}
	}
	return nil
}

// Expel votes to expel a member. It returns when no view of this node contains the member.
func (s *Service) Expel(ctx context.Context, id parley.ID) error {
	s.k.Log.Info("expelling a member", "member", s.k.Name(id))
	if err := s.votes.Request(parley.Msg{Kind: parley.Propose, Body: fmt.Append(nil, id+1)}); err != nil {
		return err
	}
	with := func(v *view) bool { return v.in && v.members.Has(id) }
	if err := s.ask(parley.Msg{Kind: group.Exclude, Origin: id}, with); err != nil {
		return err
	}
	if still, why := s.until(ctx, func(v *view) bool { return !with(v) }); still != nil {
		return fmt.Errorf("cluster: %s is still a member of %v: %w", s.k.Name(id), still, why)
	}
	return nil
}
