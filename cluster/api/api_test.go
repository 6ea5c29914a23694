package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	"parley/cluster/api"
	"parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
	"parley/cluster/cert"
)

// protocols are the protocols that one handler serves.
var protocols = map[string][]connect.ClientOption{
	"connect":  nil,
	"json":     {connect.WithProtoJSON()},
	"grpc":     {connect.WithGRPC()},
	"grpc-web": {connect.WithGRPCWeb()},
	"gzip":     {connect.WithSendGzip()},
}

// A table is the same with all protocols and at all nodes.
func TestTable(t *testing.T) {
	at := 0
	byProtocol(t, func(t *testing.T, s *served, name string, options []connect.ClientOption) {
		ctx := t.Context()
		at++
		key := []byte("table/" + name)
		c, other := s.client(t, at%4, all, options...), s.client(t, (at+1)%4, cert.Read, options...)
		put, err := c.Table.Put(ctx, &parleyv1.PutRequest{Table: "table", Key: key, Value: []byte("blue")})
		if err != nil || put.GetVersion() != 1 {
			t.Fatal(put, err)
		}
		got, err := other.Table.Get(ctx, &parleyv1.GetRequest{Table: "table", Key: key})
		if err != nil || string(got.GetValue()) != "blue" || got.GetVersion() != 1 {
			t.Fatal(got, err)
		}
		swap := &parleyv1.SwapRequest{Table: "table", Key: key, Version: 7, Value: []byte("red")}
		if r, err := c.Table.Swap(ctx, swap); err != nil || r.GetSwapped() || r.GetVersion() != 1 || string(r.GetValue()) != "blue" {
			t.Error(r, err)
		}
		swap.Version = 1
		if r, err := c.Table.Swap(ctx, swap); err != nil || !r.GetSwapped() || r.GetVersion() != 2 || r.Value != nil {
			t.Error(r, err)
		}
		if r, err := c.Table.Delete(ctx, &parleyv1.DeleteRequest{Table: "table", Key: key}); err != nil || r.GetVersion() != 3 {
			t.Error(r, err)
		}
		_, err = other.Table.Get(ctx, &parleyv1.GetRequest{Table: "table", Key: key})
		demand(t, err, connect.CodeNotFound, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "no value")
		_, err = c.Table.Delete(ctx, &parleyv1.DeleteRequest{Table: "table", Key: key})
		demand(t, err, connect.CodeNotFound, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "no value")
		for i := range int64(3) {
			r, err := c.Table.Add(ctx, &parleyv1.AddRequest{Table: "table", Key: key, By: -2})
			if err != nil || r.GetSum() != -2*(i+1) {
				t.Error(r, err)
			}
		}
	})
}

// demand requires an error of a node.
func demand(t *testing.T, err error, code connect.Code, outcome parleyv1.Outcome, reason string) {
	t.Helper()
	d := client.Detail(err)
	if connect.CodeOf(err) != code || d.GetOutcome() != outcome || d.GetReason() != reason {
		t.Errorf("%v, %v: %v %v %q was expected", err, d, code, outcome, reason)
	}
	if err != nil && client.Unknown(err) != (outcome == parleyv1.Outcome_OUTCOME_UNKNOWN) {
		t.Errorf("%v: unknown: %v", err, client.Unknown(err))
	}
}

// A command that is sent again under its session and number, also to another node, is applied once.
func TestOnce(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		ctx := t.Context()
		c, other := s.client(t, 0, all), s.client(t, 1, all)
		open, err := c.Table.Open(ctx, &parleyv1.OpenRequest{Table: "table"})
		must(t, err)
		call := &parleyv1.Call{Session: open.GetSession(), Number: 1}
		add := &parleyv1.AddRequest{Table: "table", Key: []byte("once"), By: 5, Call: call}
		for i, at := range []*client.Client{c, other, c} {
			if r, err := at.Table.Add(ctx, add); err != nil || r.GetSum() != 5 {
				t.Error(i, r, err)
			}
		}
		call.Number = 2
		if r, err := other.Table.Add(ctx, add); err != nil || r.GetSum() != 10 {
			t.Error(r, err)
		}
		call.Number = 1
		_, err = c.Table.Add(ctx, add)
		demand(t, err, connect.CodeUnknown, parleyv1.Outcome_OUTCOME_UNKNOWN, "unknown")
		call.Session += 1 << 20
		_, err = c.Table.Add(ctx, add)
		demand(t, err, connect.CodeAborted, parleyv1.Outcome_OUTCOME_UNKNOWN, "expired")
	})
}

