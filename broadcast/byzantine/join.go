package byzantine

import (
	"bytes"
	"encoding/binary"

	"parley"
)

// rest is for how many times the longest time of a slot nobody wishes for a process that
// was let in: one that asks without end does not end eras without end.
const rest = 10

// slower is how often the time until a process that is out asks again is doubled.
const slower = 3

// joining is what a process knows of who is out: of others, and of itself.
type joining struct {
	ready []uint64   // by process: the last era that it is ready for
	outs  parley.Set // others who have said that they are out, in this era
	early []early    // by process: the first frame of an era that begins anew

	asks     []ask      // by process: what it asked for last
	wishes   bool       // one of these may have to be wished for
	granting bool       // the timer is set to wish for who may be wished for only then
	votes    [][]uint64 // by process: the life that each process wished for, in this era
	let      []uint64   // by process: the life that it joined this era in
	begun    []byte     // what was delivered before this era, for those it ended for
	from     uint64     // the mark of that

	out     bool     // this process delivers nothing
	tries   int      // how often it has asked in vain
	woken   int      // and since it gave up, because others asked
	hurried bool     // the timer is set to ask at once
	asked   bool     // it has asked to join, or takes part in an era that begins anew
	era     uint64   // in its place of this one
	life    uint64   // the number of its request
	states  [][]byte // by process: what was delivered before the next era
}

// ask is one process's request to join.
type ask struct {
	era, life uint64      // 0: none
	wished    uint64      // the life that this process has wished for, in this era
	times     int         // how often it has asked in this era, or 2
	was       bool        // it was let in before
	at        parley.Tick // then
}

func newJoining(n int) joining {
	return joining{
		ready: make([]uint64, n), asks: make([]ask, n), votes: make([][]uint64, n), let: make([]uint64, n),
		states: make([][]byte, n), early: make([]early, n),
	}
}

// A process that is in.

// due tells whether there is anybody to wish for now, and sets the timer for those who must
// wait.
func (p *process) due(s *parley.Step) bool {
	p.wishes = false
	now, first := false, parley.Tick(-1)
	for i := range p.asks {
		a := &p.asks[i]
		if a.life == 0 || a.era != p.cur.number || a.wished == a.life {
			p.wishes = p.wishes || a.era > p.cur.number
			continue
		}
		p.wishes = true
		if left := p.left(s, a); left == 0 {
			now = true
		} else if first < 0 || left < first {
			first = left
		}
	}
	if first > 0 && !p.granting {
		p.granting = true
		s.SetTimer(grant, first)
	}
	return now
}

// left is how long one has to wait until it is wished for.
func (p *process) left(s *parley.Step, a *ask) parley.Tick {
	if !a.was {
		return 0
	}
	return max(0, a.at+rest*p.cur.line.Age()-s.Now)
}

// wish returns so many wishes as there are, and at most so many. Each is said once in an era.
func (p *process) wish(s *parley.Step, most int) (list []wish) {
	for i := range p.asks {
		a := &p.asks[i]
		if len(list) < most && a.life != 0 && a.era == p.cur.number && a.wished != a.life && p.left(s, a) == 0 {
			a.wished = a.life
			list = append(list, wish{parley.ID(i), a.life})
		}
	}
	return list
}

// vote counts a wish that was delivered: of one sender for one process, the last.
func (p *process) vote(sender parley.ID, w wish) {
	if int(w.whom) >= p.c.N {
		return
	}
	if len(p.votes[w.whom]) == 0 {
		p.votes[w.whom] = make([]uint64, p.c.N)
	}
	p.votes[w.whom][sender] = w.life
}

// elect tells whether m+1 processes wish for one, and notes for whom.
func (p *process) elect() (any bool) {
	let := make([]uint64, p.c.N)
	for i, lives := range p.votes {
		for _, life := range lives {
			same := 0
			for _, other := range lives {
				if life != 0 && other == life {
					same++
				}
			}
			if same > p.c.M {
				let[i], any = life, true
			}
		}
	}
	if any {
		p.let = let
	}
	return any
}

