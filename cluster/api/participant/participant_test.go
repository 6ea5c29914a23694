package participant_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/cluster/api/parleyv1"
	"parley/cluster/api/participant"
	"parley/cluster/link/memory"
)

// must fails the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// script is a service that does what a test sets, and records its calls.
type script struct {
	mu      sync.Mutex
	notes   []string
	lives   []uint64
	prepare func(context.Context) (*parleyv1.PreparePartResponse, error)
	fail    int // this many calls fail
}

func (s *script) note(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail > 0 {
		s.fail--
		what += " in vain"
	}
	s.notes = append(s.notes, what)
	if strings.HasSuffix(what, "in vain") {
		return errors.New("the disk is full")
	}
	return nil
}

func (s *script) Prepare(ctx context.Context, r *parleyv1.PreparePartRequest) (*parleyv1.PreparePartResponse, error) {
	what := "prepare " + r.Transaction
	if r.Again {
		what += " again"
	}
	if err := s.note(what); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.lives = append(s.lives, r.Life)
	s.mu.Unlock()
	if s.prepare != nil {
		answer, err := s.prepare(ctx)
		return answer, errors.Join(err, s.note("prepared "+r.Transaction))
	}
	return &parleyv1.PreparePartResponse{Vote: true}, nil
}

func (s *script) Commit(_ context.Context, r *parleyv1.CommitPartRequest) (*parleyv1.CommitPartResponse, error) {
	return &parleyv1.CommitPartResponse{}, s.note("commit " + r.Transaction + " of " + r.Node)
}

func (s *script) Abort(_ context.Context, r *parleyv1.AbortPartRequest) (*parleyv1.AbortPartResponse, error) {
	return &parleyv1.AbortPartResponse{}, s.note("abort " + r.Transaction)
}

func (s *script) saw(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.notes, want) {
		t.Errorf("it was asked %q, and not %q", s.notes, want)
	}
}

// called returns a client of a service in memory, in a bubble of synctest.
func called(t *testing.T, s parleyv1.ParticipantServiceHandler) *participant.Client {
	t.Helper()
	host := memory.New(memory.Options{}).Host("node")
	l, err := host.Listen(t.Context(), "tcp", host.Addr(bankPort))
	must(t, err)
	mux := http.NewServeMux()
	mux.Handle(parleyv1.NewParticipantServiceHandler(s))
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(l) }()
	c := participant.NewOn("n", host.Addr(bankPort), host.DialContext)
	t.Cleanup(func() {
		c.End()
		_ = server.Close()
	})
	return c
}

// A restarted service has closed its old connections, which does not count as a vote.
func TestClosedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(script)
		c := called(t, s)
		if yes, err := c.Prepare(t.Context(), "a", nil); !yes || err != nil {
			t.Fatalf("got %t, %v, want a yes", yes, err)
		}
		s.prepare = func(context.Context) (*parleyv1.PreparePartResponse, error) {
			s.prepare = nil
			panic(http.ErrAbortHandler) // the server closes the connection
		}
		if yes, err := c.Prepare(t.Context(), "b", nil); !yes || err != nil {
			t.Errorf("got %t, %v, want a yes", yes, err)
		}
		s.saw(t, "prepare a", "prepare b", "prepare b")
	})
}

// A service may listen on a Unix socket.
func TestUnixSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	must(t, err)
	s := new(script)
	server := httptest.NewUnstartedServer(http.NewServeMux())
	server.Listener.Close()
	server.Listener = l
	server.Config.Handler.(*http.ServeMux).Handle(parleyv1.NewParticipantServiceHandler(s))
	server.Start()
	defer server.Close()
	c, err := participant.New("n", "unix:"+socket)
	must(t, err)
	defer c.End()
	if err := c.Reach(t.Context()); err != nil {
		t.Error(err)
	}
	if yes, err := c.Prepare(t.Context(), "a", nil); !yes || err != nil {
		t.Errorf("got %t, %v, want a yes", yes, err)
	}
	s.saw(t, "prepare a")
}

// A failed call is retried until it is answered.
func TestAskedAgain(t *testing.T) { synctest.Test(t, askedAgain) }

func askedAgain(t *testing.T) {
	s := &script{fail: 2}
	c := called(t, s)
	c.Commit("a")
	s.fail = 1
	c.Abort("b")
	s.fail = 1
	if err := c.Again("c", nil); err != nil {
		t.Error(err)
	}
	s.fail = 1
	if yes, err := c.Prepare(t.Context(), "d", nil); yes || err == nil { // a failed Prepare is a no
		t.Error(yes, err)
	}
	s.saw(t, "commit a of n in vain", "commit a of n in vain", "commit a of n", "abort b in vain", "abort b",
		"prepare c again in vain", "prepare c again", "prepare d in vain")
}

// A vote that comes too late does not count. The service knows the time limit, and no Abort comes while its
// Prepare is in progress.
func TestLate(t *testing.T) { synctest.Test(t, late) }