// A session of the client package continues at another node.
func TestSession(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		dead := client.New(client.Config{
			Self: s.certificate(t, "c", all).Self(), Trust: s.trust, Address: "127.0.0.1:1", DialContext: s.dial,
		})
		session := client.NewSession("table", dead, s.client(t, 1, all), s.client(t, 2, all))
		for i := range int64(5) {
			var sum int64
			err := session.Do(t.Context(), func(ctx context.Context, c *client.Client, call *parleyv1.Call) error {
				r, err := c.Table.Add(ctx, &parleyv1.AddRequest{Table: "table", Key: []byte("session"), By: 1, Call: call})
				sum = r.GetSum()
				return err
			})
			if err != nil || sum != i+1 {
				t.Fatal(sum, err)
			}
		}
	})
}

// A session gives up a node that pauses during a request.
func TestPausedProcess(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		still := s.client(t, 1, all)
		session := client.NewSession("table", still, s.client(t, 2, all))
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		defer cancel()
		asked := 0
		err := session.Do(ctx, func(ctx context.Context, c *client.Client, call *parleyv1.Call) error {
			if asked++; c == still {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		if err != nil || asked != 2 {
			t.Error(asked, err)
		}
	})
}

// If a connection cannot be established for any reason, no request was sent, and another node is called. The
// causes here are a paused node, whose kernel accepts connections; one that authenticates as another node; and
// one that does not trust the client.
func TestNoConnection(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		l := s.listen(t, 0, 9) // nobody accepts its connections
		defer func() { _ = l.Close() }()
		self := s.certificate(t, "c", all).Self()
		other, err := cert.NewAuthority("test", time.Hour, nil)
		must(t, err)
		stranger, err := other.IssueClient("c", all, time.Minute)
		must(t, err)
		for name, c := range map[string]client.Config{
			"nobody":      {Self: self, Address: "127.0.0.1:1"},
			"still":       {Self: self, Address: l.Addr().String(), Dial: 50 * time.Millisecond},
			"another":     {Self: self, Address: s.addresses[0], Node: "node2"},
			"a distrust":  {Self: stranger.Self(), Address: s.addresses[0]},
			"nobody, too": {Self: self, Address: "127.0.0.1:1", Options: protocols["grpc"]},
		} {
			c.Trust, c.DialContext = s.trust, s.dial
			n := client.New(c)
			_, err := n.Table.Put(t.Context(), &parleyv1.PutRequest{Table: "table", Key: []byte("k")})
			// The refusal may arrive after the client has begun to send; then the outcome is unknown.
			if err == nil || client.Unknown(err) && name != "a distrust" || !client.Elsewhere(err) {
				t.Errorf("%s: %v: unknown %v, elsewhere %v", name, err, client.Unknown(err), client.Elsewhere(err))
			}
			n.Close()
		}
	})
}

// A failed read has no unknown outcome.
func TestReadsAreKnown(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c := s.client(t, 0, all)
		if _, err := c.Table.Get(ctx, &parleyv1.GetRequest{Table: "table", Key: []byte("k")}); err == nil || client.Unknown(err) {
			t.Error(err)
		}
		if _, err := c.Table.Put(ctx, &parleyv1.PutRequest{Table: "table", Key: []byte("k")}); err == nil || !client.Unknown(err) {
			t.Error(err)
		}
	})
}

