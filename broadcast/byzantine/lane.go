package byzantine

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"parley"
)

// digest identifies a batch or a cut: SHA-256 of its bytes.
type digest [sha256.Size]byte

func digestOf(body []byte) digest { return sha256.Sum256(body) }

// The first byte of everything that has a digest, so that no batch is a cut.
const (
	aBatch = 1 + iota
	aCut
)

// tip names a batch of a lane: its number, from 1, and its digest. The zero tip is the beginning of a lane.
type tip struct {
	number uint64
	digest digest
}

const (
	mostNumber = 1 << 40 // greater than every number of a batch
	mostLife   = 1 << 63 // greater than every life
	overhead   = 5       // bytes of a request in a batch in addition to its own
	headBytes  = 80      // bytes of a batch that are not in requests or welcomes
	perBatch   = 1 << 10 // see cost
	perItem    = 64      // see cost
)

// batch is a list of requests of one source. The batches of a source form a chain.
type batch struct {
	tip
	before digest // of the batch before it in the chain
	life   uint64 // of its source
	items  int    // how many requests and welcomes it has
	body   []byte
}

// newBatch makes the batch that follows a tip in the lane of its source. Format: a type byte, the source and its life,
// the number, the digest of the batch before it, the number of requests, and each request with its length; then the
// number of welcomes, and each process with its admission.
func newBatch(source parley.ID, life uint64, after tip, requests [][]byte, welcomes []welcome) batch {
	size := headBytes + len(welcomes)*welcomeBytes
	for _, r := range requests {
		size += len(r) + 5
	}
	body := append(make([]byte, 0, size), aBatch)
	body = binary.AppendUvarint(body, uint64(source))
	body = binary.AppendUvarint(body, life)
	body = binary.AppendUvarint(body, after.number+1)
	body = append(body, after.digest[:]...)
	body = binary.AppendUvarint(body, uint64(len(requests)))
	for _, r := range requests {
		body = parley.AppendBytes(body, r)
	}
	body = binary.AppendUvarint(body, uint64(len(welcomes)))
	for _, w := range welcomes {
		body = binary.AppendUvarint(binary.AppendUvarint(body, uint64(w.who)), w.number)
		body = binary.AppendUvarint(body, w.name)
	}
	return batch{tip{after.number + 1, digestOf(body)}, after.digest, life, len(requests) + len(welcomes), body}
}

// cost is what a batch counts in a lane: its bytes, and fixed amounts for the work that each batch causes, and for the
// memory that each of its deliveries takes, however short they are.
func (b *batch) cost() int { return len(b.body) + perBatch + perItem*b.items }

// readBatch reads a batch of one of n processes, and its source.
func readBatch(body []byte, n int) (source parley.ID, b batch, ok bool) {
	r := parley.Reader{Rest: body}
	kind := r.Take(1)
	source, b.life, b.number, b.body = r.ID(n), r.Number(mostLife), r.Number(mostNumber), body
	copy(b.before[:], r.Take(uint64(len(b.before))))
	if r.Bad || kind[0] != aBatch || b.number == 0 {
		return 0, batch{}, false
	}
	if b.items = int(b.visit(n, func([]byte) {}, func(welcome) {})); b.items == 0 {
		return 0, batch{}, false
	}
	b.digest = digestOf(body)
	return source, b, true
}

// visit calls request and admit for each request and welcome of a batch, and returns how many there are. It returns 0
// if the batch cannot be read.
func (b *batch) visit(n int, request func([]byte), admit func(welcome)) uint64 {
	r := parley.Reader{Rest: b.body[1:]}
	_, _, _, _ = r.ID(n), r.Number(mostLife), r.Number(mostNumber), r.Take(uint64(len(b.before)))
	requests := r.Count()
	for range requests {
		if body := r.Bytes(); !r.Bad {
			request(body)
		}
	}
	welcomes := r.Count()
	for range welcomes {
		if w := (welcome{r.ID(n), admission{r.Number(mostLife), r.Number(mostLife)}}); !r.Bad {
			admit(w)
		}
	}
	if !r.Done() {
		return 0
	}
	return requests + welcomes
}

// lane is what a process holds of the batches of one source.
type lane struct {
	life     uint64  // how often its source was admitted: batches of other lives do not belong to the lane
	name     uint64  // of the life that was admitted last
	done     tip     // the last delivered batch
	requests uint64  // number of requests delivered
	base     tip     // the batch before the first one of the chain
	chain    []batch // the batches after base, unbroken, up to the last one held; done is base or among them
	loose    []batch // batches after done that are held, but not in the chain, by number: forks, or after a gap
	size     int     // the cost of all batches after done
}

// tip returns the last batch of the chain.
func (l *lane) tip() tip {
	if len(l.chain) == 0 {
		return l.base
	}
	return l.chain[len(l.chain)-1].tip
}

// at returns a batch that is held, or nil.
func (l *lane) at(t tip) *batch {
	if b := l.inChain(t); b != nil {
		return b
	}
	for i := l.firstLoose(t.number); i < len(l.loose) && l.loose[i].number == t.number; i++ {
		if l.loose[i].digest == t.digest {
			return &l.loose[i]
		}
	}
	return nil
}

// firstLoose returns the index of the first loose batch of a number, or of the place where it belongs.
func (l *lane) firstLoose(number uint64) int {
	i, _ := slices.BinarySearchFunc(l.loose, number, func(b batch, n uint64) int { return cmp.Compare(b.number, n) })
	return i
}