// end ends the era here. Own requests that were not delivered go into slots once more.
func (p *process) end(s *parley.Step) {
	if p.next == nil {
		p.next = p.newEra(successor(p.cur.number))
	}
	p.cur.line = nil
	p.enter()
	p.begun = encodeState(p.total, p.numbers)
	p.from = beginning(digest(p.begun))
	p.say(s, p.cur.number)
	for i, life := range p.let {
		if life != 0 {
			p.asks[i].was, p.asks[i].at = true, s.Now
			p.tell(s, parley.ID(i))
		}
	}
}

// enter goes on to the next era.
func (p *process) enter() {
	p.old, p.cur, p.next = p.cur, p.next, nil
	clear(p.votes)
	for i := range p.asks {
		p.asks[i].wished, p.asks[i].times = 0, 0
	}
	p.wishes, p.outs = true, parley.Set{}
	p.afresh()
	p.flight, p.under = nil, 0
	p.pace = newPace(parley.Tick(p.slot.Last+1)*In(p.cur.number, p.when).Delta, p.c.Batch)
}

// tell tells one that was let in what was delivered before.
func (p *process) tell(s *parley.Step, to parley.ID) {
	if to != p.self {
		s.Send(to, parley.Msg{Kind: State, Value: p.cur.number, Seq: p.let[to], Body: p.begun})
	}
}

// open returns the era that frames are of, if it goes on or is the next one.
func (p *process) open(s *parley.Step, number uint64) *era {
	switch {
	case number == p.cur.number:
		return p.cur
	case p.next != nil && number == p.next.number:
		return p.next
	case !p.out && number == successor(p.cur.number):
		p.next = p.newEra(number)
		p.begin(s) // for which others may have been ready before
		return p.next
	}
	return nil
}

// word is the Seq of a Ready.
func (p *process) word() uint64 {
	if p.out {
		return 1
	}
	return 0
}

// say says that this process is ready for an era, and takes part in one that begins anew.
func (p *process) say(s *parley.Step, number uint64) {
	p.ready[p.self] = number
	s.SendAll(parley.Msg{Kind: Ready, Value: number, Seq: p.word()})
	p.follow(s)
	p.begin(s)
}

// follow takes part in the era that this process is ready for if that begins anew, unless it
// began so long ago that others are in.
func (p *process) follow(s *parley.Step) {
	number := p.ready[p.self]
	known := !fresh(number) || number <= p.cur.number || p.next != nil && p.next.number == number
	if p.out && !known && !p.settled(number) {
		p.attend(s, number)
	}
}

// begin lets eras begin that 2m+1 processes are ready for. What m+1 others are ready for one
// correct process is; so this one is too, and if that is not what comes of its own era it is out.
func (p *process) begin(s *parley.Step) {
	known := p.known()
	if known > p.ready[p.self] {
		p.say(s, known)
		return
	}
	for _, e := range [...]*era{p.cur, p.next} {
		if e != nil && e.line.Paused() && p.enough(e.number) {
			p.release(s, e)
		}
	}
	if !p.out && known > p.cur.number && known != successor(p.cur.number) {
		p.cur.lost = true
	}
}

// release begins an era. One that begins anew has come to nothing if it takes longer than
// its first slot may.
func (p *process) release(s *parley.Step, e *era) {
	mark := s.Mark()
	e.line.Resume(s)
	if e == p.next && p.out && fresh(e.number) {
		e.line.OpenSlot(s, 1)
		s.SetTimer(seek, 2*e.line.Age())
	}
	e.tag(s, mark)
}

// known is the last era that m+1 others are ready for, of one branch: where that ends a correct
// process is ahead of others by more than one era, and a liar could name any between.
func (p *process) known() uint64 {
	known, any := uint64(0), false
	for _, number := range p.ready {
		count := 0
		for i, other := range p.ready {
			if parley.ID(i) != p.self && other >= number && other/branch == number/branch {
				count++
			}
		}
		if count > p.c.M {
			known, any = max(known, number), true
		}
	}
	if !any {
		return p.ready[p.self]
	}
	return known
}