// A client that opens more sessions than a table remembers loses its own sessions, not those of other clients.
func TestSharesOfClients(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		ctx := t.Context()
		quiet, greedy := s.certificate(t, "quiet", all), s.certificate(t, "greedy", all)
		q, g := s.from(t, "a", quiet), s.from(t, "b", greedy)
		open, err := q.Table.Open(ctx, &parleyv1.OpenRequest{Table: "bank"})
		must(t, err)
		for range 20 {
			if _, err := g.Table.Open(ctx, &parleyv1.OpenRequest{Table: "bank"}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = q.Table.Do(ctx, &parleyv1.DoRequest{
			Table: "bank", Command: []byte("deposit 1"), Call: &parleyv1.Call{Session: open.GetSession(), Number: 1},
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// Commands in the language of a state machine. A client with the right read may send only commands that change
// nothing.
func TestCommands(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		ctx := t.Context()
		c, reader := s.client(t, 0, all), s.client(t, 1, cert.Read)
		open, err := c.Table.Open(ctx, &parleyv1.OpenRequest{Table: "bank"})
		must(t, err)
		call := &parleyv1.Call{Session: open.GetSession(), Number: 1}
		done, err := c.Table.Do(ctx, &parleyv1.DoRequest{Table: "bank", Command: []byte("deposit 150"), Call: call})
		must(t, err)
		read, err := reader.Table.Query(ctx, &parleyv1.QueryRequest{Table: "bank", Command: []byte("balance")})
		if err != nil || !bytes.Equal(read.GetAnswer(), done.GetAnswer()) || read.GetPosition() <= done.GetPosition() {
			t.Error(done, read, err)
		}
		_, err = reader.Table.Query(ctx, &parleyv1.QueryRequest{Table: "bank", Command: []byte("withdraw 9")})
		demand(t, err, connect.CodePermissionDenied, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "no right")
		_, err = c.Table.Put(ctx, &parleyv1.PutRequest{Table: "bank", Key: []byte("a")})
		demand(t, err, connect.CodeFailedPrecondition, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "no keys")
		call.Number++
		no, err := c.Table.Do(ctx, &parleyv1.DoRequest{Table: "bank", Command: []byte("rob the bank"), Call: call})
		if err != nil || !no.GetRefused() || string(no.GetAnswer()) != "no such command" || done.GetRefused() || read.GetRefused() {
			t.Error(no, err)
		}
		_, err = c.Table.Query(ctx, &parleyv1.QueryRequest{Table: "table", Command: []byte("x")})
		demand(t, err, connect.CodeInvalidArgument, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "no such command")
		at, err := reader.Table.Inspect(ctx, &parleyv1.InspectRequest{Table: "bank"})
		if err != nil || at.GetPosition() == 0 {
			t.Error(at, err)
		}
	})
}

// A subscription delivers what is broadcast at any node, in order, and resumes where it was interrupted, also at
// another node.
func TestSubscribe(t *testing.T) {
	byProtocol(t, func(t *testing.T, s *served, name string, options []connect.ClientOption) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c, other := s.client(t, 0, all, options...), s.client(t, 1, all, options...)
		stream, err := c.Group.Subscribe(ctx, &parleyv1.SubscribeRequest{Group: "total"})
		if err != nil || !stream.Receive() || stream.Msg().GetDelivery() != nil {
			t.Fatal(err, stream.Err())
		}
		var told []uint64
		for i := range 10 {
			r, err := other.Group.Broadcast(ctx, &parleyv1.BroadcastRequest{Group: "total", Payload: fmt.Append(nil, name, i)})
			must(t, err)
			told = append(told, r.GetPosition())
		}
		var positions []uint64
		for len(positions) < 10 && stream.Receive() {
			d := stream.Msg().GetDelivery()
			if d == nil {
				continue
			}
			want, at := fmt.Sprint(name, len(positions)), told[len(positions)]
			if d.GetFrom() != "node2" || string(d.GetPayload()) != want || d.GetPosition() != at {
				t.Fatalf("%v: %s was expected, at %d", d, want, at)
			}
			positions = append(positions, d.GetPosition())
		}
		if len(positions) != 10 {
			t.Fatal(stream.Err())
		}
		again, err := other.Group.Subscribe(ctx, &parleyv1.SubscribeRequest{Group: "total", From: positions[3] + 1})
		if err != nil || !again.Receive() || !again.Receive() {
			t.Fatal(err, again.Err())
		}
		if d := again.Msg().GetDelivery(); d.GetPosition() != positions[4] || string(d.GetPayload()) != fmt.Sprint(name, 4) {
			t.Error(d)
		}
		fetched, err := c.Group.Fetch(ctx, &parleyv1.FetchRequest{Group: "total", From: positions[7]})
		if err != nil || len(fetched.GetDeliveries()) != 3 || fetched.GetNext() != positions[9]+1 {
			t.Error(fetched, err)
		}
		none, err := c.Group.Fetch(ctx, &parleyv1.FetchRequest{
			Group: "total", From: fetched.GetNext(), Wait: durationpb.New(time.Millisecond),
		})
		if err != nil || len(none.GetDeliveries()) != 0 || none.GetNext() != fetched.GetNext() {
			t.Error(none, err)
		}
	})
}

// A caller that fetches from 0 gets new deliveries without a gap.
func TestFetchFromNow(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		ctx, c := t.Context(), s.client(t, 2, all)
		r, err := c.Group.Fetch(ctx, &parleyv1.FetchRequest{Group: "total", Wait: durationpb.New(0)})
		if err != nil || len(r.GetDeliveries()) != 0 || r.GetNext() == 0 {
			t.Fatal(r, err)
		}
		if _, err := c.Group.Broadcast(ctx, &parleyv1.BroadcastRequest{Group: "total", Payload: []byte("now")}); err != nil {
			t.Fatal(err)
		}
		for {
			r, err = c.Group.Fetch(ctx, &parleyv1.FetchRequest{Group: "total", From: r.GetNext(), Limit: 1})
			must(t, err)
			if d := r.GetDeliveries(); len(d) == 1 && string(d[0].GetPayload()) == "now" {
				break
			}
		}
	})
}

