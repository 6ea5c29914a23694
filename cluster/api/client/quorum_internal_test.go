package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"parley/cluster/api/parleyv1"
)

// replicated is a table that all correct nodes share. A session remembers its last command.
type replicated struct {
	mu       sync.Mutex
	sessions map[uint64]*parleyv1.Call
	last     map[uint64]*parleyv1.AddResponse
	sum      int64
	drift    bool // others add something at each call
}

// honest is a node with such a table.
type honest struct {
	parleyv1.TableServiceClient
	*replicated
}

// said returns the error that a node gives.
func said(code connect.Code, outcome parleyv1.Outcome, reason string) error {
	err := connect.NewError(code, errors.New(reason))
	d, wrong := connect.NewErrorDetail(&parleyv1.ErrorDetail{Outcome: outcome, Reason: reason})
	if wrong != nil {
		panic(wrong)
	}
	err.AddDetail(d)
	return err
}

const (
	nothingDone = parleyv1.Outcome_OUTCOME_NOTHING_DONE
	isUnknown   = parleyv1.Outcome_OUTCOME_UNKNOWN
)

func (h honest) Open(context.Context, *parleyv1.OpenRequest) (*parleyv1.OpenResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := uint64(len(h.sessions) + 1)
	h.sessions[id] = &parleyv1.Call{Session: id}
	return &parleyv1.OpenResponse{Session: id}, nil
}

func (h honest) Do(_ context.Context, r *parleyv1.DoRequest) (*parleyv1.DoResponse, error) {
	_, err := h.apply(r.GetCall(), 0)
	return &parleyv1.DoResponse{}, err
}

func (h honest) Add(_ context.Context, r *parleyv1.AddRequest) (*parleyv1.AddResponse, error) {
	return h.apply(r.GetCall(), r.GetBy())
}

func (h honest) apply(c *parleyv1.Call, by int64) (*parleyv1.AddResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := h.sessions[c.GetSession()]
	switch {
	case last == nil:
		return nil, said(connect.CodeAborted, isUnknown, "expired")
	case c.GetNumber() < last.GetNumber():
		return nil, said(connect.CodeAborted, isUnknown, "session taken")
	case c.GetNumber() > last.GetNumber():
		last.Number = c.GetNumber()
		h.sum += by
		h.last[c.GetSession()] = &parleyv1.AddResponse{Sum: h.sum}
	}
	return h.last[c.GetSession()], nil
}

func (h honest) Get(context.Context, *parleyv1.GetRequest) (*parleyv1.GetResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.drift {
		h.sum++
	}
	return &parleyv1.GetResponse{Value: fmt.Append(nil, h.sum)}, nil
}

// liar is a node that does what its functions do.
type liar struct {
	honest
	open func() (*parleyv1.OpenResponse, error)
	add  func(*parleyv1.AddRequest) (*parleyv1.AddResponse, error)
	get  func() (*parleyv1.GetResponse, error)
}

func (l liar) Open(ctx context.Context, r *parleyv1.OpenRequest) (*parleyv1.OpenResponse, error) {
	if l.open == nil {
		return l.honest.Open(ctx, r)
	}
	return l.open()
}

func (l liar) Add(ctx context.Context, r *parleyv1.AddRequest) (*parleyv1.AddResponse, error) {
	if l.add == nil {
		return l.honest.Add(ctx, r)
	}
	return l.add(r)
}

func (l liar) Get(ctx context.Context, r *parleyv1.GetRequest) (*parleyv1.GetResponse, error) {
	if l.get == nil {
		return l.honest.Get(ctx, r)
	}
	return l.get()
}

// withLiar returns a client of four nodes, of which the first one lies.
func withLiar(t *testing.T, lie func(h honest) liar) (*Quorum, *replicated) {
	t.Helper()
	table := &replicated{sessions: make(map[uint64]*parleyv1.Call), last: make(map[uint64]*parleyv1.AddResponse)}
	h := honest{replicated: table}
	nodes := []*Client{{Table: lie(h), node: "liar"}}
	for i := range 3 {
		nodes = append(nodes, &Client{Table: h, node: fmt.Sprint("node", i)})
	}
	q, err := NewQuorum(1, nodes...)
	if err != nil {
		t.Fatal(err)
	}
	return q, table
}

func adds(s *QuorumSession, ctx context.Context) (sum int64, err error) {
	r, err := s.Do(ctx, func(ctx context.Context, c *Client, call *parleyv1.Call) (proto.Message, error) {
		return c.Table.Add(ctx, &parleyv1.AddRequest{By: 1, Call: call})
	})
	answer, _ := r.(*parleyv1.AddResponse)
	return answer.GetSum(), err
}