// hear takes in what is in no era.
func (p *process) hear(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Value >= 1<<32-1 || p.c.Final || m.Kind == Ready && m.Seq > 1:
		s.Refuse(from, "malformed message")
	case m.Kind == Where:
		if p.ready[from] < m.Value || p.ready[from]/branch != m.Value/branch {
			p.ready[from] = m.Value // who came back has forgotten what it was ready for
		}
		p.away(s, from, m.Value)
		s.Send(from, parley.Msg{Kind: Ready, Value: p.ready[p.self], Seq: p.word()})
		p.begin(s)
	case m.Kind == Ready:
		before := p.known()
		p.ready[from] = max(p.ready[from], m.Value)
		if m.Seq == 1 {
			p.away(s, from, m.Value)
		} else {
			p.outs.Remove(from)
			p.asks[from].times = 0
		}
		if p.out && p.asked && before <= p.era && p.known() > p.era { // perhaps for another one
			p.hurry(s, p.next.line.Age())
		}
		p.begin(s)
	case m.Kind == State:
		p.restore(s, from, m)
	default:
		p.wished(s, from, m)
	}
}

// wished takes in a Join. Where m+1 others ask again there are too few to let them in.
func (p *process) wished(s *parley.Step, from parley.ID, m parley.Msg) {
	a := &p.asks[from]
	a.times = min(a.times+1, 2)
	switch vain := 0; {
	case p.out:
		if p.tries > p.c.Tries && p.woken < p.c.Tries {
			p.woken++
			p.hurry(s, p.when.Delta)
		}
	case m.Seq == 0 || m.Seq > 1<<63:
		s.Refuse(from, "malformed message")
	default:
		for i := range p.asks {
			if p.asks[i].times == 2 {
				vain++
			}
		}
		if vain > p.c.M {
			p.tries = max(p.tries, 1)
			p.cur.lost = true
		}
		switch {
		case successor(m.Value) == p.cur.number && p.let[from] == m.Seq:
			p.tell(s, from)
		case successor(m.Value) < p.cur.number:
			s.Refuse(from, "asks to join an era that is over")
		default:
			a.era, a.life, p.wishes = m.Value, m.Seq, true
		}
	}
}

// A process that is out.

// leave: this process delivers nothing more, and looks for the era that goes on. It goes
// on to send in the slots that it knows, which are complete the sooner.
func (p *process) leave(s *parley.Step) {
	p.out, p.asked, p.next = true, false, nil
	if p.c.Final {
		p.cur.line.Deactivate()
		return
	}
	if p.tries <= p.c.Tries {
		s.SendAll(parley.Msg{Kind: Where, Value: p.ready[p.self]})
		s.SetTimer(seek, p.when.Delta)
	}
	p.follow(s)
	p.begin(s)
}

// seek asks to join, once the others have said where they are, and again if that came to
// nothing; and if so many are out the order begins anew. One that is in says so once more, for
// what it said while it was out may come last.
func (p *process) seek(s *parley.Step) {
	if !p.out {
		s.SendAll(parley.Msg{Kind: Ready, Value: p.ready[p.self]})
		return
	}
	switch known := p.known(); {
	case p.tries > 0 && p.several() && anew(p.entered()) < 1<<32-1:
		p.reform(s)
	case !p.asked || p.next.bad() || known > p.era && (!fresh(p.next.number) || known != p.next.number) ||
		fresh(p.next.number) && (!p.next.line.Paused() || known < p.next.number || p.settled(known)):
		p.asked, p.era, p.ready[p.self] = true, known, known
		p.next = p.newEra(successor(known))
		clear(p.states)
		p.life = max(p.life+1, uint64(max(s.Now, 0)))
		p.begin(s)
	}
	s.SendAll(parley.Msg{Kind: Where, Value: p.ready[p.self]})
	s.SendAll(parley.Msg{Kind: Join, Value: p.era, Seq: max(p.life, 1)})
	if p.tries++; p.tries <= p.c.Tries {
		s.SetTimer(seek, 3*p.next.line.Age()<<min(p.tries-1, slower))
	}
}

