// Package expel makes all correct processes expel a process when administrators have asked enough processes to do
// so.
//
// Problem: an administrator asks processes, one by one, to expel another process. All correct processes must then
// accept nothing more from the expelled process, and that process must learn that it is expelled. Up to m processes
// lie. A liar may vote for an expulsion that no administrator has requested.
//
// Model: asynchronous messages. Up to m processes are Byzantine, that is, they may do anything. Messages are oral
// (unsigned). Links lose no messages, and tell the receiver which process sent a message.
//
// When an administrator asks a process, this process sends its vote to all others. When m+1 processes have voted to
// expel a process, each process expels it: it accepts nothing more from the expelled process. A process considers
// itself expelled when m+1 processes report that they have expelled it.
//
// Why it works: among m+1 processes, at least one is correct. So liars alone cannot expel a process, or make it
// believe that it is expelled. If m+1 correct processes are asked, each correct process counts m+1 votes.
//
// Some services, such as agreed views, keep their promises only while no process lies. So they may exclude a process
// sooner. A process is expelled from these services ([Views]) after one vote, and from all services ([All]) after m+1
// votes.
//
// An expulsion applies to one incarnation: after a restart the process is another incarnation, which is not expelled.
// The host reports to which incarnation a link leads, because a liar could claim any incarnation. When a link comes
// up, a process sends again all messages that it could not send while the link was down. When a view excludes a
// process, the indication does not name an incarnation, and may come late. So an exclusion by a view expels a process
// only together with a vote, which names the incarnation.
//
// Votes of an expelled process do not count. A request that a process received before it crashed may have no effect.
//
// Source: the votes follow an idea of the lecture (docs/explanation/sources.md): m+1 equal reports mask m faults. The
// protocol was designed for Parley.
package expel

import "parley"

// The messages.
const (
	// Vote asks to expel Origin. Value: its incarnation, as in Told.
	Vote parley.Kind = 1 + iota
	// Told informs its receiver that the sender has expelled it. Value: the receiver's incarnation; 0 if the
	// host does not report to which incarnations links lead. Seq: 1 if the receiver is expelled from All.
	Told
)

// The requests in addition to Propose come from the host.
const (
	// Linked reports a new link to Origin. Value: its incarnation.
	Linked parley.Kind = parley.Local + 0x20 + iota
	// Excluded reports that an agreed view has excluded Origin on request. It names no incarnation.
	Excluded
)

// The indications. Seq: Views or All.
const (
	// Shut reports that this process has expelled Origin. Value: its incarnation.
	Shut parley.Kind = parley.Indication + 0x20 + iota
	// Opened reports that Origin is now another incarnation, and that its messages are accepted again.
	Opened
	// Expelled reports that the others have expelled this process.
	Expelled
)

// The services from which a process is expelled.
const (
	Views uint64 = 1 + iota // services that tolerate no liars
	All                     // all services, including those that tolerate liars
)

type process struct {
	parley.Base
	m     int
	self  parley.ID
	life  uint64 // its own incarnation
	knows bool   // the host reports which incarnations links lead to
	peers []peer

	told, toldAll parley.Set // the processes that say that this one is shut out, and those that say from All
	expelled      uint64     // what this process is shut out from; 0: nothing
}

// peer is what a process knows about another one.
type peer struct {
	life     uint64     // its incarnation
	shut     uint64     // what it is shut out from; 0: nothing
	votes    parley.Set // the processes that ask for its expulsion
	mine     bool       // this process asks for it
	excluded bool       // a view has excluded it, or an earlier incarnation
}

// Start: a new incarnation does not know what an earlier one was asked.
func (p *process) Start(s *parley.Step) { p.life = s.Life }

// Request: Propose, with the number of a process from 1 in Body, asks this process to expel that one.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	switch m.Kind {
	case Linked:
		p.linked(s, m.Origin, m.Value)
	case Excluded:
		p.peers[m.Origin].excluded = true
		p.weigh(s, m.Origin)
	case parley.Propose:
		if id, ok := p.named(m.Body); !ok {
			s.Refuse(p.self, "not a process to expel")
		} else if id != parley.All {
			p.ask(s, id)
		}
	}
}