// Whatever one node answers, a session with a quorum counts right: each command is applied once, and its answer is the
// answer of correct nodes.
func TestQuorumSession(t *testing.T) {
	opened := func(id uint64, err error) func(h honest) liar {
		return func(h honest) liar {
			return liar{honest: h, open: func() (*parleyv1.OpenResponse, error) {
				if id == 1 { // that of another client
					h.mu.Lock()
					h.sessions[1] = &parleyv1.Call{Session: 1, Number: 1 << 62}
					h.mu.Unlock()
				}
				return &parleyv1.OpenResponse{Session: id}, err
			}}
		}
	}
	added := func(answer int64, err error) func(h honest) liar {
		return func(h honest) liar {
			return liar{honest: h, add: func(*parleyv1.AddRequest) (*parleyv1.AddResponse, error) {
				return &parleyv1.AddResponse{Sum: answer}, err
			}}
		}
	}
	for name, lie := range map[string]func(h honest) liar{
		"it opens no session":       opened(1<<61, nil),
		"it opens another's":        opened(1, nil),
		"it opens nothing":          opened(0, said(connect.CodeFailedPrecondition, nothingDone, "no right")),
		"it has another sum":        added(7, nil),
		"it says expired":           added(0, said(connect.CodeAborted, isUnknown, "expired")),
		"it says taken":             added(0, said(connect.CodeAborted, nothingDone, "session taken")),
		"it says there is no table": added(0, said(connect.CodeNotFound, nothingDone, "no table")),
		"it is not a member":        added(0, said(connect.CodeUnavailable, nothingDone, "not a member")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				q, _ := withLiar(t, lie)
				s := q.Session("t")
				for i := range int64(5) {
					if sum, err := adds(s, ctx); sum != i+1 || err != nil {
						t.Fatal(sum, err)
					}
				}
			})
		})
	}
}

// A node cannot guess under which number a client will send a command.
func TestQuorumNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		q, table := withLiar(t, func(h honest) liar { return liar{honest: h} })
		steps := make(map[uint64]bool)
		s, before := q.Session("t"), uint64(0)
		for range 10 {
			if _, err := adds(s, ctx); err != nil {
				t.Fatal(err)
			}
			now := table.sessions[s.id].GetNumber()
			steps[now-before] = true
			before = now
		}
		if len(steps) < 10 {
			t.Errorf("numbers rise by %v", steps)
		}
	})
}

// A node that uses up a session leaves the outcome unknown, or lets the command be applied once. It never lets the
// client take another answer for its own.
func TestQuorumSessionUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		q, table := withLiar(t, func(h honest) liar {
			return liar{honest: h, add: func(r *parleyv1.AddRequest) (*parleyv1.AddResponse, error) {
				own := &parleyv1.Call{Session: r.GetCall().GetSession(), Number: r.GetCall().GetNumber() + 1}
				return h.apply(own, 100)
			}}
		})
		for range 20 {
			table.mu.Lock()
			before := table.sum
			table.mu.Unlock()
			sum, err := adds(q.Session("t"), ctx)
			switch {
			case err == nil && sum != before+1 && sum != before+101:
				t.Errorf("from %d to %d", before, sum)
			case err != nil && !Unknown(err):
				t.Error(err)
			}
		}
	})
}

// A read believes no single node, neither a value nor an error, and gets an answer although others change the value.
func TestQuorumReads(t *testing.T) {
	for name, lie := range map[string]struct {
		answer *parleyv1.GetResponse
		err    error
	}{
		"another value": {&parleyv1.GetResponse{Value: []byte("7")}, nil},
		"no value":      {nil, said(connect.CodeNotFound, nothingDone, "no value")},
		"not a member":  {nil, said(connect.CodeUnavailable, nothingDone, "not a member")},
	} {
		for _, drift := range []bool{false, true} {
			t.Run(fmt.Sprint(name, drift), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					q, table := withLiar(t, func(h honest) liar {
						return liar{honest: h, get: func() (*parleyv1.GetResponse, error) { return lie.answer, lie.err }}
					})
					table.drift, table.sum = drift, 10
					r, err := Agreed(ctx, q, func(ctx context.Context, c *Client) (*parleyv1.GetResponse, error) {
						return c.Table.Get(ctx, &parleyv1.GetRequest{})
					})
					if !drift && (string(r.GetValue()) != "10" || err != nil) {
						t.Error(r, err)
					}
					if !drift {
						return
					}
					none, ok := errors.AsType[*NoQuorumError](err)
					if !ok || none.Different < 3 || Unknown(err) || Detail(err) != nil ||
						!strings.Contains(err.Error(), "no 2 nodes gave the same answer") {
						t.Error(err)
					}
				})
			})
		}
	}
}

// Each node needs a name of its own, and m+1 correct ones must be left.
func TestQuorumOfNodes(t *testing.T) {
	named := func(names ...string) (list []*Client) {
		for _, name := range names {
			list = append(list, &Client{node: name})
		}
		return list
	}
	for _, c := range []struct {
		m     int
		nodes []*Client
		valid bool
	}{
		{1, named("a", "b", "c"), true}, {0, named("a"), true}, {1, named("a", "b"), false}, {-1, named("a"), false},
		{1, named("a", "b", "b", "c"), false}, {1, named("a", "b", ""), false}, {0, nil, false},
	} {
		if _, err := NewQuorum(c.m, c.nodes...); (err == nil) != c.valid {
			t.Errorf("m = %d of %d: %v", c.m, len(c.nodes), err)
		}
	}
}
