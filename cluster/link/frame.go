package link

import (
	"encoding/binary"
	"slices"
	"sync"

	"parley"
)

// A frame on the stream: its length (4 bytes, big endian, of what follows), its type, and its content. The
// content of data is the channel as the shortest varint, followed by the host's bytes. Frames longer than a block
// are split into parts, so that others need not wait for the whole frame, and memory is allocated as bytes
// arrive. Parts hold the bytes in order; the last ones are in a bulk frame. Frames between parts have the type of
// urgent frames, whatever their class.
const (
	typeHello  byte = iota + 1 // see hello
	typeBye                    // reason (1)
	typePing                   // 8 bytes to be returned
	typePong                   // the 8 bytes
	typeUrgent                 // channel, bytes
	typeBulk                   // channel, bytes
	typePart                   // of a frame that the next bulk frame ends
)

const (
	header    = 4
	fill      = 64 << 10    // bytes of a block before the next one is begun
	blockSize = fill + 1024 // room for a frame of 64 KiB with its header
	longest   = blockSize - header
)

// block is a sequence of whole frames, written at once.
type block struct {
	b      []byte
	frames int
	part   bool   // it ends within a long frame
	after  uint64 // for long frames: the number of blocks of short ones that come before it
}

var blocks = sync.Pool{New: func() any { return &block{b: make([]byte, 0, blockSize)} }}

func (b *block) release() {
	b.b, b.frames, b.part, b.after = b.b[:0], 0, false, 0
	blocks.Put(b)
}

// queue is what waits for a peer in one class.
type queue struct {
	blocks []*block
	bytes  int
	taken  uint64 // number of blocks taken
}

// room returns the last block if it has room for n more bytes, otherwise a new one.
func (q *queue) room(n int) *block {
	if i := len(q.blocks) - 1; i >= 0 && len(q.blocks[i].b)+n <= fill {
		return q.blocks[i]
	}
	b := blocks.Get().(*block)
	q.blocks = append(q.blocks, b)
	return b
}

// take removes the first block.
func (q *queue) take() *block {
	b := q.blocks[0]
	q.blocks = slices.Delete(q.blocks, 0, 1)
	q.bytes -= len(b.b)
	q.taken++
	return b
}

// bulk is what waits for a peer in class Bulk: short frames, and separately, with a line for each channel, long
// ones. A frame never waits for all long frames of other channels, only for the one that is being written. Frames
// of a channel keep their order: frames after a long one wait in its line, and a long one waits for all blocks of
// short ones that were queued before it.
type bulk struct {
	short queue
	lines []*line // none is empty; the first one is served next
	bytes int     // in all lines
	turn  bool    // a line is served next
}

// line is what waits for one channel behind a long frame, beginning with that frame.
type line struct {
	channel uint32
	queue
}

// data appends a frame.
func (q *bulk) data(channel uint32, head, body []byte) {
	i := slices.IndexFunc(q.lines, func(l *line) bool { return l.channel == channel })
	if i < 0 {
		if header+1+uvarintLen(channel)+len(head)+len(body) <= blockSize {
			q.short.data(typeUrgent, channel, head, body)
			return
		}
		i, q.lines = len(q.lines), append(q.lines, &line{channel: channel})
	}
	l := q.lines[i]
	first, before := max(len(l.blocks)-1, 0), l.queue.bytes // the last block may get part of it
	l.data(typeBulk, channel, head, body)
	q.bytes += l.queue.bytes - before
	for _, b := range l.blocks[first:] {
		b.after = q.short.taken + uint64(len(q.short.blocks))
	}
}

// take removes the next block: alternately of short and of long frames, if there are both, and after a long frame
// of the next line.
func (q *bulk) take() *block {
	if len(q.lines) == 0 || len(q.short.blocks) > 0 && (!q.turn || q.lines[0].blocks[0].after > q.short.taken) {
		q.turn = true
		return q.short.take()
	}
	q.turn = false
	l := q.lines[0]
	b := l.take()
	if q.bytes -= len(b.b); !b.part {
		if q.lines = q.lines[1:]; len(l.blocks) > 0 {
			q.lines = append(q.lines, l)
		}
	}
	return b
}

func (q *bulk) waiting() int { return q.short.bytes + q.bytes }

func (q *bulk) drop() (frames int) {
	frames = q.short.drop()
	for _, l := range q.lines {
		frames += l.drop()
	}
	q.lines, q.bytes = nil, 0
	return frames
}

