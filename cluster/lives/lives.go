// Package lives numbers the incarnations (starts) of a node, and remembers the incarnations of its peers. With these
// numbers, peers detect that a node has lost its data folder, or uses an old copy of the folder.
//
// # Decisions
//
// A node's store holds the number of its own incarnation, and the latest incarnation that it has seen of each peer.
// Motive: the store is the only durable format, so a node must check only this format for damage.
//
// A node reports to its peers how many records are on its disk. This number is its position. The node reports it when
// it connects (in its hello, the first message on a connection), and then once a second. A peer stores the latest
// incarnation and the highest position of the node. From then on, the peer refuses a folder with a lower position.
// Motive: an old copy of a folder looks like the original, but lacks promises that the node made later. Cost: one
// record a minute for each member. If all receivers of a position crash within a second, the position is lost.
//
// A peer also stores the certificate of the connection that reported a position. When this certificate is revoked,
// the peer drops the report. Motive: an attacker who held a node's key for a while must not exclude the node forever.
// Cost: if the only certificate of a node was revoked, peers trust the next report of the node without a check.
//
// A node writes the latest incarnation of a peer to its disk before it admits the peer. Motive: suppose that the
// number was only in memory. Then a restarted node would forget it. Together with a node that lost its folder, it
// could form a first view, and this view would lack acknowledged records. Cost: one sync for each incarnation of each
// peer. A node that starts for the first time knows no incarnations, so it cannot detect old ones.
package lives

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/cluster/link"
	"parley/cluster/store"
)

// Rejoined exceeds the number of every incarnation that did not begin with Rejoin.
const Rejoined = 1 << 42

// Book holds the incarnation of this node, and what the node knows about its peers' incarnations. The book is in the
// node's store. Otherwise a member that lost its folder would look new to nodes that have restarted since then, and
// together they would begin without acknowledged records.
type Book struct {
	store   *store.Store // nil in memory
	book    *store.Book
	own     uint64
	revoked func(serial string) bool

	held chan struct{} // a lock for writes to disk; a channel, so that time passes in synctest meanwhile

	mu    sync.Mutex
	seen  map[string][]sighting // by name; the one of the latest incarnation comes last
	moved bool                  // a position has grown since the last write
}

// sighting is what this node knows of the incarnations of a peer that used one certificate. It is dropped when
// the certificate is revoked.
type sighting struct {
	serial   string // of the certificate
	life     uint64 // the latest incarnation
	store    uint64 // number of its folder; 0 if it has none or did not report it
	position uint64 // highest known position of its disk
	began    uint64 // position at which the latest incarnation began
	refused  uint64 // number of a folder of which an old copy was refused: it has lost records
}

// sightings is how many certificates of a member are remembered.
const sightings = 4

// bookName is the name of the book in the store.
const bookName = "node"

// Open numbers this incarnation of the node in its store. The number is on disk before it is sent, because others
// refuse smaller numbers. The later a first incarnation begins, the smaller is its number. So if a node lost its
// folder and nobody noticed, the others refuse the node, because it does not know its earlier promises. With rejoin,
// the number exceeds all earlier numbers, and the node joins as a new member.
func Open(s *store.Store, rejoin bool, revoked func(string) bool) (l *Book, again bool, err error) {
	l = &Book{store: s, held: make(chan struct{}, 1), seen: make(map[string][]sighting), revoked: revoked}
	var state []byte
	if l.book, state, _, err = s.Open(bookName); err != nil {
		return nil, false, err
	}
	again = state != nil
	now := uint64(time.Now().UnixMilli())
	switch {
	case again:
		err = l.parse(string(state))
	case rejoin:
		l.own = Rejoined + now
	default:
		l.own = Rejoined - now
	}
	if err != nil {
		return nil, false, err
	}
	l.own++
	err = l.save()
	return l, again, err
}

// InMemory returns the book of a node without a folder. Its incarnations are numbered by the clock.
func InMemory(revoked func(string) bool) *Book {
	return &Book{
		own: uint64(time.Now().UnixNano()), held: make(chan struct{}, 1), seen: make(map[string][]sighting), revoked: revoked,
	}
}

// leeway is how far the clocks of two nodes may differ.
const leeway = 24 * time.Hour

// Latest returns the highest number that an incarnation of a member can have now. A node that claimed a higher number
// would block all its later incarnations.
func Latest(durable bool) uint64 {
	now := time.Now().Add(leeway)
	if durable {
		return Rejoined + uint64(now.UnixMilli())
	}
	return uint64(now.UnixNano()) // because some nodes may have no folder
}

// Own returns the number of this incarnation.
func (l *Book) Own() uint64 { return l.own }

