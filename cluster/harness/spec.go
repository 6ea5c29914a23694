// Package harness runs one machine of a protocol, any protocol, between real processes on one
// computer, for who wants to see what happens: the processes have certificates of their
// own and are joined by mutual TLS, and each writes down what happens to it.
//
// A [Run] starts the processes, hands each its [Spec], begins everywhere at one time, kills
// and stops processes when that is due, waits until nothing is due any more, and puts what
// the processes have written down into one trace. [Serve] is what such a process does. The
// two talk in lines of JSON, on the standard input and output of the process, which ends
// when its input does: it does not outlive who started it.
//
// A process crashes by being killed, or at an exact place, between two effects of a step, by
// itself: it sends what it has sent to that point, and ends. The weather of links ([sim.Weather])
// is made by the processes too. Receipts in their traces name what they are of ([trace.Sending]).
//
// Machines that are made for simulated runs have their times in ticks. Here a tick lasts
// as long as the run says, and the clocks of all processes show 0 at the same time.
//
// # Decisions
//
// What befalls a run on real processes is made by these processes. In run --host cluster a sender
// decides which messages are lost, doubled or late; a late message waits at its receiver, and arrives
// although its sender crashes. A crash between two effects is made by the host of the machine
// (host.Options.Crash): the effects before it are carried out and durable, and the process ends.
// Messages carry their number, so that traces pair receipts exactly. Motive: a scenario means the same
// on both hosts. Cost: every message has 16 bytes more, in these runs alone; and the process that
// crashes so is not killed from outside, as one that crashes at a time is.
package harness

import (
	"crypto/ed25519"
	"math"
	"time"

	"parley"
	"parley/sim"
	"parley/trace"
)

// Spec is what a process is told first.
type Spec struct {
	Self    parley.ID
	Header  trace.Header // of its trace; the protocol and the arguments say what machine to make
	Certs   string       // the folder of certificates
	Listen  string       // address
	Trace   string       // the file to write to
	Store   string       // the folder for what is durable; "": nothing is
	Life    uint64       // from 1
	Signers []ed25519.PublicKey
	Tick    time.Duration
	// Early has the machine start before time 0, when it must be asked what it proposes:
	// rounds begin then.
	Early    bool
	Until    parley.Tick   // when it ends by itself; 0: it does not
	Requests []sim.Request // in the order of their times; or, of kind parley.Suspect, whom it is told to suspect
	Weather  sim.Weather   // without a delay a message takes as long as it takes
	Wrong    sim.Clock     // how wrong its machine's clock is
	Crashes  []sim.Crash   // of those of the run those of this process that it makes itself
	Steps    int           // of its machine in earlier lives
}

// order is what a process is told later: one thing at a time.
type order struct {
	Peers []string    // addresses, by process: connect
	Begin time.Time   // time 0
	Ask   uint64      // say how things are, and that it was in this asking
	Gone  []parley.ID // tell the machine that these have crashed
	End   bool        // stop, and say how things are
}

// answer is what a process says.
type answer struct {
	Listens   string   `json:",omitempty"` // address
	Connected bool     `json:",omitempty"` // with all others
	Status    *status  `json:",omitempty"`
	Crashed   *crashed `json:",omitempty"` // by itself, as it was told to
	Failed    string   `json:",omitempty"` // why it can not go on
}

// status is how things are at a process.
type status struct {
	Asked          uint64
	Rests          bool     // nothing is due
	Over           bool     // the machine has been stopped
	Events         uint64   // so far
	Sent, Received []uint64 // messages, by process; without those that were lost before they left
	Down           []parley.ID
	Late           time.Duration // how late the process woke, at most
}

// clock shows ticks since a time.
type clock struct {
	began time.Time
	tick  time.Duration
}

// Now is negative before the time has come.
func (c *clock) Now() parley.Tick {
	d := time.Since(c.began)
	if d < 0 {
		d -= c.tick - 1
	}
	return parley.Tick(d / c.tick)
}

// wrong is a clock as a machine sees it.
type wrong struct {
	true *clock
	how  sim.Clock
}

// Now is what it shows.
func (c *wrong) Now() parley.Tick { return c.how.Shows(c.true.Now()) }

// Until is how long it is until it shows a time.
func (c *wrong) Until(t parley.Tick) time.Duration { return c.true.Until(c.how.When(t)) }

// Until is how long it is until the clock shows a time.
func (c *clock) Until(t parley.Tick) time.Duration {
	if t > parley.Tick(math.MaxInt64/c.tick/2) {
		return math.MaxInt64
	}
	return max(0, time.Until(c.began.Add(time.Duration(t)*c.tick)))
}
