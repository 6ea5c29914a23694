package explore

import (
	"fmt"

	"parley"
)

// TransitionKind happens in a move.
type TransitionKind uint8

// The moves.
const (
	OnDelivery       TransitionKind = iota // a message is delivered
	OnLoss                                 // a message is lost
	OnDuplicate                            // a message is delivered, and will be once more
	OnRequest                              // a process is asked from above
	OnTimeout                              // a timer runs out
	OnCrash                                // a process crashes between two steps
	OnRestart                              // a process comes back
	OnLostDisk                             // a process comes back without what was durable
	OnSuspicion                            // a process is told that another one has crashed
	OnFalseSuspicion                       // the same, and it has not
	OnStart                                // a process begins
)

func (w TransitionKind) String() string {
	return [...]string{
		"delivery", "loss", "delivery that comes twice", "request", "timeout", "crash", "restart",
		"restart without a disk", "suspicion", "false suspicion", "start",
	}[w]
}

// transition is a move that a state allows; what comes of it may depend on choices.
type transition struct {
	what TransitionKind
	at   parley.ID // whose move it is
	of   parley.ID // the sender, or who is suspected
	in   input     // what happens to the component; 0 if nothing does
	elem int       // the element of the flight that it takes away, or -1
	cost int       // the budget that it takes from, or -1
	now  parley.Tick
	wait parley.Tick // how long nothing happened before it, where it is always time 0
	lost uint32      // the message that is lost
}

// takenTransition is a move, what came of it, and the component before; none if a message is lost.
type takenTransition struct {
	turn    transition
	outcome *outcome
	before  uint32
}

// Moves of a state are numbered by what they are about, and then by what comes of it, so
// that a number means the same however many of the others are left out.
const (
	variantBits = 20
	maxVariant  = 1<<variantBits - 1
	maxGroup    = maxMove >> variantBits
)

// tooLarge is why something cannot be explored.
type tooLarge string

var tooMany = tooLarge(fmt.Sprintf("a step has more than %d outcomes: "+
	"search by rounds, or with fewer liars", maxVariant))