// A position that is no longer retained fails with reason "gone".
func TestGone(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		ctx, c := t.Context(), s.client(t, 0, all)
		first := uint64(0)
		for i := range 40 {
			from := &parleyv1.FetchRequest{Group: "short", From: 1}
			if first > 0 {
				from.Wait = durationpb.New(0)
			}
			if _, err := c.Group.Broadcast(ctx, &parleyv1.BroadcastRequest{Group: "short", Payload: []byte{byte(i)}}); err != nil {
				t.Fatal(err)
			}
			r, err := c.Group.Fetch(ctx, from)
			if err != nil {
				demand(t, err, connect.CodeOutOfRange, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "gone")
				from.From = client.Detail(err).GetFirst() // the first retained position
				if r, err = c.Group.Fetch(ctx, from); err != nil || len(r.GetDeliveries()) == 0 || from.From <= first {
					t.Error(from, r, err)
				}
				last := r.GetDeliveries()[len(r.GetDeliveries())-1].GetPosition()
				st, err := c.Admin.Status(ctx, &parleyv1.StatusRequest{})
				if err != nil || !slices.ContainsFunc(st.GetGroups(), func(g *parleyv1.GroupStatus) bool {
					return g.GetName() == "short" && g.GetPosition() >= last
				}) {
					t.Error(last, st, err)
				}
				return
			}
			first = r.GetDeliveries()[0].GetPosition()
		}
		t.Error("all is kept")
	})
}

// A group accepts payloads of the levels that it carries.
func TestLevels(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		ctx, c := t.Context(), s.client(t, 0, all)
		for level, want := range map[parleyv1.Level]error{
			parleyv1.Level_LEVEL_UNSPECIFIED: nil, parleyv1.Level_LEVEL_FIFO: nil, parleyv1.Level_LEVEL_CAUSAL: nil,
			parleyv1.Level_LEVEL_TOTAL: errors.New("no"), parleyv1.Level(99): errors.New("no"),
		} {
			_, err := c.Group.Broadcast(ctx, &parleyv1.BroadcastRequest{Group: "causal", Payload: []byte("x"), Level: level})
			if want == nil && err != nil {
				t.Error(level, err)
			}
			if want != nil {
				demand(t, err, connect.CodeInvalidArgument, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "invalid")
			}
		}
	})
}

// Agreement with evidence, and its decision at other nodes' watchers.
func TestAgree(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		ctx, c, watcher := t.Context(), s.client(t, 0, all), s.client(t, 2, cert.Read)
		decisions, err := watcher.Agree.Decisions(ctx, &parleyv1.DecisionsRequest{})
		if err != nil || !decisions.Receive() {
			t.Fatal(err, decisions.Err())
		}
		var r *parleyv1.AgreeResponse
		for _, a := range []parleyv1.Algorithm{parleyv1.Algorithm_ALGORITHM_EIG, parleyv1.Algorithm_ALGORITHM_SM} {
			r, err = c.Agree.Agree(ctx, &parleyv1.AgreeRequest{Value: []byte("attack"), Algorithm: a, Evidence: true})
			must(t, err)
			d := r.GetDecision()
			if d.GetSource() != "node1" || string(d.GetValue()) != "attack" || d.GetAlgorithm() != a || len(d.GetEvidence()) == 0 {
				t.Error(d)
			}
			for {
				if !decisions.Receive() {
					t.Fatal(decisions.Err())
				}
				if got := decisions.Msg().GetDecision(); got.GetSource() == "node1" && got.GetAlgorithm() == a {
					if got.GetSlot() != d.GetSlot() || !bytes.Equal(got.GetValue(), d.GetValue()) {
						t.Error(got, d)
					}
					break
				}
			}
		}
		r, err = c.Agree.Agree(ctx, &parleyv1.AgreeRequest{Algorithm: parleyv1.Algorithm_ALGORITHM_TETRA})
		if d := r.GetDecision(); err != nil || d.Value == nil || len(d.Value) > 0 || d.GetSlot() != 1 { // the empty value
			t.Error(d, err)
		}
		for _, bad := range []*parleyv1.AgreeRequest{
			{M: 2}, {M: 1 << 30}, {Algorithm: 9}, {Algorithm: parleyv1.Algorithm_ALGORITHM_TETRA, Evidence: true},
		} {
			_, err := c.Agree.Agree(ctx, bad)
			demand(t, err, connect.CodeInvalidArgument, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "invalid")
		}
		_, err = c.Agree.Agree(ctx, &parleyv1.AgreeRequest{Value: make([]byte, 2000)})
		demand(t, err, connect.CodeInvalidArgument, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "too large")
		_, err = c.Agree.Agree(ctx, &parleyv1.AgreeRequest{Value: []byte("\x00nothing\x00")})
		demand(t, err, connect.CodeInvalidArgument, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "reserved")
	})
}

