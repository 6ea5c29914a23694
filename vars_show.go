package parley

import (
	"strconv"
	"strings"
)

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
	v := Vars{mode: showing, now: now}
	v.shown = &Shown{names: &v.names, naming: naming}
	m.State(&v)
	return v.shown.all
}

// ShowDerived returns only the derived variables of m. It is much faster than ShowNamed.
func ShowDerived(m Machine, naming func(ID) string) []Variable {
	v := Vars{mode: deriving}
	v.shown = &Shown{names: &v.names, naming: naming}
	m.State(&v)
	return v.shown.all
}

// Shown collects the variables that a visit shows.
type Shown struct {
	all    []Variable
	names  *[]place // of the parts around the variable
	naming func(ID) string
}

// Shown returns what collects variables if the visit shows them, and otherwise nil: only then a State method derives
// others from them.
func (v *Vars) Shown() *Shown { return v.shown }

// Derive shows a variable that is derived from others.
func (s *Shown) Derive(x Variable) {
	var name strings.Builder
	for _, p := range *s.names {
		name.WriteString(p.name)
		if p.index >= 0 {
			name.WriteString("[" + strconv.Itoa(p.index) + "]")
		}
		name.WriteByte('.')
	}
	x.Name = name.String() + x.Name
	s.all = append(s.all, x)
}

// Called returns the name of a process in what is shown.
func (s *Shown) Called(id ID) string {
	if s.naming != nil && id != All {
		return s.naming(id)
	}
	return id.String()
}

// place names an inner machine, or an element of a slice. Names are joined only when something is shown, because a
// visit passes many places and shows few.
type place struct {
	name  string
	index int // negative: of no slice
}

// List returns the names of processes in what is shown, as in "P1, P3".
func (s *Shown) List(of Set) string { return s.joined(of, ", ") }

func (s *Shown) joined(of Set, with string) string {
	var names []string
	for id := range of.All() {
		names = append(names, s.Called(id))
	}
	return strings.Join(names, with)
}
