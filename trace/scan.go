package trace

import (
	"bytes"
	"encoding/base64"
	"math"
)

// scanEvent reads the line of an event that has exactly the form in which appendEvent writes it. Package encoding/json
// reads all other lines, and says what is wrong with them. It takes several times as long, and traces have hundreds of
// thousands of lines.
func scanEvent(b []byte) (l line, ok bool) {
	s := scanner{rest: b, ok: true}
	s.after(`{"id":`)
	l.ID = s.number(math.MaxUint64)
	l.Cause = s.optional(`,"cause":`, math.MaxUint64)
	s.after(`,"t":`)
	l.Time = int64(s.number(math.MaxInt64))
	s.after(`,"op":"`)
	l.Op = s.op()
	s.after(`","at":`)
	l.At = uint16(s.number(math.MaxUint16))
	l.Peer = uint16(s.optional(`,"peer":`, math.MaxUint16))
	l.Epoch = uint32(s.optional(`,"epoch":`, math.MaxUint32))
	l.Path = s.optional(`,"path":`, math.MaxUint64)
	l.Kind = uint8(s.optional(`,"kind":`, math.MaxUint8))
	l.About = uint16(s.optional(`,"origin":`, math.MaxUint16))
	l.Seq = s.optional(`,"seq":`, math.MaxUint64)
	l.Value = s.optional(`,"value":`, math.MaxUint64)
	l.Body = s.body()
	l.Cut = uint32(s.optional(`,"cut":`, math.MaxUint32))
	return l, s.ok && string(s.rest) == "}"
}

// scanner reads a line from left to right. It is not ok once the line has another form.
type scanner struct {
	rest []byte
	ok   bool
}

// has reads a text, if it comes next.
func (s *scanner) has(text string) bool {
	if len(s.rest) < len(text) || string(s.rest[:len(text)]) != text {
		return false
	}
	s.rest = s.rest[len(text):]
	return true
}

func (s *scanner) after(text string) { s.ok = s.has(text) && s.ok }

// number reads a decimal number of at most a size, without a sign and without needless zeros.
func (s *scanner) number(most uint64) (x uint64) {
	i := 0
	for ; i < len(s.rest) && s.rest[i] >= '0' && s.rest[i] <= '9'; i++ {
		digit := uint64(s.rest[i] - '0')
		if x > (most-digit)/10 {
			s.ok = false
			return 0
		}
		x = 10*x + digit
	}
	if i == 0 || i > 1 && s.rest[0] == '0' {
		s.ok = false
	}
	s.rest = s.rest[i:]
	return x
}

func (s *scanner) optional(key string, most uint64) uint64 {
	if !s.has(key) {
		return 0
	}
	return s.number(most)
}

func (s *scanner) op() string {
	for _, name := range opNames[1:] {
		if n := len(name); n < len(s.rest) && string(s.rest[:n]) == name && s.rest[n] == '"' {
			s.rest = s.rest[n:]
			return name
		}
	}
	s.ok = false
	return ""
}

// body reads a body that is not empty, if there is one.
func (s *scanner) body() []byte {
	if !s.has(`,"body":"`) {
		return nil
	}
	end := bytes.IndexByte(s.rest, '"')
	if end <= 0 || bytes.IndexByte(s.rest[:end], '\r') >= 0 { // base64 skips line ends, which JSON forbids
		s.ok = false
		return nil
	}
	body := make([]byte, base64.StdEncoding.DecodedLen(end))
	n, err := base64.StdEncoding.Decode(body, s.rest[:end])
	if err != nil {
		s.ok = false
	}
	s.rest = s.rest[end+1:]
	return body[:n]
}
