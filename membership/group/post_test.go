package group_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/broadcast/timestamp"
	"parley/membership/group"
)

// post is a group with the timestamp layer whose messages a test delivers by hand.
type post struct {
	parley.Host
	t     *testing.T
	p     parley.Protocol
	procs []parley.Machine
	links [][][]letter // from, to: the oldest first
	logs  [][]parley.Record
	state [][]byte   // by process: what replaced its records
	lives []uint64   // by process: its number of restarts
	said  [][]string // by process: its indications and deliveries
	now   parley.Tick
}

type letter struct {
	epoch uint32
	path  parley.Path
	msg   parley.Msg
}

func newPost(t *testing.T, c group.Config) *post {
	return newPostOf(t, c, timestamp.New(timestamp.Config{Config: c}))
}

func newPostOf(t *testing.T, c group.Config, protocol parley.Protocol) *post {
	p := &post{t: t, p: protocol, now: 1}
	p.links, p.logs, p.said = make([][][]letter, c.N), make([][]parley.Record, c.N), make([][]string, c.N)
	p.state, p.lives = make([][]byte, c.N), make([]uint64, c.N)
	for id := range parley.ID(c.N) {
		p.links[id] = make([][]letter, c.N)
		p.procs = append(p.procs, p.p.New(id))
		p.do(id, func(m parley.Machine, s *parley.Step) { m.Start(s) })
	}
	p.said = make([][]string, c.N)
	return p
}

func (p *post) Refused(at, _ parley.ID, why string) { p.say(at, "refused: "+why) }

func (p *post) say(at parley.ID, what string) { p.said[at] = append(p.said[at], what) }

// heard returns, and clears, the indications and deliveries of a process.
func (p *post) heard(at parley.ID) string {
	out := strings.Join(p.said[at], "; ")
	p.said[at] = nil
	return out
}

func (p *post) do(at parley.ID, clause func(m parley.Machine, s *parley.Step)) {
	p.step(at, &parley.Step{}, clause)
}

func (p *post) step(at parley.ID, s *parley.Step, clause func(m parley.Machine, s *parley.Step)) {
	s.Self, s.N, s.Now, s.Host = at, p.p.N, p.now, p
	clause(p.procs[at], s)
	compact := false
	for _, e := range s.Effects {
		switch e.Op {
		case parley.OpSend:
			p.links[at][e.To] = append(p.links[at][e.To], letter{e.Epoch, e.Path, e.Msg})
		case parley.OpDeliver:
			p.say(at, fmt.Sprintf("%d:%s", e.Msg.Seq, e.Msg.Body))
		case parley.OpAppend:
			p.logs[at] = append(p.logs[at], parley.Record{Path: e.Path, Body: e.Msg.Body})
		case parley.OpCompact:
			compact = true
		case parley.OpIndicate:
			p.say(at, p.indication(e.Msg))
		}
	}
	delivers := func(e parley.Effect) bool { return e.Op == parley.OpDeliver }
	if compact && slices.ContainsFunc(s.Effects, delivers) {
		p.t.Errorf("process %d delivers in a step in which its state replaces its log", at)
	}
	if compact {
		p.logs[at], p.state[at] = nil, parley.SaveDurable(p.procs[at], p.now, nil)
	}
}

func (p *post) indication(m parley.Msg) string {
	switch m.Kind {
	case parley.View:
		members, _, err := parley.ReadSet(m.Body, p.p.N)
		if err != nil {
			p.t.Fatal(err)
		}
		return fmt.Sprintf("view %d %v", m.Seq, slices.Collect(members.All()))
	case group.Excluded:
		return fmt.Sprintf("out %d", m.Value)
	case group.ReplayStarted:
		return fmt.Sprintf("resumed %d", m.Seq)
	case group.SnapshotInstalled:
		return fmt.Sprintf("restored %d %s", m.Seq, m.Body)
	case group.SnapshotWanted:
		return fmt.Sprintf("wanted %d for %d", m.Seq, m.Origin)
	case group.Expelled:
		return fmt.Sprintf("excludes %d", m.Origin)
	case parley.Suspect:
		return fmt.Sprintf("suspects %d", m.Origin)
	}
	return "?"
}

func (p *post) cast(at parley.ID, text string) {
	p.do(at, func(m parley.Machine, s *parley.Step) { m.Request(s, problem.Request([]byte(text))) })
}

func (p *post) ask(at parley.ID, q parley.Msg) {
	p.do(at, func(m parley.Machine, s *parley.Step) { m.Request(s, q) })
}