// numbered reports whether the lane holds a batch of this number.
func (l *lane) numbered(number uint64) bool {
	i := l.firstLoose(number)
	return number <= l.tip().number || i < len(l.loose) && l.loose[i].number == number
}

// add holds a batch, and extends the chain as far as possible.
func (l *lane) add(b batch) {
	l.size += b.cost()
	l.loose = slices.Insert(l.loose, l.firstLoose(b.number), b)
	for next := l.next(); next >= 0; next = l.next() {
		l.chain = append(l.chain, l.loose[next])
		l.loose = slices.Delete(l.loose, next, next+1)
	}
}

// next returns the index of a loose batch that follows the chain, or -1.
func (l *lane) next() int {
	end := l.tip()
	for i := l.firstLoose(end.number + 1); i < len(l.loose) && l.loose[i].number == end.number+1; i++ {
		if l.loose[i].before == end.digest {
			return i
		}
	}
	return -1
}

// follow walks from a tip back to done. It returns the first batch that is not held, if there is one. Otherwise it
// reports whether the tip leads to done exactly. A tip that is not after done does not.
func (l *lane) follow(t tip) (lack tip, leads bool) {
	if l.inChain(t) != nil && t.number > l.done.number {
		return tip{}, true
	}
	for t.number > l.done.number {
		b := l.at(t)
		if b == nil {
			return t, false
		}
		t = tip{t.number - 1, b.before}
	}
	return tip{}, t == l.done
}

// advance makes t, which leads to done, the last delivered batch, and calls deliver for each batch, oldest first.
func (l *lane) advance(t tip, deliver func(b *batch)) {
	if l.inChain(t) == nil { // the chain is another fork: take this one
		var fork []batch
		for x := t; x != l.done; {
			b := *l.at(x)
			fork = append(fork, b)
			x = tip{x.number - 1, b.before}
		}
		slices.Reverse(fork)
		l.chain = append(l.chain[:l.done.number-l.base.number], fork...)
	}
	list := l.pending()
	for i := range list[:t.number-l.done.number] {
		deliver(&list[i])
	}
	l.done = t
	l.tidy()
}

// pending returns the batches of the chain after done.
func (l *lane) pending() []batch { return l.chain[l.done.number-l.base.number:] }

// tidy drops loose batches that cannot be delivered any more, and counts the bytes again.
func (l *lane) tidy() {
	l.size = 0
	l.loose = slices.DeleteFunc(l.loose, func(b batch) bool { return b.number <= l.done.number || b.life < l.life })
	for _, list := range [][]batch{l.loose, l.pending()} {
		for _, b := range list {
			l.size += b.cost()
		}
	}
}

// drop forgets the delivered batches up to t, which is base or in the chain.
func (l *lane) drop(t tip) {
	l.chain = slices.Delete(l.chain, 0, int(t.number-l.base.number))
	l.base = t
}

// begin begins another life of the source. Batches of the old one that are not delivered are dropped.
func (l *lane) begin(life uint64) {
	l.life = life
	if old := slices.IndexFunc(l.pending(), func(b batch) bool { return b.life < life }); old >= 0 {
		l.chain = l.chain[:int(l.done.number-l.base.number)+old]
	}
	l.tidy()
}

// inChain returns a batch of the chain, or nil.
func (l *lane) inChain(t tip) *batch {
	if i := t.number - l.base.number - 1; i < uint64(len(l.chain)) && l.chain[i].digest == t.digest {
		return &l.chain[i]
	}
	return nil
}

// cut is a tip for each lane. A lane may have the zero tip.
type cut []tip

// encode writes a type byte, and for each lane the number and, if it is not 0, the digest.
func (c cut) encode() []byte {
	body := append(make([]byte, 0, 1+len(c)*40), aCut)
	for _, t := range c {
		if body = binary.AppendUvarint(body, t.number); t.number > 0 {
			body = append(body, t.digest[:]...)
		}
	}
	return body
}

// readCut reads a cut of n lanes.
func readCut(body []byte, n int) (cut, bool) {
	r := parley.Reader{Rest: body}
	if kind := r.Take(1); r.Bad || kind[0] != aCut {
		return nil, false
	}
	c := make(cut, n)
	for i := range c {
		if c[i].number = r.Number(mostNumber); c[i].number > 0 {
			copy(c[i].digest[:], r.Take(uint64(len(digest{}))))
		}
	}
	return c, r.Done()
}

func (l *lane) state(v *parley.Vars, n int) {
	parley.Num(v, "life", &l.life)
	parley.Num(v, "name of the life", &l.name)
	l.done.state(v, "done")
	l.base.state(v, "base")
	parley.Num(v, "delivered requests", &l.requests)
	for _, list := range []*[]batch{&l.chain, &l.loose} {
		parley.Slice(v, "batch", list, func(_ int, b *batch) {
			v.Bytes("bytes", &b.body)
			if v.Loading() {
				_, read, ok := readBatch(b.body, n)
				if *b = read; !ok {
					v.Fail()
				}
			}
		})
	}
	parley.Num(v, "cost after done", &l.size)
}

func (t *tip) state(v *parley.Vars, name string) {
	parley.Num(v, name, &t.number)
	id := t.digest[:]
	if t.number == 0 && t.digest == (digest{}) {
		id = nil
	}
	v.Bytes(name, &id)
	if v.Loading() {
		t.digest = digest{}
		copy(t.digest[:], id)
	}
}
