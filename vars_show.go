package parley

import "strings"

// Variable is one variable of a machine in readable form.
type Variable struct {
	Name, Value string
	Kind        VariableKind
	// From is the sender of a HeldMessage.
	From ID
	// Place is the place of a HeldMessage in an order, as far as it is known; and the number of commands that are
	// included in a ReplicaState.
	Place string
	// Waits says what a HeldMessage or a process waits for. A message that can be delivered waits for nothing.
	Waits string
}

// VariableKind says how a viewer can draw a variable.
type VariableKind uint8

// The kinds of variables. All except PlainVariable and ProcessSet are derived from other variables of the machine.
const (
	PlainVariable  VariableKind = iota
	ProcessSet                  // processes, as in [0 2]
	CountVector                 // a number for each process, in their order, as in 2 0 1
	HeldMessage                 // a message that was received and is not yet delivered; Value: its payload
	ReplicaState                // what all replicas hold alike at the same Place
	WaitingProcess              // the process waits; Value: what it holds meanwhile
)

// Show returns the variables of m in readable form. Processes are numbers.
func Show(m Machine, now Tick) []Variable { return ShowNamed(m, now, nil) }

// ShowNamed is Show with names of processes. If naming is nil, processes are numbers.
func ShowNamed(m Machine, now Tick, naming func(ID) string) []Variable {
	v := Vars{mode: showing, now: now, called: naming}
	m.State(&v)
	return v.shown
}

// Showing reports whether the visit shows the variables. Only then a State method derives others from them.
func (v *Vars) Showing() bool { return v.mode == showing }

// Derive shows a variable that is derived from others. In other visits it does nothing.
func (v *Vars) Derive(x Variable) {
	if v.mode == showing {
		x.Name = strings.Join(append(v.names, x.Name), ".")
		v.shown = append(v.shown, x)
	}
}

// Called returns the name of a process in what is shown.
func (v *Vars) Called(id ID) string {
	if v.called != nil && id != All {
		return v.called(id)
	}
	return id.String()
}

// List returns the names of processes in what is shown, as in "P1, P3".
func (v *Vars) List(s Set) string { return v.joined(s, ", ") }

func (v *Vars) joined(s Set, with string) string {
	var names []string
	for id := range s.All() {
		names = append(names, v.Called(id))
	}
	return strings.Join(names, with)
}
