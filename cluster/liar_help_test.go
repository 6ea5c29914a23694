package cluster_test

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/agreement/ballot"
	"parley/agreement/tetra"
	"parley/broadcast/byzantine"
	"parley/cluster"
	"parley/cluster/link"
	"parley/faulty"
	"parley/membership/group"
)

// field is a part of a message that can be changed independently.
type field struct {
	number uint64
	set    *parley.Set
	bytes  []byte
	kind   fieldKind
}

type fieldKind uint8

const (
	isNumber fieldKind = iota
	isSet
	isBytes
)

// change changes the field to another value, for n processes.
func (f *field) change(r *rand.Rand, n int) {
	switch f.kind {
	case isSet:
		if id := parley.ID(r.IntN(n)); !f.set.Add(id) {
			f.set.Remove(id)
		}
	case isBytes:
		b := slices.Clone(f.bytes)
		switch k := r.IntN(4); {
		case len(b) == 0 || k == 0:
			b = append(b, byte(r.Uint32()))
		case k == 1:
			b = b[:r.IntN(len(b))]
		default:
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		f.bytes = b
	case isNumber:
		switch r.IntN(6) {
		case 0:
			f.number++
		case 1:
			f.number--
		case 2:
			f.number += uint64(r.IntN(200))
		case 3:
			f.number = uint64(r.IntN(10))
		case 4:
			f.number = 0
		default:
			f.number = r.Uint64() >> r.IntN(64)
		}
	}
}

// parts splits a body into fields, and can encode them again.
type parts struct {
	n      int
	b      []byte
	bad    bool
	fields []*field
	write  []func(b []byte) []byte
}

func (p *parts) add(f *field, write func(b []byte) []byte) *field {
	p.fields, p.write = append(p.fields, f), append(p.write, write)
	return f
}

func (p *parts) read() (x uint64) {
	x, rest, err := parley.ReadUvarint(p.b, 1<<64-1)
	if err != nil {
		p.bad = true
		return 0
	}
	p.b = rest
	return x
}

func (p *parts) number() {
	f := &field{number: p.read()}
	p.add(f, func(b []byte) []byte { return binary.AppendUvarint(b, f.number) })
}

func (p *parts) readSet() *field {
	set, rest, err := parley.ReadSet(p.b, p.n)
	if err != nil {
		p.bad = true
		return &field{kind: isSet, set: &parley.Set{}}
	}
	p.b = rest
	return &field{kind: isSet, set: &set}
}

func (p *parts) set() {
	f := p.readSet()
	p.add(f, func(b []byte) []byte { return parley.AppendSet(b, *f.set) })
}

// cut returns the next size bytes.
func (p *parts) cut(size uint64) []byte {
	if size > uint64(len(p.b)) {
		p.bad = true
		return nil
	}
	out := p.b[:size:size]
	p.b = p.b[size:]
	return out
}

// rest adds all remaining bytes as a field.
func (p *parts) rest() {
	f := &field{kind: isBytes, bytes: p.b}
	p.b = nil
	p.add(f, func(b []byte) []byte { return append(b, f.bytes...) })
}

// text adds a field of bytes with their length in front.
func (p *parts) text() {
	f := &field{kind: isBytes, bytes: p.cut(p.read())}
	p.add(f, func(b []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(f.bytes))), f.bytes...) })
}

// within parses a part with its length in front.
func (p *parts) within(read func(p *parts)) {
	inner := &parts{n: p.n, b: p.cut(p.read())}
	empty := len(inner.b) == 0
	if !empty {
		read(inner)
	}
	if p.bad = p.bad || inner.bad || len(inner.b) > 0; p.bad {
		return
	}
	p.fields = append(p.fields, inner.fields...)
	p.write = append(p.write, func(b []byte) []byte {
		in := inner.join(nil)
		return append(binary.AppendUvarint(b, uint64(len(in))), in...)
	})
}

func (p *parts) join(b []byte) []byte {
	for _, w := range p.write {
		b = w(b)
	}
	return b
}

// list parses a count, and each entry.
func (p *parts) list(each func()) {
	n := p.read()
	p.write = append(p.write, func(b []byte) []byte { return binary.AppendUvarint(b, n) })
	for range n {
		if p.bad {
			return
		}
		each()
	}
}

