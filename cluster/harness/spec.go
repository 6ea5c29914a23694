// Package harness runs a protocol once with real processes on one computer, to observe the protocol. Each process has
// its own certificate, communicates by mutual TLS, and records its events.
//
// A [Run] starts the processes, sends each process its [Spec], and starts all machines at the same time. It kills and
// pauses processes at given times, and waits until the run has ended. Then it merges the recorded events into one
// trace. Each process calls [Serve]. The run and the processes exchange lines of JSON on the standard input and
// output of the processes. A process ends when its input ends, so it does not outlive the program that started it.
//
// There are two ways to crash a process. The run kills the process, or the process ends itself between two effects of
// a step, so that only the earlier effects happen. The processes also simulate lost, duplicated and late messages
// ([sim.Weather]). Each message has a number, and the trace entry of a received message names this number
// ([trace.Sending]).
//
// Machines count time in ticks, as in simulated runs. The run chooses how long a tick lasts. The clocks of all
// processes show 0 at the same time.
//
// # Decisions
//
// The processes of a run inject most faults themselves. A sender decides which messages are lost, duplicated or late.
// A late message waits at its receiver, so it arrives even if its sender crashes. To crash between two effects
// (host.Options.Crash), a process carries out the effects before the crash, makes them durable, and then ends itself.
// Only a crash at a given time is a kill from outside. Messages carry a number, so that a trace connects each receipt
// with the sending of the message. Motive: a scenario means the same in the simulator and between real processes.
// Cost: in these runs every message is 16 bytes longer.
package harness

import (
	"crypto/ed25519"
	"math"
	"time"

	"parley"
	"parley/sim"
	"parley/trace"
)

// Spec is the first message to a process.
type Spec struct {
	Self    parley.ID
	Header  trace.Header // of its trace; the protocol and the arguments determine the machine
	Certs   string       // the folder of certificates
	Listen  string       // address
	Trace   string       // the file to write to
	Store   string       // the folder for durable state; "": nothing is durable
	Life    uint64       // from 1
	Signers []ed25519.PublicKey
	Tick    time.Duration
	// Early starts the machine before time 0, when the process must have its proposals: rounds begin then.
	Early    bool
	Until    parley.Tick   // when it ends by itself; 0: never
	Requests []sim.Request // sorted by time; one of kind parley.Suspect names a process to suspect
	Weather  sim.Weather   // without a delay a message is as fast as the network
	Wrong    sim.Clock     // the error of its machine's clock
	Crashes  []sim.Crash   // the crashes of this process that it makes itself
	Steps    int           // of its machine in earlier incarnations
}

// order is a later message to a process, with one field set.
type order struct {
	Peers []string    // addresses, by process: connect
	Begin time.Time   // time 0
	Ask   uint64      // send the status with this number
	Gone  []parley.ID // notify the machine that these have crashed
	End   bool        // stop, and send the status
}

// answer is a message from a process.
type answer struct {
	Listens   string   `json:",omitempty"` // address
	Connected bool     `json:",omitempty"` // with all others
	Status    *status  `json:",omitempty"`
	Crashed   *crashed `json:",omitempty"` // by itself, as planned
	Failed    string   `json:",omitempty"` // why it cannot continue
}

// status is the status of a process.
type status struct {
	Asked          uint64
	Rests          bool     // nothing is due
	Over           bool     // the machine has been stopped
	Events         uint64   // so far
	Sent, Received []uint64 // messages, by process; without those lost before they left
	Down           []parley.ID
	Late           time.Duration // how late the process woke, at most
}

// clock shows the ticks since a time.
type clock struct {
	began time.Time
	tick  time.Duration
}

// Now returns the time, which is negative before began.
func (c *clock) Now() parley.Tick {
	d := time.Since(c.began)
	if d < 0 {
		d -= c.tick - 1
	}
	return parley.Tick(d / c.tick)
}

// wrong is the clock that a machine sees.
type wrong struct {
	true *clock
	how  sim.Clock
}

// Now returns the time that it shows.
func (c *wrong) Now() parley.Tick { return c.how.Shows(c.true.Now()) }

// Until returns the real time until it shows t.
func (c *wrong) Until(t parley.Tick) time.Duration { return c.true.Until(c.how.When(t)) }

// Until returns the real time until the clock shows t, 0 if it already does.
func (c *clock) Until(t parley.Tick) time.Duration {
	if t > parley.Tick(math.MaxInt64/c.tick/2) {
		return math.MaxInt64
	}
	return max(0, time.Until(c.began.Add(time.Duration(t)*c.tick)))
}
