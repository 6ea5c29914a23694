package kernel

import "errors"

// The errors that services share. Package cluster documents what they mean for each service.
var (
	// ErrRefused says that the request has no effect, now or later.
	ErrRefused = errors.New("refused")
	// ErrUnknown says that the request may have taken effect, or may still take effect.
	ErrUnknown = errors.New("the outcome is unknown")
	// ErrClosed is the error of a closed node.
	ErrClosed = errors.New("the node is closed")
	// ErrNotMember is the error of a member that a group has excluded.
	ErrNotMember = errors.New("this node is not a member of the group now")
	// ErrTooLarge is the error of a value or payload that exceeds its limit.
	ErrTooLarge = errors.New("the payload is too large")
	// ErrAbstained is the error of an agreement in which this node takes no part.
	ErrAbstained = errors.New("abstained: this node missed a deadline of the agreement " +
		"(it was paused, slow, disconnected, or rejoining)")

	// ErrExpelled is the error of a node that the others have expelled. It matches [ErrNotMember].
	ErrExpelled error = special{"this node has been expelled: start it again to let it rejoin", ErrNotMember}
	// ErrDraining is the error of a request to a node that drains, and so refuses new requests. It matches
	// [ErrRefused].
	ErrDraining error = special{"refused: the node is leaving: ask another one", ErrRefused}
	// ErrNoRoom is the error of a request to a node whose disk is nearly full. It matches [ErrRefused].
	ErrNoRoom error = special{"refused: the disk of this node is nearly full: free space, or ask another node", ErrRefused}
)

// special is an error that also matches another one, whose text it does not repeat.
type special struct {
	text string
	is   error
}

func (e special) Error() string { return e.text }

// Is reports whether target is the other error.
func (e special) Is(target error) bool { return target == e.is }