// decision parses what ends a view.
func (p *parts) decision(layer func(p *parts)) {
	p.number()
	members := p.readSet()
	lives := make([]*field, p.n)
	for id := range lives {
		lives[id] = &field{}
		if members.set.Has(parley.ID(id)) {
			lives[id].number = p.read()
		}
	}
	p.add(members, func(b []byte) []byte {
		b = parley.AppendSet(b, *members.set)
		for id := range members.set.All() {
			b = binary.AppendUvarint(b, lives[id].number)
		}
		return b
	})
	p.fields = append(p.fields, lives...)
	for range p.n {
		p.number()
	}
	p.set()
	p.within(layer)
}

// report parses what a member sends with its promise.
func (p *parts) report(layer func(p *parts)) {
	p.number()
	p.number()
	p.list(func() { p.number(); p.number(); p.number() })
	p.set()
	p.within(layer)
}

// held parses messages of the total order that are not delivered everywhere.
func (p *parts) held() { p.list(func() { p.number(); p.number(); p.number(); p.text() }) }

// inner parses a message inside a message.
func (p *parts) inner() {
	path, m, rest, err := parley.ReadMsg(p.b)
	if err != nil || len(rest) > 0 {
		p.rest()
		return
	}
	p.b = nil
	p.message(path, m, func(in *parts) { in.ofService(m.Kind) }, false)
}

// message splits a message. Numbers that the codec does not accept are changed to accepted ones.
func (p *parts) message(path parley.Path, m parley.Msg, body func(in *parts), whole bool) (made func() parley.Msg) {
	origin, seq, value := &field{number: uint64(m.Origin)}, &field{number: m.Seq}, &field{number: m.Value}
	in := &parts{n: p.n, b: m.Body}
	if body(in); in.bad || len(in.b) > 0 {
		in = &parts{n: p.n, b: m.Body}
		in.rest()
	}
	p.fields = append(append(p.fields, origin, seq, value), in.fields...)
	made = func() parley.Msg {
		return parley.Msg{Kind: m.Kind, Origin: parley.ID(origin.number), Seq: seq.number, Value: value.number, Body: in.join(nil)}
	}
	if !whole {
		p.write = append(p.write, func(b []byte) []byte { return parley.AppendMsg(b, path, made()) })
	}
	return made
}

// ofService parses the body of a message of a table.
func (p *parts) ofService(kind parley.Kind) {
	const pack, sum = 4, 6
	switch kind {
	case pack:
		for len(p.b) > 0 && !p.bad {
			p.number()
			p.number()
			p.text()
		}
	case sum:
		if len(p.b) > 0 {
			p.number()
		}
		p.rest()
	default:
		p.rest()
	}
}

// ofGroup parses the body of a message of the group protocol itself.
func (p *parts) ofGroup(kind parley.Kind, report, cut, snapshot func(p *parts)) {
	switch kind {
	case ballot.Accept, ballot.Decision:
		p.decision(cut)
	case ballot.Promise:
		if len(p.b) > 0 {
			p.within(func(p *parts) { p.decision(cut) })
		}
		if len(p.b) > 0 {
			p.report(report)
		}
	case group.Beat:
		if len(p.b) > 0 {
			p.set()
		}
	case group.Forward:
		p.inner()
	case group.Install:
		p.within(func(p *parts) { p.decision(cut) })
		p.within(snapshot)
	default:
		p.rest()
	}
}

// wireKind is one kind of message.
type wireKind struct {
	channel uint32
	path    parley.Path
	kind    parley.Kind
}

// The channels of the services of these tests.
const (
	totalChannel uint32 = 16 + iota
	causalChannel
	atomicChannel
	tableChannel = 1024
)

// ofLayer parses the body of a message of a group's ordering layer.
func (p *parts) ofLayer(channel uint32, kind parley.Kind) {
	vector := func() { p.list(p.number) }
	switch {
	case channel == causalChannel:
		if vector(); kind == 1 && len(p.b) > 0 {
			vector()
		}
		p.rest()
	case channel == atomicChannel:
		const request, final = 1, 3
		p.number()
		if kind == final {
			p.number()
		}
		if (kind == request || kind == final) && len(p.b) > 0 {
			p.set()
		}
		p.rest()
	case channel == tableChannel && kind == 1:
		vector()
		p.inner()
	default:
		vector()
		p.rest()
	}
}

