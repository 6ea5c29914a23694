package interactive

import (
	"errors"
	"strings"

	"parley"
	"parley/agreement/problem"
)

// A vector is written as in the lecture, {0,1,1,1,0}: in braces, one entry
// per process in order, separated by commas. A byte that is not a printable character,
// or that is a brace, a comma or a backslash, is written as a backslash and two
// hexadecimal digits. Each vector has one encoding, so that processes decide on
// equal bytes exactly if they decide on equal vectors.

// The errors of DecodeVector.
var (
	ErrBraces = errors.New("interactive: vector without its braces")
	ErrByte   = errors.New("interactive: vector with a byte not written in its only form")
	ErrRange  = errors.New("interactive: vector with too many entries, or too large a one")
)

const hex = "0123456789abcdef"

// plain reports whether a byte of an entry stands for itself.
func plain(c byte) bool {
	return c >= ' ' && c <= '~' && c != '{' && c != ',' && c != '}' && c != '\\'
}

// EncodeVector writes a vector of at least one entry.
func EncodeVector(vector [][]byte) []byte {
	body := []byte{'{'}
	for i, v := range vector {
		if i > 0 {
			body = append(body, ',')
		}
		for _, c := range v {
			if plain(c) {
				body = append(body, c)
			} else {
				body = append(body, '\\', hex[c>>4], hex[c&15])
			}
		}
	}
	return append(body, '}')
}

// DecodeVector reads a vector that fills all of body.
func DecodeVector(body []byte) ([][]byte, error) {
	end := len(body) - 1
	if end < 1 || body[0] != '{' || body[end] != '}' {
		return nil, ErrBraces
	}
	vector := [][]byte{nil}
	for i := 1; i < end; i++ {
		c := body[i]
		if c == ',' {
			if len(vector) == parley.MaxProcesses {
				return nil, ErrRange
			}
			vector = append(vector, nil)
			continue
		}
		switch {
		case c == '\\' && i+2 < end:
			high, low := strings.IndexByte(hex, body[i+1]), strings.IndexByte(hex, body[i+2])
			if c = byte(high<<4 | low); high < 0 || low < 0 || plain(c) {
				return nil, ErrByte
			}
			i += 2
		case !plain(c):
			return nil, ErrByte
		}
		last := &vector[len(vector)-1]
		*last = append(*last, c)
		if len(*last) > problem.MaxValue {
			return nil, ErrRange
		}
	}
	return vector, nil
}
