package host

import (
	"sync"

	"parley"
)

// inbox keeps what comes for a machine whose steps may take long (Options.Long), so that neither
// the goroutine that reads a connection nor the one that commits waits for a step of it. While
// there is something, one goroutine of the process works it off, in the order in which it came.
type inbox struct {
	mu      sync.Mutex
	room    sync.Cond // there is some again
	letters []letter
	spare   []letter
	bytes   int
	upto    uint64 // what is durable by now, if the machine has not been told
	works   bool   // the goroutine is there
}

// letter is a message that waits.
type letter struct {
	parley.Env
	msg   parley.Msg
	asked bool // it was told to the machine from above, and no node sent it
}

// letterCost is what a letter takes beside its bytes.
const letterCost = 80

// mostSpare is how many letters there is room for that is kept while none is there.
const mostSpare = 4096

// inboxLimit is how many bytes wait for a machine, beyond which whoever brings more waits itself.
const inboxLimit = 16 << 20

// Tell is [Process.Request] for who has no use of an error and must not wait for a long step, as who reads a
// connection: the machine is told in the order in which messages and this come.
func (p *Process) Tell(m parley.Msg) {
	if p.o.Long {
		p.post(letter{msg: m, asked: true})
	} else {
		_ = p.Request(m)
	}
}

// post puts a message there. It waits if there is no room.
func (p *Process) post(l letter) {
	in := &p.in
	in.mu.Lock()
	defer in.mu.Unlock()
	for in.bytes > inboxLimit {
		in.room.Wait()
	}
	in.letters = append(in.letters, l)
	in.bytes += letterCost + len(l.msg.Body)
	p.call()
}

// settled leaves word that the disk has come so far.
func (p *Process) settled(upto uint64) {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	p.in.upto = upto
	p.call()
}

// call begins the goroutine, if there is none. The lock of the inbox is held.
func (p *Process) call() {
	if !p.in.works {
		p.in.works = true
		go p.work()
	}
}

// work is that goroutine.
func (p *Process) work() {
	for {
		letters, upto := p.in.take()
		if len(letters) == 0 && upto == 0 {
			return
		}
		if upto > 0 {
			p.release(upto)
		}
		for i := range letters {
			if l := &letters[i]; l.asked {
				_ = p.Request(l.msg)
			} else {
				p.receive(l.Env, l.msg)
			}
			p.in.done(&letters[i])
		}
		p.h.Flush()
	}
}

// take returns what there is. If that is nothing the goroutine ends.
func (in *inbox) take() (letters []letter, upto uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	letters, upto = in.letters, in.upto
	in.letters, in.spare, in.upto = in.spare[:0], letters, 0
	if cap(letters) > mostSpare {
		in.spare = nil
	}
	in.works = len(letters) > 0 || upto > 0
	return letters, upto
}

// done makes room.
func (in *inbox) done(l *letter) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.bytes -= letterCost + len(l.msg.Body)
	*l = letter{}
	in.room.Broadcast()
}