// lie returns a well-formed message that is wrong in one to three fields.
func lie(r *rand.Rand, k wireKind, frame []byte, n int) []byte {
	e, m, err := parley.Decode(frame)
	if err != nil {
		return frame
	}
	total := k.channel == totalChannel || k.channel == tableChannel
	opaque := func(p *parts) { p.rest() }
	report, cut, snapshot := opaque, opaque, opaque
	if total {
		report = func(p *parts) { p.number(); p.number(); p.held() }
		cut = func(p *parts) { p.held() }
		snapshot = func(p *parts) { p.number(); p.number() }
	}
	layer := k.path
	if k.channel == tableChannel {
		layer >>= 1
	}
	p := &parts{n: n}
	epoch := &field{number: uint64(e.Epoch)}
	p.fields = append(p.fields, epoch)
	made := p.message(e.Path, m, func(p *parts) {
		switch {
		case k.channel == tableChannel && k.path&1 == 1:
			p.ofService(k.kind)
		case layer&1 == 0:
			p.ofGroup(k.kind, report, cut, snapshot)
		default:
			p.ofLayer(k.channel, k.kind)
		}
	}, true)
	for range 1 + r.IntN(3) {
		p.fields[r.IntN(len(p.fields))].change(r, n)
	}
	e.Epoch = uint32(epoch.number)
	return parley.Encode(nil, e, made())
}

// liar is a node whose transport sends false messages in addition to the correct ones.
type liar struct {
	mu       sync.Mutex
	r        *rand.Rand
	n        int
	self     parley.ID
	channels []uint32 // of services of all nodes
	under    link.Transport
	heard    map[wireKind][][]byte // the latest of each kind
	counts   map[wireKind]int
	sent     int // number of lies sent to connected nodes
	begun    bool
	ordered  bool         // its only channel has a group of level Byzantine
	lane     bool         // then it tells no lies about its own batches, so that they are delivered
	chosen   atomic.Int64 // lies of its protocol
}

// moods is the behavior of a liar in a Byzantine order: each second it changes between honesty, some lies, and many.
func (l *liar) moods() faulty.Behavior {
	rare := func(s *parley.Step, t *parley.Turn, k, n int) int {
		if s.Choose(20) > 0 {
			return 0
		}
		return faulty.Random.Choose(s, t, k, n)
	}
	honest := func(*parley.Step, *parley.Turn, int, int) int { return 0 }
	list := []func(*parley.Step, *parley.Turn, int, int) int{
		honest, rare, faulty.Random.Choose, rare, faulty.TwoFaced.Choose, honest, faulty.Flip.Choose,
	}
	return faulty.Behavior{Name: "moods", Model: faulty.Random.Model,
		Choose: func(s *parley.Step, t *parley.Turn, k, n int) int {
			if l.lane && k < len(t.Honest) && t.Honest[k].Msg.Kind == byzantine.Batch {
				return 0
			}
			second := int(s.Now / parley.Tick(time.Second) % parley.Tick(len(list))) // negative if the clock is wrong
			choice := list[(second+len(list))%len(list)](s, t, k, n)
			if choice > 0 {
				l.chosen.Add(1)
			}
			return choice
		}}
}

// lie returns a false version of a message.
func (l *liar) lie(k wireKind, frame []byte) []byte {
	if l.ordered {
		if l.lane && k.kind == byzantine.Batch {
			return frame
		}
		return lieInOrder(l.r, frame, l.n)
	}
	return lie(l.r, k, frame, l.n)
}

// lieInOrder returns a message of a Byzantine order that is wrong in one to three fields.
func lieInOrder(r *rand.Rand, frame []byte, n int) []byte {
	e, m, err := parley.Decode(frame)
	if err != nil {
		return frame
	}
	p := &parts{n: n}
	epoch := &field{number: uint64(e.Epoch)}
	p.fields = append(p.fields, epoch)
	made := p.message(e.Path, m, func(p *parts) {
		if m.Kind != tetra.Proposal && m.Kind != byzantine.Cut && m.Kind != byzantine.Tips {
			p.rest()
			return
		}
		for p.number(); len(p.b) > 0 && !p.bad; { // a cut: numbers of batches, each but 0 with a digest
			if p.number(); p.fields[len(p.fields)-1].number > 0 {
				f := &field{kind: isBytes, bytes: p.cut(32)}
				p.add(f, func(b []byte) []byte { return append(b, f.bytes...) })
			}
		}
	}, true)
	for range 1 + r.IntN(3) {
		p.fields[r.IntN(len(p.fields))].change(r, n)
	}
	e.Epoch = uint32(epoch.number)
	return parley.Encode(nil, e, made())
}

const remembered = 16