// add appends a frame of a type without a channel.
func (q *queue) add(kind byte, body ...byte) {
	n := header + 1 + len(body)
	b := q.room(n)
	b.b = append(appendHeader(b.b, kind, 1+len(body)), body...)
	b.frames++
	q.bytes += n
}

// data appends a frame, in parts if it is long.
func (q *queue) data(kind byte, channel uint32, head, body []byte) {
	n := header + 1 + uvarintLen(channel) + len(head) + len(body)
	if n > blockSize {
		q.parts(channel, head, body)
		return
	}
	b := q.room(n)
	buf := binary.AppendUvarint(appendHeader(b.b, kind, n-header), uint64(channel))
	b.b = append(append(buf, head...), body...)
	b.frames++
	q.bytes += n
}

// parts appends a long bulk frame.
func (q *queue) parts(channel uint32, head, body []byte) {
	var first [binary.MaxVarintLen32]byte
	rest := [...][]byte{first[:binary.PutUvarint(first[:], uint64(channel))], head, body}
	for left := len(rest[0]) + len(head) + len(body); left > 0; {
		kind, n := typePart, fill-header-1
		if n >= left {
			kind, n = typeBulk, left
		}
		left -= n
		b := q.room(header + 1 + n)
		b.b = appendHeader(b.b, kind, 1+n)
		b.part = kind == typePart
		b.frames++
		q.bytes += header + 1 + n
		for i := range rest {
			k := min(n, len(rest[i]))
			b.b = append(b.b, rest[i][:k]...)
			rest[i], n = rest[i][k:], n-k
		}
	}
}

// drop releases all blocks, and returns the number of lost frames.
func (q *queue) drop() (frames int) {
	for _, b := range q.blocks {
		frames += b.frames
		b.release()
	}
	q.blocks, q.bytes = nil, 0
	return frames
}

func appendHeader(b []byte, kind byte, n int) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(n)), kind)
}

func uvarintLen(x uint32) int {
	n := 1
	for ; x >= 0x80; x >>= 7 {
		n++
	}
	return n
}

// reader splits the bytes of a connection into frames.
type reader struct {
	buf        []byte
	start, end int    // unused bytes in buf
	long       []byte // parts of the current long frame
	limit      int    // bytes of a frame, including the channel
}

func newReader(limit int) *reader {
	return &reader{buf: make([]byte, 2*blockSize), limit: limit + binary.MaxVarintLen32}
}

// free returns the space for the next bytes: never less than the rest of the current frame.
func (r *reader) free() []byte {
	if r.start == r.end {
		r.start, r.end = 0, 0
	} else if len(r.buf)-r.start < blockSize {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	}
	return r.buf[r.end:]
}

// next returns the next whole frame, beginning with its type, or nil. It is valid until free.
func (r *reader) next() ([]byte, Reason) {
	b := r.buf[r.start:r.end]
	if len(b) < header {
		return nil, 0
	}
	n := binary.BigEndian.Uint32(b)
	switch {
	case n == 0:
		return nil, EmptyFrame
	case n > uint32(min(longest, 1+r.limit)):
		return nil, LongFrame
	case len(b)-header < int(n):
		return nil, 0
	}
	r.start += header + int(n)
	return b[header : header+n], 0
}

// part appends a part of a long frame.
func (r *reader) part(b []byte) Reason {
	switch {
	case len(b) == 0:
		return EmptyFrame
	case len(r.long)+len(b) > r.limit:
		return LongFrame
	}
	r.long = append(r.long, b...)
	return 0
}

// whole returns a frame that may have been split into parts.
func (r *reader) whole(b []byte) ([]byte, Reason) {
	if len(r.long) == 0 {
		return b, 0
	}
	why := r.part(b)
	b = r.long
	r.long = r.long[:0]
	if cap(b) > 1<<20 {
		r.long = nil
	}
	return b, why
}

// open parses the channel of a data frame, and returns the rest.
func (r *reader) open(b []byte) (channel uint32, rest []byte, why Reason) {
	n, rest, err := parley.ReadUvarint(b, 1<<32-1)
	switch {
	case err != nil:
		return 0, nil, Malformed
	case len(rest) > r.limit-binary.MaxVarintLen32:
		return 0, nil, LongFrame
	}
	return uint32(n), rest, 0
}
