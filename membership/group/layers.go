package group

import (
	"slices"

	"parley"
)

// layers holds the broadcasts of one process, and the timers that they have set in the present view.
type layers struct {
	services []LayerSpec
	list     []Layer // by service
	n        int
	bits     int // of the part of a path that names a layer
	armed    []timer
	records  int // since the last compaction of the log
}

// timer is a timer that a layer has set.
type timer struct {
	layer  int
	number parley.Timer
}

func newLayers(services []LayerSpec, self parley.ID, n int, durable bool) layers {
	x := layers{services: services, n: n, bits: width(len(services))}
	for _, service := range services {
		layer := service.New(self, n)
		if _, ok := layer.(Durable); durable && !ok {
			panic("group: " + service.Name + " is not for durable mode")
		}
		x.list = append(x.list, layer)
	}
	return x
}

// place addresses the effects of layer i since mark: it adds the layer's path, and the view to messages. It
// reports whether there are deliveries among them, which are left to the group.
func (x *layers) place(s *parley.Step, mark, i int, view uint64) (delivers bool) {
	child := parley.Path(i + 1)
	for k := mark; k < len(s.Effects); k++ {
		e := &s.Effects[k]
		switch e.Op {
		case parley.OpSend:
			if e.To == parley.All {
				panic("group: " + x.services[i].Name + " sends to others than members")
			}
			e.Epoch = uint32(view)
		case parley.OpSetTimer:
			x.armed = append(x.disarmed(i, e.Timer), timer{i, e.Timer})
		case parley.OpStopTimer:
			x.armed = x.disarmed(i, e.Timer)
		case parley.OpAppend:
			x.records++
		default:
			delivers = delivers || e.Op == parley.OpDeliver
			continue
		}
		e.Path = e.Path.Push(x.bits, child)
	}
	return delivers
}

// disarmed returns the armed timers without timer t of layer i.
func (x *layers) disarmed(i int, t parley.Timer) []timer {
	return slices.DeleteFunc(x.armed, func(a timer) bool { return a == timer{i, t} })
}

// expired removes a timer that has expired, and reports whether layer i had set it.
func (x *layers) expired(i int, t parley.Timer) bool {
	armed := len(x.armed)
	x.armed = x.disarmed(i, t)
	return len(x.armed) < armed
}

// disarm stops the timers of all layers: they have no meaning in another view.
func (x *layers) disarm(s *parley.Step) {
	for _, t := range x.armed {
		s.At(parley.Path(t.layer+1), 0, func() { s.StopTimer(t.number) })
	}
	x.armed = nil
}

// waiting reports whether any layer has yet to deliver a message.
func (x *layers) waiting() bool { return slices.ContainsFunc(x.list, Layer.Waiting) }

// unfinished reports whether any layer is waiting, or has an own message that is not finished.
func (x *layers) unfinished() bool {
	return x.waiting() || slices.ContainsFunc(x.list, func(l Layer) bool {
		own, sends := l.(Sender)
		return sends && own.Oldest() > 0
	})
}

// reports returns the report of each layer.
func (x *layers) reports() (list [][]byte) {
	for _, layer := range x.list {
		list = append(list, layer.Report())
	}
	return list
}

// cuts computes the cut of each layer from the reports.
func (x *layers) cuts(reports []report) (cuts [][]byte) {
	for i, layer := range x.list {
		var of [][]byte
		for _, r := range reports {
			of = append(of, r.layers[i])
		}
		cuts = append(cuts, layer.Cut(of))
	}
	return cuts
}

// read decodes a decision. It reports whether its cuts can be installed.
func (x *layers) read(value []byte) (d decision, ok bool) {
	if d, ok = readDecision(value, x.n, len(x.list)); !ok {
		return d, false
	}
	for i, layer := range x.list {
		if !layer.Reads(d.cuts[i]) {
			return d, false
		}
	}
	return d, true
}

// appendSnapshots appends a snapshot of each layer to b.
func (x *layers) appendSnapshots(b []byte) []byte {
	for _, layer := range x.list {
		b = parley.AppendBytes(b, layer.Snapshot())
	}
	return b
}

// restore restores the layers from the sponsor's snapshots, which must be all that is left to read.
func (x *layers) restore(r *parley.Reader) bool {
	states := readList(r, len(x.list))
	for i, layer := range x.list {
		if r.Bad || !layer.Restore(states[i]) {
			return false
		}
	}
	return r.Done()
}

// visit visits the layers, each of which declares what is durable.
func (x *layers) visit(v *parley.Vars) {
	for i, layer := range x.list {
		v.Machine(x.services[i].Name, layer)
	}
}

func (x *layers) timersState(v *parley.Vars) {
	parley.Slice(v, "armed", &x.armed, func(_ int, t *timer) {
		parley.Num(v, "layer", &t.layer)
		parley.Num(v, "timer", &t.number)
	})
	parley.Num(v, "records", &x.records)
}
