package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"parley"
	"parley/cluster/disk"
)

// A log begins with a header of 64 bytes; batches follow, each with one header of 44 bytes and its records.
// Numbers are big endian, checksums CRC-32C.
//
//	file header   magic 12, version 4, store 8, log 8, before 8, size 8, kind 4, zero 8, checksum 4
//	batch header  magic 4, length 4, records 4, number 8, chain 4, payload's checksum 4, zero 4, store 8, checksum 4
//	record        length, kind 1, name's length 1, name, path, body    (length and path are varints)
//
// A batch is written and synced before the next one: a whole batch proves that all batches before it were durable.
// Its chain is the checksum of the header before it, so that no batch can be missing or from another file.
const (
	version      = 1
	fileMagic    = "parley store"
	fileHeader   = 64
	batchMagic   = "\xb1PLB"
	batchHeader  = 44
	recordKind   = 'r'
	replacesKind = 's'

	logKind  = 1
	baseKind = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// header is the header of a file.
type header struct {
	kind   uint32
	store  uint64
	number uint64 // of the file
	before uint64 // of the last record before the file; of a base, of the last one it covers
	size   int64  // reserved bytes
}

func (h header) encode() []byte {
	b := append(make([]byte, 0, fileHeader), fileMagic...)
	b = binary.BigEndian.AppendUint32(b, version)
	b = binary.BigEndian.AppendUint64(b, h.store)
	b = binary.BigEndian.AppendUint64(b, h.number)
	b = binary.BigEndian.AppendUint64(b, h.before)
	b = binary.BigEndian.AppendUint64(b, uint64(h.size))
	b = binary.BigEndian.AppendUint32(b, h.kind)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	return binary.BigEndian.AppendUint32(b, checksum(b))
}

// parseHeader parses the header of a file, and returns what is wrong with it.
func parseHeader(b []byte) (h header, wrong string) {
	switch {
	case len(b) < fileHeader:
		return h, "the header is cut off"
	case binary.BigEndian.Uint32(b[fileHeader-4:]) != checksum(b[:fileHeader-4]), string(b[:len(fileMagic)]) != fileMagic:
		return h, "the header's checksum does not match"
	}
	b = b[len(fileMagic):]
	if v := binary.BigEndian.Uint32(b); v != version {
		return h, fmt.Sprintf("the format is %d, and this program knows %d", v, version)
	}
	return header{
		kind: binary.BigEndian.Uint32(b[36:]), store: binary.BigEndian.Uint64(b[4:]), number: binary.BigEndian.Uint64(b[12:]),
		before: binary.BigEndian.Uint64(b[20:]), size: int64(binary.BigEndian.Uint64(b[28:])),
	}, ""
}

// batch is the header of a batch.
type batch struct {
	length  uint32 // of the records in bytes
	records uint32
	number  uint64 // of the last record
	chain   uint32
	payload uint32 // checksum
	store   uint64
}

// seal writes the header of a batch into the space left for it at the start of b, and returns the chain for
// the next one.
func seal(b []byte, records int, number uint64, chain uint32, store uint64) uint32 {
	h, payload := b[:batchHeader], b[batchHeader:]
	copy(h, batchMagic)
	binary.BigEndian.PutUint32(h[4:], uint32(len(payload)))
	binary.BigEndian.PutUint32(h[8:], uint32(records))
	binary.BigEndian.PutUint64(h[12:], number)
	binary.BigEndian.PutUint32(h[20:], chain)
	binary.BigEndian.PutUint32(h[24:], checksum(payload))
	binary.BigEndian.PutUint32(h[28:], 0)
	binary.BigEndian.PutUint64(h[32:], store)
	sum := checksum(h[:batchHeader-4])
	binary.BigEndian.PutUint32(h[batchHeader-4:], sum)
	return sum
}

// parseBatch parses the header of a batch; ok reports whether it is one.
func parseBatch(b []byte) (h batch, sum uint32, ok bool) {
	sum = binary.BigEndian.Uint32(b[batchHeader-4:])
	if string(b[:len(batchMagic)]) != batchMagic || sum != checksum(b[:batchHeader-4]) {
		return h, 0, false
	}
	return batch{
		length: binary.BigEndian.Uint32(b[4:]), records: binary.BigEndian.Uint32(b[8:]),
		number: binary.BigEndian.Uint64(b[12:]), chain: binary.BigEndian.Uint32(b[20:]),
		payload: binary.BigEndian.Uint32(b[24:]), store: binary.BigEndian.Uint64(b[32:]),
	}, sum, true
}

// appendRecord appends an encoded record.
func appendRecord(b []byte, kind byte, name string, path parley.Path, body []byte) []byte {
	var p [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(p[:], uint64(path))
	b = binary.AppendUvarint(b, uint64(2+len(name)+n+len(body)))
	b = append(append(b, kind, byte(len(name))), name...)
	return append(append(b, p[:n]...), body...)
}

// entry is a record in a file. Its bytes are valid only during a call.
type entry struct {
	number uint64 // among all records; in a base, of the last record that the base covers
	kind   byte
	name   []byte
	path   parley.Path
	body   []byte
	raw    []byte // the whole encoded record
}

var errRecord = errors.New("a record cannot be read")

// nextEntry parses the first record of b, and returns the rest.
func nextEntry(b []byte) (e entry, rest []byte, err error) {
	n, used := binary.Uvarint(b)
	if used <= 0 || n < 2 || n > uint64(len(b)-used) {
		return e, nil, errRecord
	}
	e.raw, rest = b[:used+int(n)], b[used+int(n):]
	in := e.raw[used:]
	e.kind = in[0]
	named := int(in[1])
	if in = in[2:]; named == 0 || named > len(in) || e.kind != recordKind && e.kind != replacesKind {
		return e, nil, errRecord
	}
	e.name, in = in[:named], in[named:]
	path, used := binary.Uvarint(in)
	if used <= 0 {
		return e, nil, errRecord
	}
	e.path, e.body = parley.Path(path), in[used:]
	return e, rest, nil
}

// place is a position up to which a file has been read or written.
type place struct {
	offset int64
	number uint64 // of the last record
	chain  uint32
}

// reading reads the batches of a file.
type reading struct {
	f   disk.File
	h   header
	end int64 // the end of the contents
	at  place
	buf []byte
}

// read begins to read a file, and checks its header against the expected values.
func read(f disk.File, kind uint32, store, number uint64, end int64) (r *reading, wrong string, err error) {
	b := make([]byte, fileHeader)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, "", err
	}
	h, wrong := parseHeader(b[:n])
	switch {
	case wrong != "":
		return nil, wrong, nil
	case h.store != store:
		return nil, "it belongs to another store", nil
	case h.number != number || h.kind != kind:
		return nil, "it is another file of this store", nil
	}
	return &reading{f: f, h: h, end: end, at: place{fileHeader, h.before, checksum(b)}}, "", nil
}

// next reads one batch, and calls each with its records. If there is no whole batch, it returns what is
// wrong and does not move; an error comes from each, or from the disk.
func (r *reading) next(each func(entry) error) (wrong string, err error) {
	var head [batchHeader]byte
	if r.at.offset+batchHeader > r.end {
		return "the file ends", nil
	}
	if _, err := r.f.ReadAt(head[:], r.at.offset); err != nil {
		return "", err
	}
	h, sum, ok := parseBatch(head[:])
	records := uint64(h.records)
	switch {
	case !ok:
		return "a checksum does not match", nil
	case h.store != r.h.store || h.chain != r.at.chain:
		return "it does not follow what is before it", nil
	case r.h.kind == logKind && h.number != r.at.number+records, r.h.kind == baseKind && h.number != r.h.before:
		return fmt.Sprintf("records are missing between %d and %d", r.at.number, h.number), nil
	case int64(h.length) > r.end-r.at.offset-batchHeader:
		return "a batch is cut off", nil
	}
	if cap(r.buf) < int(h.length) {
		r.buf = make([]byte, h.length)
	}
	b := r.buf[:h.length]
	if _, err := r.f.ReadAt(b, r.at.offset+batchHeader); err != nil {
		return "", err
	}
	if checksum(b) != h.payload {
		return "a checksum does not match", nil
	}
	number := h.number - records
	for len(b) > 0 {
		e, rest, err := nextEntry(b)
		if err != nil {
			return err.Error(), nil //nolint:nilerr // the file was read, but its contents are damaged
		}
		number++
		records--
		e.number, b = number, rest
		if r.h.kind == baseKind {
			e.number = r.h.before
		}
		if err := each(e); err != nil {
			return "", err
		}
	}
	if records != 0 {
		return "records are missing in a batch", nil
	}
	r.at = place{r.at.offset + batchHeader + int64(h.length), h.number, sum}
	return "", nil
}

// later returns whether a later batch of this file follows an offset: then the data at the offset had been
// synced, and is damaged.
func (r *reading) later(offset int64) (bool, error) {
	b := make([]byte, min(1<<20, r.end-offset)+batchHeader)
	for from := offset; from < r.end; from += int64(len(b)) - batchHeader {
		n, err := r.f.ReadAt(b[:min(int64(len(b)), r.end-from)], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		for i := 0; ; i++ {
			k := bytes.Index(b[i:n], []byte(batchMagic))
			if i += k; k < 0 || i+batchHeader > n {
				break
			}
			h, _, ok := parseBatch(b[i:])
			if ok && h.store == r.h.store && h.number > r.at.number && from+int64(i) > r.at.offset {
				return true, nil
			}
		}
	}
	return false, nil
}
