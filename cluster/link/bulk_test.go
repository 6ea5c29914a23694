package link

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// unpacked reads the frames in blocks, like a peer. It returns the channel and the bytes of each.
func unpacked(t *testing.T, blocks [][]byte) (channels []uint32, frames [][]byte) {
	t.Helper()
	r := newReader(64 << 20)
	for _, b := range blocks {
		for len(b) > 0 {
			n := copy(r.free(), b)
			r.end, b = r.end+n, b[n:]
			for {
				f, why := r.next()
				if why != 0 {
					t.Fatal(why)
				}
				if f == nil {
					break
				}
				kind, rest := f[0], f[1:]
				switch kind {
				case typePart:
					why = r.part(rest)
				case typeBulk:
					rest, why = r.whole(rest)
				}
				if why != 0 {
					t.Fatal(why)
				}
				if kind == typePart {
					continue
				}
				channel, rest, why := r.open(rest)
				if why != 0 {
					t.Fatal(why)
				}
				channels, frames = append(channels, channel), append(frames, bytes.Clone(rest))
			}
		}
	}
	return channels, frames
}

// Short and long frames of a channel arrive whole and in the order in which they were sent, whatever other
// channels send and whenever blocks are written.
func TestBulkKeepsTheOrderOfAChannel(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var q bulk
		var blocks [][]byte
		take := func() {
			b := q.take()
			blocks = append(blocks, bytes.Clone(b.b))
			b.release()
		}
		sent := make(map[uint32][][]byte)
		for range 60 {
			channel := uint32(r.IntN(4))
			body := make([]byte, 8+r.IntN(100))
			switch r.IntN(4) {
			case 0:
				body = make([]byte, fill-20+r.IntN(40)) // about the size of a block
			case 1:
				body = make([]byte, fill+r.IntN(4*fill))
			}
			binary.BigEndian.PutUint64(body, r.Uint64())
			q.data(channel, []byte{byte(channel)}, body)
			sent[channel] = append(sent[channel], append([]byte{byte(channel)}, body...))
			for q.waiting() > 0 && r.IntN(2) == 0 {
				take()
			}
		}
		for q.waiting() > 0 {
			take()
		}
		channels, frames := unpacked(t, blocks)
		for i, channel := range channels {
			if len(sent[channel]) == 0 || !bytes.Equal(frames[i], sent[channel][0]) {
				t.Fatalf("seed %d: frame %d, of channel %d, is not the next one", seed, i, channel)
			}
			sent[channel] = sent[channel][1:]
		}
		if len(frames) != 60 || len(q.lines) > 0 || q.bytes != 0 {
			t.Fatalf("seed %d: %d frames of 60; %d lines with %d bytes are left", seed, len(frames), len(q.lines), q.bytes)
		}
	}
}

// A frame does not wait for long frames of other channels: a short frame is written after one block of them, and
// one behind a long frame of its own channel before theirs end. Long frames make progress, however many short
// ones there are.
func TestBulkIsShared(t *testing.T) {
	var q bulk
	long := make([]byte, 8<<20)
	for channel := range uint32(3) {
		q.data(channel, nil, long)
		q.data(channel, nil, []byte("behind"))
	}
	q.data(9, nil, []byte("short"))
	var blocks [][]byte
	ended := 0 // blocks until a channel's own short frame
	for k := 0; q.waiting() > 0; k++ {
		b := q.take()
		blocks = append(blocks, bytes.Clone(b.b))
		switch {
		case k == 1 && !bytes.Contains(b.b, []byte("short")) && !bytes.Contains(blocks[0], []byte("short")):
			t.Error("a short frame waits for more than a block of others")
		case ended == 0 && bytes.Contains(b.b, []byte("behind")):
			ended = k
		}
		b.release()
	}
	if most := 8<<20/fill + 8; ended == 0 || ended > most {
		t.Errorf("what is behind a long frame is in block %d, want %d at most", ended, most)
	}
	if _, frames := unpacked(t, blocks); len(frames) != 7 {
		t.Errorf("%d frames of 7", len(frames))
	}
	q.data(0, nil, long)
	for range 1000 {
		q.data(9, nil, make([]byte, 60<<10))
	}
	parts := 0
	for range 100 {
		b := q.take()
		if b.part {
			parts++
		}
		b.release()
	}
	if parts < 45 {
		t.Errorf("%d of 100 blocks are of the long frame", parts)
	}
	if lost := q.drop(); lost == 0 || q.waiting() != 0 {
		t.Errorf("%d frames are lost, %d bytes left", lost, q.waiting())
	}
}
