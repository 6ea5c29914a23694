package kernel

import "errors"

// The errors that services share. Package cluster says of each service what they mean there.
var (
	// ErrRefused says that nothing was done, nor will be.
	ErrRefused = errors.New("refused")
	// ErrUnknown says that what was asked for may have been done, or may still be.
	ErrUnknown = errors.New("the outcome is unknown")
	// ErrClosed is the error of a node that was closed.
	ErrClosed = errors.New("the node is closed")
	// ErrNotMember is the error of a member that a group has excluded.
	ErrNotMember = errors.New("this node is not a member of the group now")
	// ErrTooLarge is the error of what is longer than is carried.
	ErrTooLarge = errors.New("the payload is too large")
	// ErrAbstained is the error of an agreement in which this node takes no part.
	ErrAbstained = errors.New("this node was too late for the agreement: it was held up, cut off, or coming back")

	// ErrExpelled is the error of a node that the others have expelled. It is [ErrNotMember].
	ErrExpelled error = special{"this node has been expelled: it may come back when it is started again", ErrNotMember}
	// ErrDraining is the error of a request to a node that takes no new ones. It is [ErrRefused].
	ErrDraining error = special{"the node takes no new requests: it is about to leave", ErrRefused}
	// ErrNoRoom is the error of a request to a node whose disk is nearly full. It is [ErrRefused].
	ErrNoRoom error = special{"refused: this node's disk is nearly full", ErrRefused}
)

// special is an error that is another one, too, whose text it does not repeat.
type special struct {
	text string
	is   error
}

func (e special) Error() string { return e.text }

// Is tells what the error is, too.
func (e special) Is(target error) bool { return target == e.is }