// An invalid request is refused and has no effect.
func TestNotAllowed(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		const nothing = parleyv1.Outcome_OUTCOME_NOTHING_DONE
		for name, options := range protocols {
			ctx, c := t.Context(), s.client(t, 0, all, options...)
			_, err := c.Table.Put(ctx, &parleyv1.PutRequest{Table: "table", Value: []byte("x")})
			demand(t, err, connect.CodeInvalidArgument, nothing, "invalid")
			for _, r := range []*parleyv1.CommitRequest{
				{}, {Transaction: "t"}, {Bodies: map[string][]byte{"node1": nil}},
				{Transaction: "t", Bodies: map[string][]byte{"node1": make([]byte, 61<<10)}},
			} {
				_, err := c.Commit.Commit(ctx, r)
				demand(t, err, connect.CodeInvalidArgument, nothing, "invalid")
			}
			_, err = c.Commit.Commit(ctx, &parleyv1.CommitRequest{Transaction: "t", Bodies: map[string][]byte{"node9": nil}})
			demand(t, err, connect.CodeNotFound, nothing, "no member")
			if name == "gzip" {
				continue // it is short when compressed
			}
			_, err = c.Table.Put(ctx, &parleyv1.PutRequest{Table: "table", Key: []byte("k"), Value: make([]byte, 2<<20)})
			demand(t, err, connect.CodeResourceExhausted, nothing, "too large")
		}
	})
}

// The reason of an abort is reported: no node has a participant here.
func TestAborted(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		r, err := s.client(t, 0, all).Commit.Commit(t.Context(), &parleyv1.CommitRequest{
			Transaction: "aborted", Bodies: map[string][]byte{"node2": []byte("x")},
		})
		if err != nil || r.GetCommitted() || !strings.Contains(r.GetWhy(), "node2") {
			t.Error(r, err)
		}
	})
}

// Consensus by clients of several nodes. With a single caller it waits until its context ends.
func TestConsensus(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		ctx := t.Context()
		request := func(value string) *parleyv1.ConsensusRequest {
			return &parleyv1.ConsensusRequest{
				Proposal: &parleyv1.ProposeRequest{Name: "lunch", Value: []byte(value), Gather: durationpb.New(time.Second / 2)},
				Rule:     parleyv1.Rule_RULE_MAXIMUM, Otherwise: []byte("0"),
			}
		}
		type answer struct {
			*parleyv1.ConsensusResponse
			err error
		}
		answers := make(chan answer, 3)
		for i, value := range []string{"7", "30", "4"} {
			c := s.client(t, i, all)
			go func() {
				r, err := c.Agree.Consensus(ctx, request(value))
				answers <- answer{r, err}
			}()
		}
		for range 3 {
			if a := <-answers; a.err != nil || string(a.GetValue()) != "30" || len(a.GetVector().GetEntries()) != 4 ||
				a.GetVector().GetEntries()[3].Value != nil {
				t.Error(a)
			}
		}
		soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		_, err := s.client(t, 0, all, connect.WithGRPC()).Agree.Propose(soon, &parleyv1.ProposeRequest{Name: "alone"})
		if connect.CodeOf(err) != connect.CodeDeadlineExceeded || !client.Unknown(err) {
			t.Error(err)
		}
	})
}