// hear records a message that the liar has sent or received.
func (l *liar) hear(channel uint32, frame []byte) (k wireKind, ok bool) {
	if !slices.Contains(l.channels, channel) {
		return k, false
	}
	e, m, err := parley.Decode(frame)
	if err != nil {
		return k, false
	}
	k = wireKind{channel, e.Path, m.Kind}
	l.mu.Lock()
	defer l.mu.Unlock()
	list := append(l.heard[k], slices.Clone(frame))
	l.heard[k] = list[max(0, len(list)-remembered):]
	return k, true
}

// mouth is the transport of the liar.
type mouth struct {
	link.Transport
	l *liar
}

// Send also sends a false version of one in eight of the node's own messages.
func (m mouth) Send(to parley.ID, class link.Class, channel uint32, head, body []byte) bool {
	frame := slices.Concat(head, body)
	if k, ok := m.l.hear(channel, frame); ok {
		m.l.mu.Lock()
		if m.l.begun && m.l.r.IntN(8) == 0 {
			head, body = nil, m.l.lie(k, frame)
		}
		m.l.mu.Unlock()
	}
	return m.Transport.Send(to, class, channel, head, body)
}

// kinds returns all kinds of messages; those never received are invented.
func (l *liar) kinds() []wireKind {
	l.mu.Lock()
	defer l.mu.Unlock()
	invent := func(channel uint32, path parley.Path, last parley.Kind) {
		for kind := parley.Kind(1); kind <= last; kind++ {
			l.heard[wireKind{channel, path, kind}] = append(l.heard[wireKind{channel, path, kind}], nil)
		}
	}
	for _, channel := range l.channels {
		if l.ordered {
			invent(channel, 0, byzantine.Knock)
			continue
		}
		above := parley.Path(1) // of the layer in the group
		if channel == tableChannel {
			above = 2
			for kind := parley.Kind(6); kind <= 9; kind++ {
				l.heard[wireKind{channel, 1, kind}] = append(l.heard[wireKind{channel, 1, kind}], nil)
			}
		}
		invent(channel, 0, group.Install)
		orders := []parley.Kind{1, 2}
		if channel == atomicChannel {
			orders = []parley.Kind{1, 2, 3, 7}
		}
		for _, kind := range orders {
			l.heard[wireKind{channel, above, kind}] = append(l.heard[wireKind{channel, above, kind}], nil)
		}
	}
	var out []wireKind
	for k, list := range l.heard {
		if list = slices.DeleteFunc(list, func(b []byte) bool { return b == nil }); len(list) == 0 {
			list = [][]byte{parley.Encode(nil, parley.Env{Epoch: 1, Path: k.path}, parley.Msg{Kind: k.kind, Seq: 5, Value: 1})}
		}
		l.heard[k] = list
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b wireKind) int {
		return slices.Compare([]uint64{uint64(a.channel), uint64(a.path), uint64(a.kind)},
			[]uint64{uint64(b.channel), uint64(b.path), uint64(b.kind)})
	})
	return out
}

// lies sends each false messages of each kind, over some time.
func (l *liar) lies(each int, over time.Duration) {
	const pause = 10 * time.Millisecond
	ticks := int(over / pause)
	l.mu.Lock()
	l.begun = true
	l.mu.Unlock()
	for tick := range ticks {
		for _, k := range l.kinds() {
			for range each*(tick+1)/ticks - each*tick/ticks {
				l.mu.Lock()
				list := l.heard[k]
				frame := l.lie(k, list[l.r.IntN(len(list))])
				to := parley.ID(l.r.IntN(l.n - 1))
				if to >= l.self {
					to++
				}
				l.counts[k]++
				l.mu.Unlock()
				if l.under.Send(to, link.Bulk, k.channel, nil, frame) {
					l.sent++
				}
			}
		}
		for to := range parley.ID(l.n) {
			if to != l.self {
				l.under.Flush(to)
			}
		}
		time.Sleep(pause)
	}
}

// besides makes a liar of a node before it starts. It lies on the given channels.
func besides(c *cluster.Config, self parley.ID, n int, seed uint64, channels ...uint32) *liar {
	l := &liar{
		r: rand.New(rand.NewPCG(seed, 11)), n: n, self: self, channels: channels,
		heard: make(map[wireKind][][]byte), counts: make(map[wireKind]int),
	}
	c.Test().Wrap = func(under link.Transport) link.Transport {
		l.under = under
		return mouth{under, l}
	}
	c.Test().Hear = func(_ parley.ID, channel uint32, b []byte) { _, _ = l.hear(channel, b) }
	return l
}
