package host

import (
	"sync"

	"parley"
)

// inbox queues input for a machine whose steps may take long (Options.Long), so that neither the reader of
// a connection nor the committing goroutine waits for a step. While it is not empty, one goroutine of the
// process handles its contents in order of arrival.
type inbox struct {
	mu      sync.Mutex
	room    sync.Cond // signaled when there is space again
	letters []letter
	spare   []letter
	bytes   int
	upto    uint64 // what is durable, if the machine has not been notified
	working bool   // the goroutine is running
	work    func() // the function that it runs
}

// letter is a waiting message.
type letter struct {
	parley.Env
	msg   parley.Msg
	asked bool // it is a request to the machine, and no node sent it
}

// letterCost is the memory of a letter in bytes, besides its content.
const letterCost = 80

// mostSpare is the capacity in letters that an empty inbox keeps.
const mostSpare = 4096

// inboxLimit is how many bytes wait for a machine before post blocks.
const inboxLimit = 16 << 20

// post adds a message. It waits until there is space.
func (in *inbox) post(l letter) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for in.bytes > inboxLimit {
		in.room.Wait()
	}
	in.letters = append(in.letters, l)
	in.bytes += letterCost + len(l.msg.Body)
	in.startWork()
}

// postDurable records that the disk has reached upto.
func (in *inbox) postDurable(upto uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.upto = upto
	in.startWork()
}

// startWork starts the goroutine if it is not running. The caller holds the lock.
func (in *inbox) startWork() {
	if !in.working {
		in.working = true
		go in.work()
	}
}

// take returns everything queued. If there is nothing, the goroutine ends.
func (in *inbox) take() (letters []letter, upto uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	letters, upto = in.letters, in.upto
	in.letters, in.spare, in.upto = in.spare[:0], letters, 0
	if cap(letters) > mostSpare {
		in.spare = nil
	}
	in.working = len(letters) > 0 || upto > 0
	return letters, upto
}

// done frees the space of a letter.
func (in *inbox) done(l *letter) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.bytes -= letterCost + len(l.msg.Body)
	*l = letter{}
	in.room.Broadcast()
}