// restore: what m+1 processes say of the beginning of an era, to this request, one correct
// process says. Since that was made when this process took in what comes of the era, the
// era began later, and it has missed nothing of it.
func (p *process) restore(s *parley.Step, from parley.ID, m parley.Msg) {
	if !p.out || !p.asked || m.Value != p.next.number || fresh(m.Value) || m.Seq != p.life || p.states[from] != nil {
		s.Refuse(from, "state that is not asked for")
		return
	}
	p.states[from] = m.Body
	same := 0
	for _, other := range p.states {
		if other != nil && bytes.Equal(other, m.Body) {
			same++
		}
	}
	total, numbers, ok := decodeState(m.Body, p.c.N)
	if same <= p.c.M || !ok || p.next.bad() {
		return
	}
	p.renew(numbers[p.self])
	p.total, p.numbers = total, numbers
	p.join(s)
}

// join goes on in the next era.
func (p *process) join(s *parley.Step) {
	p.out = false
	clear(p.let)
	p.enter()
	p.old, p.from = nil, beginning(digest(encodeState(p.total, p.numbers)))
	s.Indicate(parley.Msg{Kind: Restored, Value: p.total, Seq: uint64(len(p.queue))})
	s.SetTimer(seek, p.cur.line.Age())
	p.say(s, p.cur.number)
}

// encodeState writes how many requests were delivered, and of each sender the number of the
// last one.
func encodeState(total uint64, numbers []uint64) []byte {
	b := binary.AppendUvarint(nil, total)
	for _, number := range numbers {
		b = binary.AppendUvarint(b, number)
	}
	return b
}

func decodeState(b []byte, n int) (total uint64, numbers []uint64, ok bool) {
	r := parley.Reader{Rest: b}
	total, numbers = r.Number(1<<62), make([]uint64, n)
	for i := range numbers {
		numbers[i] = r.Number(1 << 63)
	}
	return total, numbers, r.Done()
}

func (j *joining) State(v *parley.Vars) {
	number := func(name string) func(parley.ID, *uint64) {
		return func(_ parley.ID, x *uint64) { parley.Num(v, name, x) }
	}
	parley.PerProcess(v, "ready", j.ready, number("era"))
	v.Set("others out", &j.outs)
	parley.PerProcess(v, "early", j.early, func(_ parley.ID, f *early) {
		parley.Num(v, "era", &f.number)
		v.Bytes("frame", &f.body)
	})
	parley.PerProcess(v, "asks", j.asks, func(_ parley.ID, a *ask) {
		parley.Num(v, "times", &a.times)
		parley.Num(v, "era", &a.era)
		parley.Num(v, "life", &a.life)
		parley.Num(v, "wished", &a.wished)
		v.Bool("was let in", &a.was)
		if a.was {
			v.Time("at", &a.at)
		}
	})
	v.Bool("wishes", &j.wishes)
	v.Bool("granting", &j.granting)
	parley.PerProcess(v, "votes", j.votes, func(_ parley.ID, lives *[]uint64) {
		parley.Slice(v, "lives", lives, func(_ int, x *uint64) { parley.Num(v, "life", x) })
	})
	parley.PerProcess(v, "let in", j.let, number("life"))
	v.Bytes("begun", &j.begun)
	parley.Num(v, "from", &j.from)
	v.Bool("out", &j.out)
	parley.Num(v, "tries", &j.tries)
	parley.Num(v, "woken", &j.woken)
	v.Bool("hurried", &j.hurried)
	v.Bool("asked", &j.asked)
	parley.Num(v, "asked for", &j.era)
	parley.Num(v, "life", &j.life)
	parley.PerProcess(v, "states", j.states, func(_ parley.ID, b *[]byte) { v.Bytes("state", b) })
}