// Receive handles a vote, or a message that says that this process is shut out.
func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch m.Kind {
	case Vote:
		switch id := m.Origin; {
		case int(id) >= s.N || id == from || id == p.self:
			s.Refuse(from, "vote on nobody else")
		case p.peers[from].shut != 0:
			s.Refuse(from, "vote of one that is shut out")
		case m.Value < p.peers[id].life: // it has restarted since
			s.Refuse(from, "vote on an earlier incarnation")
		default:
			p.vote(s, from, id)
		}
	case Told:
		if m.Value != p.life && (m.Value != 0 || p.knows) {
			s.Refuse(from, "word to an earlier incarnation")
			return
		}
		if p.told.Add(from); m.Seq == 1 {
			p.toldAll.Add(from)
		}
		p.count(s)
	default:
		s.Refuse(from, "not a word on who is expelled")
	}
}

// ask asks all to shut a process out.
func (p *process) ask(s *parley.Step, id parley.ID) {
	p.peers[id].mine = true
	p.vote(s, p.self, id)
	for to := range parley.ID(s.N) {
		if to != p.self && to != id {
			s.Send(to, parley.Msg{Kind: Vote, Origin: id, Value: p.peers[id].life})
		}
	}
}

// vote counts a vote to expel a process.
func (p *process) vote(s *parley.Step, from, id parley.ID) {
	p.peers[id].votes.Add(from)
	p.weigh(s, id)
}

// weigh shuts a process out if there is reason to. With m+1 votes, one is of a correct process. An exclusion by a
// view needs a vote, if the host reports incarnations: without one, an earlier incarnation was meant.
func (p *process) weigh(s *parley.Step, id parley.ID) {
	switch q := &p.peers[id]; {
	case q.votes.Len() > p.m:
		p.shut(s, id, All)
	case q.excluded && (q.votes.Len() > 0 || !p.knows):
		p.shut(s, id, Views)
	}
}

// shut accepts nothing more from a process, and informs it.
func (p *process) shut(s *parley.Step, id parley.ID, what uint64) {
	if id == p.self {
		return
	}
	if q := &p.peers[id]; what > q.shut {
		q.shut = what
		s.Indicate(parley.Msg{Kind: Shut, Origin: id, Value: q.life, Seq: what})
	}
	p.tell(s, id)
}

func (p *process) tell(s *parley.Step, id parley.ID) {
	m := parley.Msg{Kind: Told, Value: p.peers[id].life}
	if p.peers[id].shut == All {
		m.Seq = 1
	}
	s.Send(id, m)
}

// count marks this process as shut out when m+1 others say so.
func (p *process) count(s *parley.Step) {
	from := uint64(0)
	switch {
	case p.toldAll.Len() > p.m:
		from = All
	case p.told.Len() > p.m:
		from = Views
	}
	if from > p.expelled {
		p.expelled = from
		s.Indicate(parley.Msg{Kind: Expelled, Seq: from})
	}
}

// linked handles a new link to an incarnation of another process: it sends again what that may have missed.
func (p *process) linked(s *parley.Step, id parley.ID, life uint64) {
	p.knows = true
	if q := &p.peers[id]; life != q.life {
		if q.shut != 0 {
			s.Indicate(parley.Msg{Kind: Opened, Origin: id, Value: life})
		}
		*q = peer{life: life}
	} else if q.shut != 0 {
		p.tell(s, id)
	}
	for i := range p.peers {
		if q := &p.peers[i]; q.mine && parley.ID(i) != id {
			s.Send(id, parley.Msg{Kind: Vote, Origin: parley.ID(i), Value: q.life})
		}
	}
}

// State visits every variable. Nothing is durable: an expulsion applies to one incarnation.
func (p *process) State(v *parley.Vars) {
	parley.Num(v, "life", &p.life)
	v.Bool("knows", &p.knows)
	parley.PerProcess(v, "peers", p.peers, func(_ parley.ID, q *peer) {
		parley.Num(v, "life", &q.life)
		parley.Num(v, "shut", &q.shut)
		v.Set("votes", &q.votes)
		v.Bool("mine", &q.mine)
		v.Bool("excluded", &q.excluded)
	})
	v.Set("reported", &p.told)
	v.Set("reported by all", &p.toldAll)
	parley.Num(v, "expelled", &p.expelled)
}