func (p *post) suspect(at, of parley.ID) {
	p.do(at, func(m parley.Machine, s *parley.Step) {
		m.Receive(s, at, parley.Msg{Kind: parley.Suspect, Origin: of})
	})
}

// suspected makes processes suspect another one.
func (p *post) suspected(of parley.ID, at ...parley.ID) {
	for _, id := range at {
		p.suspect(id, of)
	}
}

// changes makes a member above the lowest rank ask for another view, and lets all messages between some
// arrive.
func (p *post) changes(at parley.ID, who ...parley.ID) {
	p.period(500, at)
	p.period(7500, at)
	p.settle(who...)
}

// deliver makes a process broadcast, and lets all messages between some processes arrive.
func (p *post) deliver(at parley.ID, text string, who ...parley.ID) {
	p.cast(at, text)
	p.settle(who...)
}

// period lets time pass, and the given processes do their periodic work.
func (p *post) period(after parley.Tick, who ...parley.ID) {
	p.now += after
	for _, at := range who {
		p.do(at, func(m parley.Machine, s *parley.Step) { m.Timeout(s, 1) })
	}
}

// put lets a message arrive that was perhaps never sent.
func (p *post) put(from, to parley.ID, l letter) {
	p.step(to, &parley.Step{Epoch: l.epoch, Path: l.path}, func(m parley.Machine, s *parley.Step) {
		m.Receive(s, from, l.msg)
	})
}

// arrive lets the next n messages of a link arrive.
func (p *post) arrive(from, to parley.ID, n int) {
	p.t.Helper()
	for range n {
		if len(p.links[from][to]) == 0 {
			p.t.Fatalf("nothing is on its way from %d to %d", from, to)
		}
		l := p.links[from][to][0]
		p.links[from][to] = p.links[from][to][1:]
		p.put(from, to, l)
	}
}

// settle delivers messages between the given processes until none is in transit.
func (p *post) settle(who ...parley.ID) {
	for again := true; again; {
		again = false
		for _, from := range who {
			for _, to := range who {
				for len(p.links[from][to]) > 0 {
					again = true
					p.arrive(from, to, 1)
				}
			}
		}
	}
}

// lose drops all messages in transit from one process to another, and returns them.
func (p *post) lose(from, to parley.ID) []letter {
	l := p.links[from][to]
	p.links[from][to] = nil
	return l
}

// loseAll drops all messages in transit from a process.
func (p *post) loseAll(from parley.ID) {
	for to := range p.procs {
		p.lose(from, parley.ID(to))
	}
}

// down drops all messages in transit to and from a process that has crashed.
func (p *post) down(id parley.ID) {
	p.loseAll(id)
	for other := range p.procs {
		p.lose(parley.ID(other), id)
	}
}

// restart restarts a process with its log.
func (p *post) restart(at parley.ID) {
	p.procs[at] = p.p.New(at)
	if state := p.state[at]; len(state) > 0 && !parley.LoadDurable(p.procs[at], p.now, state) {
		p.t.Fatalf("process %d does not load its durable state", at)
	}
	p.lives[at]++
	p.step(at, &parley.Step{Restart: true, Log: p.logs[at], Life: p.lives[at]}, func(m parley.Machine, s *parley.Step) { m.Start(s) })
}

// kinds returns the kinds of the group's own messages on a link, except for heartbeats.
func (p *post) kinds(from, to parley.ID) (out []parley.Kind) {
	for _, l := range p.links[from][to] {
		if l.path == 0 && l.msg.Kind != group.Beat {
			out = append(out, l.msg.Kind)
		}
	}
	return out
}

// expect checks the indications and deliveries of a process since the last check.
func (p *post) expect(at parley.ID, want string) {
	p.t.Helper()
	if got := p.heard(at); got != want {
		p.t.Errorf("process %d says %q, expected %q", at, got, want)
	}
}

// expectOf checks that some processes have the same indications and deliveries.
func (p *post) expectOf(want string, who ...parley.ID) {
	p.t.Helper()
	for _, id := range who {
		p.expect(id, want)
	}
}

// sent checks the group's own messages in transit on a link, except for heartbeats.
func (p *post) sent(from, to parley.ID, want ...parley.Kind) {
	p.t.Helper()
	if got := p.kinds(from, to); !slices.Equal(got, want) {
		p.t.Errorf("process %d sends %d %v, expected %v", from, to, got, want)
	}
}
