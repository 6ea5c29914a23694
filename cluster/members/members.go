// Package members knows which members are in the views of a node's machines, and which of them are expelled.
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

// Service is what a node knows of members.
type Service struct {
	k      *kernel.Kernel
	out    func(all bool) // ends what this node is expelled from: all, or what knows of crashes alone
	votes  *host.Process
	closed []peerFilter // by node

	mu    sync.Mutex
	moved chan struct{}    // closed when a view changes
	views map[string]*view // by machine
}

// peerFilter says what is not taken of a node, and counts it.
type peerFilter struct {
	what    atomic.Uint64 // expel.Views or expel.All; 0: all is taken
	dropped atomic.Uint64
}

// view is what this node knows of the views of one machine.
type view struct {
	process   *host.Process // when it has been opened
	suspects  bool          // that machine, who crashes: it is told of links that break
	in        bool
	number    uint64
	members   parley.Set
	suspected parley.Set
}

// Open opens the machine that votes on who is expelled, before links can come up. out is called, not within a step,
// when this node is.
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

// Refuses tells whether a frame of a node is not taken. liars tells that it is of what is to hold in spite of them.
func (s *Service) Refuses(from parley.ID, liars bool) bool {
	c := &s.closed[from]
	what := c.what.Load()
	if what == 0 || what == expel.Views && liars {
		return false
	}
	c.dropped.Add(1)
	return true
}

// Expelled returns what is not taken of a node, expel.Views or expel.All or 0, and of how many frames that was so.
func (s *Service) Expelled(id parley.ID) (from, dropped uint64) {
	return s.closed[id].what.Load(), s.closed[id].dropped.Load()
}

// Shut has this node take nothing of another one: expel.Views or expel.All; 0: all is taken.
func (s *Service) Shut(id parley.ID, from uint64) { s.closed[id].what.Store(from) }

// Deliver takes nothing: the machine delivers nothing.
func (s *Service) Deliver(parley.ID, parley.Path, parley.Msg) {}

// Indicate takes who is shut out.
func (s *Service) Indicate(_ parley.Path, m parley.Msg) {
	switch m.Kind {
	case expel.Shut:
		s.Shut(m.Origin, m.Seq)
		s.k.Log.Warn("a member is expelled", "member", s.k.Name(m.Origin), "life", m.Value, "liars", m.Seq == expel.All)
	case expel.Opened:
		s.Shut(m.Origin, 0)
	case expel.Expelled:
		s.k.Shut(m.Seq)
		s.k.Work.Go(s.end)
	}
}

// end ends what this node is expelled from by now: a second expulsion may have come since the one that called it.
func (s *Service) end() {
	if s.k.State() == kernel.Left {
		return
	}
	all := s.k.ShutFrom() == expel.All
	s.k.Became(kernel.Expelled)
	s.k.Log.Error("the others have expelled this node: it may come back when it is started again", "liars", all)
	s.out(all)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.views {
		v.in = false
	}
	s.move()
}

// move wakes those who wait for a view. The lock is held.
func (s *Service) move() {
	close(s.moved)
	s.moved = make(chan struct{})
}

// watched is what stands above a machine with views.
type watched struct {
	host.UpperLayer
	s *Service
	v *view
}

// Watch opens a machine with views, with this service above it, beneath what stands above it already.
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

// Indicate takes what the machine says of views, before what is above it hears of it.
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

// Linked tells the machine of votes the life of a node to which there is a link now.
func (s *Service) Linked(id parley.ID, life uint64) {
	s.votes.Tell(parley.Msg{Kind: expel.Linked, Origin: id, Value: life})
}

// Tell tells the machines that suspect members what has become of a link.
func (s *Service) Tell(m parley.Msg) {
	for _, p := range s.processes(func(v *view) bool { return v.suspects }) {
		p.Tell(m) // one that has stopped suspects nobody
	}
}

// processes are the machines that are open, of some of the views.
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

// Status is the last view of a machine; none if it has none.
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

// until waits for something to become true of the views, and returns those of which it is not when the context or
// the node ends, and why that is.
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

// ask asks something of machines with views.
func (s *Service) ask(m parley.Msg, which func(v *view) bool) error {
	request := func(p *host.Process) error { return p.Request(m) }
	return errors.Join(lists.Of(s.processes(which), request)...)
}

// Leave leaves all views in order. It fails if this node is still a member somewhere when the context ends, or if
// others leave at the same time, and too few stay.
func (s *Service) Leave(ctx context.Context) error {
	err := s.ask(parley.Msg{Kind: group.Leave}, func(v *view) bool { return v.in })
	majority := len(s.k.Members)/2 + 1 // that others who leave may leave behind: this one then ends as a member
	still, why := s.until(ctx, func(v *view) bool { return !v.in || v.members.Len() == majority && majority > 1 })
	if still != nil {
		return errors.Join(err, fmt.Errorf("cluster: still a member of %v: %w", still, why))
	}
	return errors.Join(err, s.MayLeave())
}

// MayLeave tells whether a majority of all nodes stays in each view without this one.
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

// Expel votes to expel a member, and returns when it is out of all views in which this node is.
func (s *Service) Expel(ctx context.Context, id parley.ID) error {
	s.k.Log.Info("a member is to be expelled", "member", s.k.Name(id))
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
