package scenario

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/broadcast/problem"
	"parley/membership/group"
	"parley/replica/service"
	"parley/run"
	"parley/sim"
)

// Flags writes a drawn plan as flags of a protocol, KEY=VALUE: what reads them gets the
// plan, and where they would be something else if left out they say that there is none.
func Flags(p run.Plan, proto parley.Protocol, name func(parley.ID) string) []string {
	w := writer{name: name}
	w.network(p)
	if proto.Relies.FIFO && !p.FIFO {
		w.flag("fifo", "false")
	}
	for _, q := range p.Requests {
		w.request(q)
	}
	if w.list("requests"); proto.Serves && len(p.Requests) == 0 {
		w.flag("requests", "[]")
	}
	for _, l := range p.Links {
		w.item("from", w.someone(l.From), "to", w.someone(l.To), "since", number(l.Since), "until", number(l.Until),
			"loss", chance(l.Loss), "twice", chance(l.Twice), "delay", delayText(l.Delay))
	}
	w.list("links")
	for _, c := range p.Crashes {
		disk, when := "", number(c.When)
		if c.Step == 0 && c.When == 0 {
			when = "0"
		}
		if c.LostDisk {
			disk = "lost"
		}
		w.item("process", name(c.At), "step", number(parley.Tick(c.Step)), "when", when,
			"effects", number(parley.Tick(c.Effects)), "back", number(c.Back), "disk", disk)
	}
	w.list("crashes")
	for _, v := range p.Pauses {
		w.item("process", name(v.At), "since", number(v.From), "for", number(v.For))
	}
	w.list("pauses")
	for _, c := range p.Clocks {
		w.item("process", name(c.At), "offset", number(c.Offset), "drift", number(parley.Tick(c.Drift)))
	}
	w.list("clocks")
	for _, v := range p.Suspicions {
		w.item("process", name(v.At), "suspects", name(v.Of), "when", number(v.When))
	}
	w.list("suspicions")
	if p.Detect > 0 {
		w.flag("detect", number(p.Detect))
	}
	if p.Heal > 0 {
		w.flag("heal", number(p.Heal))
	}
	if p.Until > 0 {
		w.flag("until", number(p.Until))
	}
	if p.Steps > 0 {
		w.flag("steps", fmt.Sprint(p.Steps))
	}
	if v := p.Promised; v != (parley.Reliance{}) {
		w.item("delay", number(v.Delay), "offset", number(v.Offset), "drift", number(parley.Tick(v.Drift)))
		w.flag("promised", w.items[0])
	}
	return w.out
}

// network writes what links do all the time.
func (w *writer) network(p run.Plan) {
	if p.Delay != (sim.Delay{}) {
		w.flag("delay", delayText(p.Delay))
	}
	if p.FIFO {
		w.flag("fifo", "true")
	}
	if p.Loss > 0 {
		w.flag("loss", fmt.Sprint(p.Loss))
	}
	if p.Twice > 0 {
		w.flag("twice", fmt.Sprint(p.Twice))
	}
	var graph []string
	for id, to := range p.Graph {
		if to != (parley.Set{}) {
			graph = append(graph, w.name(parley.ID(id))+": "+w.set(to))
		}
	}
	if len(p.Graph) > 0 {
		w.flag("graph", "{"+strings.Join(graph, ", ")+"}")
	}
}

// writer writes values in the flow style of YAML.
type writer struct {
	name  func(parley.ID) string
	items []string
	out   []string
}

func (w *writer) flag(key, value string) { w.out = append(w.out, key+"="+value) }

// list makes a flag of the items so far.
func (w *writer) list(key string) {
	if len(w.items) > 0 {
		w.flag(key, "["+strings.Join(w.items, ", ")+"]")
	}
	w.items = nil
}

// item adds a mapping of keys and values; empty values are left out.
func (w *writer) item(pairs ...string) {
	var parts []string
	for pair := range slices.Chunk(pairs, 2) {
		if key, value := pair[0], pair[1]; value != "" {
			parts = append(parts, key+": "+value)
		}
	}
	w.items = append(w.items, "{"+strings.Join(parts, ", ")+"}")
}

func (w *writer) request(q sim.Request) {
	at, when, body := w.name(q.At), number(q.When), string(q.Msg.Body)
	switch q.Msg.Kind {
	case parley.Propose:
		w.item("at", at, "when", when, "propose", word(body))
	case problem.CarryTo:
		if to, payload, err := problem.Decode(q.Msg, parley.MaxProcesses); err == nil {
			w.item("at", at, "when", when, "broadcast", word(string(payload)), "to", w.set(to))
		}
	case service.Configure:
		w.item("at", at, "when", when, "setup", w.setup(q.Msg.Body))
	case group.Leave:
		w.item("at", at, "when", when, "leave", "true")
	case service.Command:
		w.item("at", at, "when", when, "command", word(body), "client", number(parley.Tick(q.Msg.Value)),
			"number", number(parley.Tick(q.Msg.Seq)))
	default:
		w.item("at", at, "when", when, "broadcast", word(body))
	}
}

// setup writes the setup of a replicated service, which Setup.Append has written.
func (w *writer) setup(body []byte) string {
	active, rest, err := problem.ReadSet(body, parley.MaxProcesses)
	wrong, n := binary.Uvarint(rest)
	if err != nil || n <= 0 || len(rest) != n+1 {
		panic("scenario: a setup that cannot be read")
	}
	text := "{active: " + w.set(active)
	if wrong > 0 {
		text += fmt.Sprintf(", wrong: %d", wrong)
	}
	if rest[n] != 0 {
		text += ", checked: true"
	}
	return text + "}"
}

func (w *writer) set(s parley.Set) string {
	var parts []string
	for id := range s.All() {
		parts = append(parts, w.name(id))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// someone is a set; everybody is left out.
func (w *writer) someone(s parley.Set) string {
	if s == (parley.Set{}) {
		return ""
	}
	return w.set(s)
}

func number(t parley.Tick) string {
	if t == 0 {
		return ""
	}
	return fmt.Sprint(int64(t))
}

func chance(c float64) string {
	if c == 0 {
		return ""
	}
	return fmt.Sprint(c)
}

func delayText(d sim.Delay) string {
	if d == (sim.Delay{}) {
		return ""
	}
	return fmt.Sprintf("%d..%d", d.Least, d.Most)
}