func late(t *testing.T) {
	gate, deadline := make(chan struct{}), make(chan bool, 1)
	s := &script{prepare: func(ctx context.Context) (*parleyv1.PreparePartResponse, error) {
		_, has := ctx.Deadline()
		deadline <- has
		<-gate
		return &parleyv1.PreparePartResponse{Vote: true}, nil
	}}
	c := called(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	go func() {
		if !<-deadline {
			t.Error("the service does not know how long it is waited for")
		}
		cancel() // as if the time were over
	}()
	if yes, err := c.Prepare(ctx, "a", nil); yes || err == nil {
		t.Error(yes, err)
	}
	aborted := make(chan struct{})
	go func() {
		c.Abort("a")
		close(aborted)
	}()
	time.Sleep(time.Second) // of virtual time: an Abort that does not wait has been sent
	close(gate)
	<-aborted
	s.saw(t, "prepare a", "prepared a", "abort a")
}

// When the node ends, calls of a service return. Its next incarnation has a larger number.
func TestLives(t *testing.T) { synctest.Test(t, lives) }

func lives(t *testing.T) {
	s := &script{fail: 1 << 30}
	c := called(t, s)
	var all sync.WaitGroup
	all.Go(func() { c.Commit("a") })
	all.Go(func() { c.Abort("b") })
	all.Go(func() {
		if c.Again("c", nil) == nil {
			t.Error("it is prepared, as it seems")
		}
	})
	c.End()
	all.Wait()
	s.mu.Lock()
	s.fail = 0
	s.mu.Unlock()
	for range 2 {
		c.Begin(slog.New(slog.DiscardHandler))
		if err := c.Again("d", nil); err != nil {
			t.Error(err)
		}
		if yes, err := c.Prepare(t.Context(), "e", nil); !yes || err != nil {
			t.Error(yes, err)
		}
		c.End()
	}
	if l := s.lives; len(l) != 4 || l[0] != l[1] || l[1] >= l[2] || l[2] != l[3] {
		t.Errorf("lives %d", l)
	}
}

// The example's bank releases what is held for transactions that the node no longer knows, and refuses requests
// of earlier lives.
func TestBankAfterALife(t *testing.T) { synctest.Test(t, bankAfterALife) }

func bankAfterALife(t *testing.T) {
	b := &bank{
		file: filepath.Join(t.TempDir(), "bank.json"), Balance: map[string]int{"alice": 100}, Held: make(map[string]held),
	}
	old, next := called(t, b), called(t, b)
	body := []byte(`{"Account": "alice", "By": -40}`)
	prepare := func(c *participant.Client, tx string, want bool) {
		t.Helper()
		if yes, err := c.Prepare(t.Context(), tx, body); yes != want {
			t.Errorf("%s: %v, %v", tx, yes, err)
		}
	}
	prepare(old, "known", true)
	prepare(old, "lost", true)
	next.Begin(slog.New(slog.DiscardHandler))
	for _, tx := range []string{"known", "over"} {
		if err := next.Again(tx, body); err != nil {
			t.Error(err)
		}
	}
	if b.Balance["alice"] != 20 {
		t.Errorf("alice has %d", b.Balance["alice"])
	}
	prepare(next, "new", true)
	if b.Balance["alice"] != 20 || len(b.Held) != 2 {
		t.Errorf("alice has %d, and held are %v", b.Balance["alice"], b.Held)
	}
	prepare(old, "late", false)
	next.Commit("known")
	next.Commit("known")
	next.Abort("new")
	next.Commit("over")
	if b.Balance["alice"] != 60 || len(b.Held) != 0 {
		t.Errorf("alice has %d, and held are %v", b.Balance["alice"], b.Held)
	}
}

// The wire format needs no library: plain HTTP and JSON.
func TestWithoutALibrary(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Node, Transaction, Life string
			Body                    []byte
		}
		text, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		err := json.Unmarshal(text, &in)
		if err != nil || r.URL.Path != "/parley.v1.ParticipantService/Prepare" || r.Method != http.MethodPost || in.Life == "" ||
			in.Node != "n" || in.Transaction != "a" || string(in.Body) != "do" || r.ProtoMajor != 1 {
			t.Errorf("%s %s %s %s: %v", r.Proto, r.Method, r.URL, text, err)
		}
		_, _ = io.WriteString(w, `{"vote": false, "why": "closed on sundays"}`)
	}))
	defer server.Close()
	c, err := participant.New("n", server.URL)
	must(t, err)
	if yes, err := c.Prepare(t.Context(), "a", []byte("do")); yes || err == nil || err.Error() != "closed on sundays" {
		t.Error(yes, err)
	}
}

// A service is reachable only from this computer.
func TestAddresses(t *testing.T) {
	for address, ok := range map[string]bool{
		"http://127.0.0.1:8090": true, "http://127.1.2.3:80/": true, "http://[::1]:8090": true,
		"http://localhost:8090": true, "unix:/run/bank.sock": true,
		"http://0.0.0.0:8090": false, "http://[::]:8090": false, "http://192.168.1.1:80": false, "http://a.example.org:80": false,
		"http://localhost.example.org:80": false, "http://127.0.0.1:0": false, "http://127.0.0.1:99999": false,
		"http://user@127.0.0.1:80": false, "http://127.0.0.1:80?x": false, "http://127.0.0.1:80#x": false,
		"http://2130706433:80": false, "unix:": false, "unix://run/x": true, "unix:run": false,
		"unix:/" + strings.Repeat("x", 100): false, "": false, "file:///x": false, "http:127.0.0.1:80": false,
	} {
		if err := participant.CheckAddress(address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Abort waits for a repeated Prepare of the same transaction, even after the first one has ended.
func TestPreparedTwice(t *testing.T) { synctest.Test(t, preparedTwice) }

func preparedTwice(t *testing.T) {
	gates := make(chan chan struct{}, 2)
	first, second := make(chan struct{}), make(chan struct{})
	gates <- first
	gates <- second
	s := &script{prepare: func(context.Context) (*parleyv1.PreparePartResponse, error) {
		<-<-gates
		return &parleyv1.PreparePartResponse{Vote: true}, nil
	}}
	c := called(t, s)
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		if yes, err := c.Prepare(ctx, "a", nil); yes || err == nil {
			t.Error(yes, err)
		}
		cancel()
	}
	close(first)
	time.Sleep(time.Second) // of virtual time: the first one ends
	time.AfterFunc(time.Second, func() { close(second) })
	c.Abort("a")
	s.saw(t, "prepare a", "prepare a", "prepared a", "prepared a", "abort a")
}
