// Package lives keeps the number of this life of a node, and what it knows of the lives of the others.
//
// # Decisions
//
// A node's incarnation is a record like others. So is what it has seen of each peer. Motive: one format
// to damage, and to check. Cost: folders of earlier versions are refused, and a cluster of them begins
// anew.
//
// A node tells where its disk stands, and is believed by certificate. Hellos (version 2 of the wire)
// carry the number of the folder, the position at which this life began and the present one; the present
// one is told every second. Peers keep the greatest beside the newest life, each by the certificate that
// it came with, and refuse a folder that has less, for good. Motive: an old copy of a folder looks like
// the node that it was, and forgets what it promised; and who held a key for a while must not shut out
// its owner for ever, so what it said goes when its certificate is revoked. Cost: a record a minute and
// member; a node whose only certificate is revoked is believed once as it comes; and what is told in the
// last second before a crash of all who heard it is forgotten.
//
// A node remembers the newest life of every other one on its disk. That is written before the peer is
// let in. Motive: from memory alone a node that lost its folder and one that was restarted could form a
// first view, without what was acknowledged. Cost: one sync a life and peer; a node that has never been
// up cannot know.
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

// Rejoined is greater than the number of any life that did not begin as one of a node that had lost what it had.
const Rejoined = 1 << 42

// Book is the number of this life of the node, and what it knows of the lives of the others. It is in the
// node's store: otherwise a member that has lost its folder would be taken for a new one by those that have been
// started again since, and together they would begin without what it had acknowledged.
type Book struct {
	store   *store.Store // nil in memory
	book    *store.Book
	own     uint64
	revoked func(serial string) bool

	held chan struct{} // a lock, held while the disk is written: a channel, so that time passes for tests meanwhile

	mu    sync.Mutex
	seen  map[string][]sighting // by name; the one of the newest life comes last
	moved bool                  // since they were written: a position has grown
}

// sighting is what this node knows of the lives of another one that came with one certificate. A certificate that is
// revoked takes with it what was believed because of it.
type sighting struct {
	serial   string // of the certificate
	life     uint64 // the newest
	store    uint64 // the number of its folder; 0: it has none, or did not say
	position uint64 // the greatest that its disk is known to have had
	began    uint64 // the one at which its newest life began
	refused  uint64 // the number of a folder of which an old copy came: it has lost what it had
}

// sightings is how many certificates of a member are remembered.
const sightings = 4

// bookName is the name of the book in the store.
const bookName = "node"

// Open counts a life of the node in its store. Its number is on the disk before anybody hears of it: others refuse
// a node that comes with an earlier one. That of a first life is the smaller the later it begins, so that a node
// that has lost its folder unnoticed is refused, because it knows nothing of what it has promised; but if the node says
// so and is to join as a new one, its number is greater than all before.
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

// InMemory returns what a node without a folder begins with. Its lives are numbered by the clock.
func InMemory(revoked func(string) bool) *Book {
	return &Book{
		own: uint64(time.Now().UnixNano()), held: make(chan struct{}, 1), seen: make(map[string][]sighting), revoked: revoked,
	}
}

// leeway is how far the clocks of two nodes may differ.
const leeway = 24 * time.Hour

// Latest is the greatest number that a life of a member can have: none begins later than now. Whoever claims
// more would shut out all later lives.
func Latest(durable bool) uint64 {
	now := time.Now().Add(leeway)
	if durable {
		return Rejoined + uint64(now.UnixMilli())
	}
	return uint64(now.UnixNano()) // some nodes may have no folder
}

// Own returns the number of this life.
func (l *Book) Own() uint64 { return l.own }

// parse reads them: a line of the own number, and one for each sighting of a member.
func (l *Book) parse(text string) error {
	for line := range strings.Lines(text) {
		var name string
		var s sighting
		if _, err := fmt.Sscanf(line, "own %d\n", &l.own); err == nil {
			continue
		}
		if _, err := fmt.Sscanf(line, "saw %q %q %d %d %d %d %d\n",
			&name, &s.serial, &s.life, &s.store, &s.position, &s.began, &s.refused); err != nil {
			if _, err := fmt.Sscanf(line, "seen %d %q\n", &s.life, &name); err != nil { // as it was before folders were known
				return fmt.Errorf("%q is no line of the book of incarnations", line)
			}
		}
		l.seen[name] = append(l.seen[name], s)
	}
	return nil
}

// save returns when they are on the disk. The lock held is held, or nobody else has them.
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

// Keep has positions written that have grown.
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

// Judge tells why a life of a member is not let in, or nil. What is new of it is on the disk first. A folder that has
// been refused once is refused for good: its owner would else only have to wait until it has written as much as is
// missing.
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

// compare compares a life of a member with what is known, and takes in what is new. What is not on the disk in the
// end, because that failed, stops the node.
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
	// A copy may have come to the same number of a life.
	other := h.Incarnation == last.life && h.Disk.Began != last.began
	known := h.Disk.Store != 0 && last.store != 0 // not if one of them spoke an earlier version of the wire
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
	if next.store == 0 { // it may say so again
		next.store, next.position, next.began = last.store, last.position, last.began
	}
	all = append(all, next)
	all = all[max(0, len(all)-sightings):]
	return 0, true
}

// Told takes the position that a member's disk has now, in a life. What a life before says late is of its own folder.
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

// Forget forgets what is known of a member.
func (l *Book) Forget(name string) error {
	l.held <- struct{}{}
	defer func() { <-l.held }()
	l.mu.Lock()
	delete(l.seen, name)
	l.mu.Unlock()
	return l.save()
}