// The clock and the status of the node.
func TestNode(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		ctx, c := t.Context(), s.client(t, 0, all)
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			now, err := c.Clock.Now(ctx, &parleyv1.NowRequest{})
			if err != nil || time.Now().After(end) {
				t.Fatal(now, err)
			}
			if now.GetSynchronized() {
				if now.GetBound().AsDuration() <= 0 || now.GetTime().AsTime().IsZero() {
					t.Error(now)
				}
				break
			}
		}
		st, err := c.Admin.Status(ctx, &parleyv1.StatusRequest{})
		if err != nil || st.GetNode() != "node1" || st.GetCluster() != "test" || len(st.GetMembers()) != 4 ||
			st.GetState() != parleyv1.NodeState_NODE_STATE_RUNNING || len(st.GetGroups()) != 3 || len(st.GetTables()) != 2 {
			t.Error(st, err)
		}
		if h, err := c.Admin.Health(ctx, &parleyv1.HealthRequest{}); err != nil || !h.GetReady() {
			t.Error(h, err)
		}
		m, err := c.Admin.Measure(ctx, &parleyv1.MeasureRequest{})
		if err != nil || m.GetNodes() != 4 || len(m.GetPeers()) != 3 {
			t.Error(m, err)
		}
		dump, err := c.Admin.Record(ctx, &parleyv1.RecordRequest{})
		must(t, err)
		var trace []byte
		for dump.Receive() {
			trace = append(trace, dump.Msg().GetData()...)
		}
		if dump.Err() != nil || !bytes.HasPrefix(trace, []byte(`{"`)) {
			t.Errorf("%v: %.100s", dump.Err(), trace)
		}
		dump, err = c.Admin.Record(ctx, &parleyv1.RecordRequest{Machine: "clock", Most: 2})
		must(t, err)
		trace = nil
		for dump.Receive() {
			trace = append(trace, dump.Msg().GetData()...)
		}
		if bytes.Count(trace, []byte("\n")) != 5 || !bytes.Contains(trace, []byte(`"machine":"clock"`)) {
			t.Errorf("%v: %s, want a header, a gap, 2 events and a footer", dump.Err(), trace)
		}
		dump, err = c.Admin.Record(ctx, &parleyv1.RecordRequest{Last: durationpb.New(-1)})
		if err == nil {
			dump.Receive()
			err = dump.Err()
		}
		demand(t, err, connect.CodeInvalidArgument, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "invalid")
		_, err = c.Admin.Expel(ctx, &parleyv1.ExpelRequest{Name: "node9"})
		demand(t, err, connect.CodeNotFound, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "no member")
		_, err = c.Commit.Outcome(ctx, &parleyv1.OutcomeRequest{Transaction: "never"})
		demand(t, err, connect.CodeNotFound, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "no transaction")
	})
}

// A node leaves on request and refuses further requests; another one drains first; a third one is expelled. The
// remaining nodes continue.
func TestLeave(t *testing.T) {
	inBubble(t, 7, api.Limits{}, func(t *testing.T, s *served) {
		ctx, stays := t.Context(), s.client(t, 0, all)
		if _, err := s.client(t, 4, all).Admin.Leave(ctx, &parleyv1.LeaveRequest{}); err != nil {
			t.Fatal(err)
		}
		if i := <-s.left; i != 4 {
			t.Error(i)
		}
		if _, err := s.client(t, 3, all).Admin.Drain(ctx, &parleyv1.DrainRequest{}); err != nil {
			t.Fatal(err)
		}
		if i := <-s.left; i != 3 {
			t.Error(i)
		}
		if _, err := stays.Admin.Expel(ctx, &parleyv1.ExpelRequest{Name: "node3"}); err != nil {
			t.Fatal(err)
		}
		st, err := stays.Admin.Status(ctx, &parleyv1.StatusRequest{})
		if err != nil || fmt.Sprint(st.GetTables()[0].GetView().GetMembers()) != "[node1 node2 node6 node7]" {
			t.Error(st.GetTables(), err)
		}
		if _, err := stays.Table.Put(ctx, &parleyv1.PutRequest{Table: "table", Key: []byte("x")}); err != nil {
			t.Error(err)
		}
		_, err = s.client(t, 3, all).Table.Put(ctx, &parleyv1.PutRequest{Table: "table", Key: []byte("x")})
		if err == nil || client.Unknown(err) {
			t.Error(err)
		}
	})
}
