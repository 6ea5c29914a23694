package cluster

import (
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/cluster/cert"
	"parley/cluster/link"
	"parley/cluster/store"
)

// rejoined is greater than the number of any life that did not begin with Config.Rejoin.
const rejoined = 1 << 42

// lives are the number of this life of the node, and what it knows of the lives of the others. They are in the
// node's store: otherwise a member that has lost its folder would be taken for a new one by those that have been
// started again since, and together they would begin without what it had acknowledged.
type lives struct {
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

// livesBook is the name of their book.
const livesBook = "node"

// newLives counts a life of the node in its store. Its number is on the disk before anybody hears of it: others refuse
// a node that comes with an earlier one. That of a first life is the smaller the later it begins, so that a node
// that has lost its folder unnoticed is refused, because it knows nothing of what it has promised; but if the node says
// so and is to join as a new one, its number is greater than all before.
func newLives(s *store.Store, rejoin bool, revoked func(string) bool) (l *lives, again bool, err error) {
	l = &lives{store: s, held: make(chan struct{}, 1), seen: make(map[string][]sighting), revoked: revoked}
	var state []byte
	if l.book, state, _, err = s.Open(livesBook); err != nil {
		return nil, false, err
	}
	again = state != nil
	now := uint64(time.Now().UnixMilli())
	switch {
	case again:
		err = l.parse(string(state))
	case rejoin:
		l.own = rejoined + now
	default:
		l.own = rejoined - now
	}
	if err != nil {
		return nil, false, err
	}
	l.own++
	err = l.save()
	return l, again, err
}

// livesInMemory returns what a node without a folder begins with. Its lives are numbered by the clock.
func livesInMemory(revoked func(string) bool) *lives {
	return &lives{
		own: uint64(time.Now().UnixNano()), held: make(chan struct{}, 1), seen: make(map[string][]sighting), revoked: revoked,
	}
}

// leeway is how far the clocks of two nodes may differ.
const leeway = 24 * time.Hour

// latestLife is the greatest number that a life of a member can have: none begins later than now. Whoever claims
// more would shut out all later lives.
func (c Config) latestLife() uint64 {
	now := time.Now().Add(leeway)
	if c.Durable {
		return rejoined + uint64(now.UnixMilli())
	}
	return uint64(now.UnixNano()) // some nodes may have no folder
}

// parse reads them: a line of the own number, and one for each sighting of a member.
func (l *lives) parse(text string) error {
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
func (l *lives) save() error {
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

// keep has positions written that have grown.
func (l *lives) keep() error {
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

// judge tells why a life of a member is not let in, or nil. What is new of it is on the disk first. A folder that has
// been refused once is refused for good: its owner would else only have to wait until it has written as much as is
// missing.
func (l *lives) judge(name string, h link.Hello, serial string, latest uint64) *link.Down {
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
func (l *lives) compare(name string, h link.Hello, serial string) (why link.Reason, changed bool) {
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

// told takes the position that a member's disk has now, in a life. What a life before says late is of its own folder.
func (l *lives) told(name string, life, position uint64) {
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

// forget forgets what is known of a member.
func (l *lives) forget(name string) error {
	l.held <- struct{}{}
	defer func() { <-l.held }()
	l.mu.Lock()
	delete(l.seen, name)
	l.mu.Unlock()
	return l.save()
}

// judge tells why a life of another node is not let in.
func (n *Node) judge(id parley.ID, h link.Hello, leaf *x509.Certificate) *link.Down {
	return n.lives.judge(n.c.Members[id].Name, h, cert.Serial(leaf), n.c.latestLife())
}

// diskEvery is how often a node tells the others where its disk stands, and rememberEvery how often it writes down
// what they told; it also does so when a connection has ended.
const (
	diskEvery     = time.Second
	rememberEvery = time.Minute
)

// stand tells the others where this node's disk stands, and has what they tell remembered, until the node ends. A node
// that is refused now stops.
func (n *Node) stand() {
	beat := time.NewTicker(diskEvery)
	defer beat.Stop()
	for beats := 1; ; beats++ {
		var remember bool
		select {
		case <-n.stood.end:
			return
		case <-n.stood.parted:
			remember = true
		case <-beat.C:
			for id := range parley.ID(len(n.c.Members)) {
				if id != n.k.Self {
					n.tellDisk(id)
				}
			}
			if _, refusing := n.others(); refusing.Len() > n.c.M { // who was not there when this node began
				n.broken(ErrForgotten)
				return
			}
			remember = beats%int(rememberEvery/diskEvery) == 0
		}
		if remember {
			_ = n.lives.keep() // a disk that fails stops the node by itself
		}
	}
}

// tellDisk tells another node where this one's disk stands: by it the other one also knows that it was let in.
func (n *Node) tellDisk(to parley.ID) {
	var position uint64
	if n.k.Store != nil {
		position = n.k.Store.Position()
	}
	n.say(to, parley.Msg{Kind: diskTold, Seq: n.lives.own, Value: position})
}
