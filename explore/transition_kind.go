package explore

import (
	"fmt"

	"parley"
)

// TransitionKind says what happens in a transition.
type TransitionKind uint8

// The kinds of transitions.
const (
	OnDelivery       TransitionKind = iota // a message is delivered
	OnLoss                                 // a message is lost
	OnDuplicate                            // a message is delivered, and will be delivered once more
	OnRequest                              // a process gets a request
	OnTimeout                              // a timer expires
	OnCrash                                // a process crashes between two steps
	OnRestart                              // a process restarts
	OnLostDisk                             // a process restarts without its durable state
	OnSuspicion                            // a process is notified that another process has crashed
	OnFalseSuspicion                       // the same, but the other process has not crashed
	OnStart                                // a process starts
)

func (w TransitionKind) String() string {
	return [...]string{
		"delivery", "loss", "delivery that comes twice", "request", "timeout", "crash", "restart",
		"restart without a disk", "suspicion", "false suspicion", "start",
	}[w]
}

// transition is a transition that a state allows; its outcome may depend on choices.
type transition struct {
	what TransitionKind
	at   parley.ID // the process that moves
	of   parley.ID // the sender, or the suspected process
	in   input     // the input to the process state; 0 if there is none
	elem int       // the element of the flight that it removes, or -1
	cost int       // the budget that it takes from, or -1
	now  parley.Tick
	wait parley.Tick // how long nothing happened before it, where the time is always 0
	lost uint32      // the message that is lost
}

// takenTransition is a transition, its outcome (nil if a message is lost), and the process state before it.
type takenTransition struct {
	transition transition
	outcome    *outcome
	before     uint32
}

// Transitions of a state are numbered by their subject, and then by their outcome, so that a number keeps
// its meaning when other transitions are omitted.
const (
	variantBits = 20
	maxVariant  = 1<<variantBits - 1
	maxGroup    = maxMove >> variantBits
)

// tooLarge is the reason why something cannot be explored.
type tooLarge string

var tooMany = tooLarge(fmt.Sprintf("a step has more than %d outcomes: "+
	"search by rounds, or with fewer liars", maxVariant))