// parse reads a line with the own number, and one for each sighting of a member.
func (l *Book) parse(text string) error {
	for line := range strings.Lines(text) {
		var name string
		var s sighting
		if _, err := fmt.Sscanf(line, "own %d\n", &l.own); err == nil {
			continue
		}
		if _, err := fmt.Sscanf(line, "saw %q %q %d %d %d %d %d\n",
			&name, &s.serial, &s.life, &s.store, &s.position, &s.began, &s.refused); err != nil {
			if _, err := fmt.Sscanf(line, "seen %d %q\n", &s.life, &name); err != nil { // without folders
				return fmt.Errorf("%q is not a valid line of the file of incarnations", line)
			}
		}
		l.seen[name] = append(l.seen[name], s)
	}
	return nil
}

// save writes the book, and returns when it is on disk. held must be taken, unless no other goroutine has the
// book.
func (l *Book) save() error {
	if l.store == nil {
		return nil
	}
	l.mu.Lock()
	var text strings.Builder
	fmt.Fprintf(&text, "own %d\n", l.own)
	for _, name := range slices.Sorted(maps.Keys(l.seen)) {
		for _, s := range l.seen[name] {
			fmt.Fprintf(&text, "saw %q %q %d %d %d %d %d\n",
				name, s.serial, s.life, s.store, s.position, s.began, s.refused)
		}
	}
	l.moved = false
	l.mu.Unlock()
	return l.store.Wait(l.book.Replace([]byte(text.String())))
}

// Keep writes the book if a position has grown.
func (l *Book) Keep() error {
	l.held <- struct{}{}
	defer func() { <-l.held }()
	l.mu.Lock()
	moved := l.moved
	l.mu.Unlock()
	if !moved {
		return nil
	}
	return l.save()
}

// Judge returns why an incarnation of a member is refused, or nil. New knowledge is on disk before it returns. A
// folder that has been refused once is refused forever. Otherwise its node could write records until its position is
// large enough again.
func (l *Book) Judge(name string, h link.Hello, serial string, latest uint64) *link.Down {
	l.held <- struct{}{}
	defer func() { <-l.held }()
	if h.Incarnation > latest {
		return &link.Down{Reason: link.FutureLife}
	}
	why, changed := l.compare(name, h, serial)
	if changed {
		if err := l.save(); err != nil {
			return &link.Down{Reason: link.Broken, Err: err}
		}
	}
	if why != 0 {
		return &link.Down{Reason: why}
	}
	return nil
}

// compare compares an incarnation of a member with what is known, and records what is new. If that cannot be
// written, the store stops the node.
func (l *Book) compare(name string, h link.Hello, serial string) (why link.Reason, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.DeleteFunc(l.seen[name], func(s sighting) bool { return s.serial != "" && l.revoked(s.serial) })
	defer func() { l.seen[name] = all }()
	var last sighting
	if len(all) > 0 {
		last = all[len(all)-1]
	}
	had := h.Disk.Began
	if h.Incarnation == last.life {
		had = h.Disk.Position
	}
	// A copy may have reached the same incarnation number.
	other := h.Incarnation == last.life && h.Disk.Began != last.began
	known := h.Disk.Store != 0 && last.store != 0 // false if a node used an earlier wire version
	switch {
	case h.Disk.Store != 0 && slices.ContainsFunc(all, func(s sighting) bool { return s.refused == h.Disk.Store }):
		return link.Behind, false
	case h.Incarnation < last.life, h.Incarnation == last.life && known && last.store != h.Disk.Store:
		return link.OldLife, false
	case known && last.store == h.Disk.Store && (had < last.position || other):
		all[len(all)-1].refused = h.Disk.Store
		return link.Behind, true
	case h.Incarnation == last.life && serial == last.serial && (known || h.Disk.Store == 0):
		return 0, false
	}
	all = slices.DeleteFunc(all, func(s sighting) bool { return s.serial == serial })
	next := sighting{serial, h.Incarnation, h.Disk.Store, h.Disk.Position, h.Disk.Began, last.refused}
	if next.store == 0 { // it may report it again
		next.store, next.position, next.began = last.store, last.position, last.began
	}
	all = append(all, next)
	all = all[max(0, len(all)-sightings):]
	return 0, true
}

// Told records the current position of a member's disk. It ignores reports of earlier incarnations, which may have
// had another folder.
func (l *Book) Told(name string, life, position uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.seen[name]
	if len(all) == 0 {
		return
	}
	if s := &all[len(all)-1]; s.store != 0 && s.life == life && position > s.position {
		s.position, l.moved = position, true
	}
}

// Forget deletes what is known about a member.
func (l *Book) Forget(name string) error {
	l.held <- struct{}{}
	defer func() { <-l.held }()
	l.mu.Lock()
	delete(l.seen, name)
	l.mu.Unlock()
	return l.save()
}
