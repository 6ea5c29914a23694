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
	work    func() // what it does
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

// post puts a message there. It waits if there is no room.
func (in *inbox) post(l letter) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for in.bytes > inboxLimit {
		in.room.Wait()
	}
	in.letters = append(in.letters, l)
	in.bytes += letterCost + len(l.msg.Body)
	in.call()
}

// settled leaves word that the disk has come so far.
func (in *inbox) settled(upto uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.upto = upto
	in.call()
}

// call begins the goroutine, if there is none. The lock is held.
func (in *inbox) call() {
	if !in.works {
		in.works = true
		go in.work()
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
