package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"parley"
	"parley/cluster/disk"
)

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// opened opens the store in the folder dir.
func opened(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open("dir", o)
	must(t, err)
	return s
}

// bookOf opens a book.
func bookOf(t *testing.T, s *Store, name string) *Book {
	t.Helper()
	b, _, _, err := s.Open(name)
	must(t, err)
	return b
}

// shelf is the expected contents of a book.
type shelf struct {
	state   string
	records []string
}

func (b shelf) String() string { return fmt.Sprintf("%q %q", b.state, b.records) }

// model is the expected contents of a store after each number of records: history[k] is that after k
// records.
type model struct {
	history []map[string]shelf
}

func newModel() *model { return &model{history: []map[string]shelf{{}}} }

func (m *model) clone() *model { return &model{history: slices.Clone(m.history)} }

func (m *model) last() map[string]shelf { return m.history[len(m.history)-1] }

func (m *model) append(name, body string) {
	next := maps.Clone(m.last())
	b := next[name]
	b.records = append(slices.Clip(b.records), body)
	next[name] = b
	m.history = append(m.history, next)
}

func (m *model) replace(name, state string) {
	next := maps.Clone(m.last())
	next[name] = shelf{state: state}
	m.history = append(m.history, next)
}

// names are the names of the books in tests.
var names = []string{"a", "group orders", "table bank"}

// contents opens all books of a store.
func contents(t *testing.T, s *Store) (map[string]shelf, map[string]*Book) {
	t.Helper()
	out, books := make(map[string]shelf), make(map[string]*Book)
	for _, name := range names {
		b, state, records, err := s.Open(name)
		must(t, err)
		books[name] = b
		x := shelf{state: string(state)}
		for _, r := range records {
			x.records = append(x.records, string(r.Body))
		}
		if x.state != "" || x.records != nil {
			out[name] = x
		}
	}
	return out, books
}

// same checks that a store contains what it had after its last record, and returns its books.
func (m *model) same(t *testing.T, s *Store, what string) map[string]*Book {
	t.Helper()
	have, books := contents(t, s)
	at := s.Position()
	if at >= uint64(len(m.history)) {
		t.Fatalf("%s: at position %d, and %d records were handed over", what, at, len(m.history)-1)
	}
	want := m.history[at]
	for _, name := range names {
		if fmt.Sprint(have[name]) != fmt.Sprint(want[name]) {
			t.Fatalf("%s: at position %d %q holds\n%v, want\n%v", what, at, name, have[name], want[name])
		}
	}
	m.history = m.history[:at+1] // the rest is lost, and numbers continue from here
	return books
}

// owner records the notifications of a store.
type owner struct {
	mu      sync.Mutex
	durable uint64
	failed  []error
	late    bool // something became durable after the failure
}

func (o *owner) options(d disk.Disk) Options {
	return Options{
		Disk: d, LogSize: 4 << 10,
		Durable: func(upto uint64) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.late = o.late || len(o.failed) > 0 || upto <= o.durable
			o.durable = upto
		},
		Failed: func(err error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.failed = append(o.failed, err)
		},
	}
}

func (o *owner) sees() (durable uint64, failed []error, late bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.durable, o.failed, o.late
}

// scribble appends some records, and sometimes waits until they are durable. It stops at a failure.
func (m *model) scribble(s *Store, books map[string]*Book, chance *rand.Rand, many int) {
	for range many {
		name := names[chance.IntN(len(names))]
		body := fmt.Sprintf("%d:%0*d", len(m.history), chance.IntN(200), 0)
		var number uint64
		if chance.IntN(12) == 0 {
			number = books[name].Replace([]byte(body))
			m.replace(name, body)
		} else {
			number = books[name].Append(parley.Record{Body: []byte(body)})
			m.append(name, body)
		}
		if chance.IntN(3) == 0 && s.Wait(number) != nil {
			return
		}
	}
}
