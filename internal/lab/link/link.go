// Package link writes and reads the links of the lab: a run, the place in it, and what is selected, as the fragment of
// an address. The page does the same in link.js. The comments of that file say what each key means. Links are kept for
// years, so no key ever changes its meaning.
package link

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Run is a link to a run. One of Protocol, Gallery, Packed and Trace says which run it is.
type Run struct {
	Protocol string
	Gallery  string            // the name of a scenario of the gallery
	Packed   string            // a scenario, as Pack packs its text
	Trace    string            // the beginning of the hash of a trace, which the reader has as a file
	Flags    map[string]string // of "parley run"
	At       *uint64           // the number of events that have happened; nil means all
	Selected string            // the reference of what is selected, such as P2/1.5
	Tree     string            // the process whose information tree is shown
	By       string            // what the rows of tables are: "content", or empty for receivers
	Sees     string            // the process whose sight is shown
	Hash     string            // of the trace; a link has its beginning
}

// version is the version of links.
const version = 1

// longest is the length of the longest link that is read.
const longest = 1 << 16

// hashed is how much of a hash a link has.
const hashed = 8

var (
	short = map[string]string{"f": "faulty", "v": "values"} // keys that stand for flags
	first = []string{"s", "g", "y", "t", "n", "m", "f", "v"}
	last  = []string{"seed", "at", "sel", "tree", "by", "sees", "h", "lab"}
	own   = []string{"s", "g", "y", "t", "at", "sel", "tree", "by", "sees", "h", "lab"} // keys that are no flags
)

// rank orders the keys of a link to a run.
func rank(key string) int {
	if i := slices.Index(first, key); i >= 0 {
		return i
	}
	if i := slices.Index(last, key); i >= 0 {
		return 200 + i
	}
	return 100
}

// Fragment returns the link as the fragment of an address, with its #.
func (r Run) Fragment() string {
	keys := make(map[string]string)
	set := func(key, value string) {
		if value != "" {
			keys[key] = value
		}
	}
	set("s", r.Protocol)
	set("g", r.Gallery)
	set("t", r.Trace)
	if r.Packed != "" {
		keys["y"] = "~" + r.Packed
	}
	for flag, value := range r.Flags { // order: each flag has its own key
		switch flag {
		case short["f"]:
			keys["f"] = eachPart(value, "=", ":")
		case short["v"]:
			keys["v"] = value
		default:
			keys[flag] = value
		}
	}
	if r.At != nil {
		keys["at"] = strconv.FormatUint(*r.At, 10)
	}
	set("sel", r.Selected)
	set("tree", r.Tree)
	set("by", r.By)
	set("sees", r.Sees)
	set("h", r.Hash[:min(len(r.Hash), hashed)])
	keys["lab"] = strconv.Itoa(version)
	sorted := slices.SortedFunc(maps.Keys(keys), func(a, b string) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a, b))
	})
	pairs := make([]string, len(sorted))
	for i, key := range sorted {
		pairs[i] = key + "=" + encode(keys[key])
	}
	return "#/run?" + strings.Join(pairs, "&")
}

// Search returns a link to the form of a search: a protocol, and flags of "parley explore".
func Search(protocol string, flags map[string]string) string {
	pairs := []string{"s=" + encode(protocol)}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		pairs = append(pairs, encode(name)+"="+encode(flags[name]))
	}
	return "#/explore?" + strings.Join(pairs, "&")
}

// eachPart replaces the first occurrence of a separator in each part of a list with commas.
func eachPart(list, separator, by string) string {
	parts := strings.Split(list, ",")
	for i := range parts {
		parts[i] = strings.Replace(parts[i], separator, by, 1)
	}
	return strings.Join(parts, ",")
}

// legible are the characters that stand for themselves: those that encodeURIComponent leaves, and some that mean
// nothing in a fragment. Brackets of all kinds do not stand for themselves: Markdown and chats take them for the end of
// a link.
const legible = "-_.!~*'" + ",/:;@$"

// encode encodes what a fragment must not contain.
func encode(text string) string {
	var out strings.Builder
	for _, c := range strings.ToValidUTF8(text, "\ufffd") {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune(legible, c):
			out.WriteRune(c)
		default:
			for _, b := range utf8.AppendRune(nil, c) {
				fmt.Fprintf(&out, "%%%02X", b)
			}
		}
	}
	return out.String()
}

// decode reverses encode. It reports false if the text is incomplete.
func decode(text string) (string, bool) {
	var out []byte
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			out = append(out, text[i])
			continue
		}
		if i+2 >= len(text) {
			return "", false
		}
		b, err := strconv.ParseUint(text[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		out = append(out, byte(b))
		i += 2
	}
	return string(out), utf8.Valid(out)
}

// Read reads a link to a run. An error says in words of the page why it cannot be read.
func Read(fragment string) (Run, error) {
	var r Run
	if len(fragment) > longest {
		return r, errors.New("it is too long")
	}
	path, query, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(fragment, "#"), "/"), "?")
	if path != "run" || query == "" {
		return r, errors.New("it leads to no run")
	}
	keys := make(map[string]string)
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		name, good := decode(key)
		text, too := decode(value)
		if !good || !too {
			return r, errors.New("a part of it is missing")
		}
		keys[name] = text
	}
	given := 0
	for _, key := range own[:4] {
		if _, ok := keys[key]; ok {
			given++
		}
	}
	if given != 1 {
		return r, fmt.Errorf("it names %d runs", given)
	}
	r = Run{
		Protocol: keys["s"], Gallery: keys["g"], Trace: keys["t"], Selected: keys["sel"], Tree: keys["tree"],
		By: keys["by"], Sees: keys["sees"], Hash: keys["h"], Flags: make(map[string]string), At: placeOf(keys),
	}
	if n, err := strconv.ParseFloat(keys["lab"], 64); err == nil && n > version {
		return r, errors.New("a newer version of the lab wrote it")
	}
	for name, flag := range short { // order: the error is the same
		_, long := keys[flag]
		if _, brief := keys[name]; brief && long {
			return r, errors.New("it gives a setting twice")
		}
	}
	for key, value := range keys { // order: each key is another flag
		if key == "f" {
			value = eachPart(value, ":", "=")
		}
		if !slices.Contains(own, key) {
			r.Flags[cmp.Or(short[key], key)] = value
		}
	}
	y, packed := keys["y"]
	if !packed {
		return r, nil
	}
	if r.Packed, packed = strings.CutPrefix(y, "~"); !packed {
		return r, errors.New("its scenario is not packed")
	}
	_, err := Unpack(r.Packed)
	return r, err
}

// placeOf returns the place in the run.
func placeOf(keys map[string]string) *uint64 {
	text, given := keys["at"]
	if !given {
		return nil
	}
	at := uint64(0)
	if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 && n < math.MaxInt64 {
		at = uint64(n)
	}
	return &at
}
