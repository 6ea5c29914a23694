package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"parley/agreement/stream"
	"parley/cluster"
	"parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
	"parley/cluster/cert"
	"parley/cluster/host"
	"parley/replica/keyvalue"
)

// The errors that clients get for each error of a node.
func TestFailed(t *testing.T) {
	with := errors.Join
	late, gone := context.DeadlineExceeded, context.Canceled
	for _, c := range []struct {
		err     error
		code    connect.Code
		outcome parleyv1.Outcome
		reason  string
	}{
		{cluster.ErrUnknown, connect.CodeUnknown, unknown, "unknown"},
		{with(cluster.ErrUnknown, cluster.ErrNotMember), connect.CodeUnknown, unknown, "unknown"},
		{with(cluster.ErrUnknown, cluster.ErrClosed), connect.CodeUnknown, unknown, "unknown"},
		{with(cluster.ErrUnknown, late), connect.CodeDeadlineExceeded, unknown, "deadline"},
		{with(cluster.ErrUnknown, gone), connect.CodeCanceled, unknown, "canceled"},
		{with(cluster.ErrExpired, cluster.ErrUnknown), connect.CodeAborted, unknown, "expired"},
		{&cluster.BlockedError{Tx: "t"}, connect.CodeUnknown, unknown, "blocked"},
		{cluster.ErrTaken, connect.CodeAlreadyExists, nothing, "taken"},
		{with(cluster.ErrTaken, cluster.ErrUnknown), connect.CodeAlreadyExists, unknown, "taken"},
		{cluster.ErrNoTransaction, connect.CodeNotFound, nothing, "no transaction"},
		{keyvalue.ErrMissing, connect.CodeNotFound, nothing, "no value"},
		{keyvalue.ErrNoNumber, connect.CodeFailedPrecondition, nothing, "no number"},
		{keyvalue.ErrTooLarge, connect.CodeResourceExhausted, nothing, "too large"},
		{keyvalue.ErrUnknown, connect.CodeInvalidArgument, nothing, "no such command"},
		{cluster.ErrDraining, connect.CodeUnavailable, nothing, "draining"},
		{cluster.ErrNoRoom, connect.CodeUnavailable, nothing, "disk full"},
		{cluster.ErrRefused, connect.CodeFailedPrecondition, nothing, "refused"},
		{with(cluster.ErrRefused, late), connect.CodeDeadlineExceeded, nothing, "deadline"},
		{with(cluster.ErrRefused, gone), connect.CodeCanceled, nothing, "canceled"},
		{cluster.ErrExpelled, connect.CodeUnavailable, nothing, "expelled"},
		{cluster.ErrNotMember, connect.CodeUnavailable, nothing, "not a member"},
		{cluster.ErrClosed, connect.CodeUnavailable, nothing, "closed"},
		{cluster.ErrAbstained, connect.CodeAborted, unknown, "abstained"},
		{cluster.ErrReserved, connect.CodeInvalidArgument, nothing, "reserved"},
		{cluster.ErrSlowSubscriber, connect.CodeAborted, nothing, "slow"},
		{cluster.ErrNotRetained, connect.CodeOutOfRange, nothing, "gone"},
		{cluster.ErrTooLarge, connect.CodeInvalidArgument, nothing, "too large"},
		{&cluster.RoundError{}, connect.CodeFailedPrecondition, nothing, "too slow"},
		{&cluster.RoundError{Slow: []cluster.Slow{{Delay: 0}}}, connect.CodeUnavailable, nothing, "not connected"},
		{late, connect.CodeDeadlineExceeded, unknown, "deadline"},
		{gone, connect.CodeCanceled, unknown, "canceled"},
		{errors.New("anything"), connect.CodeInternal, unknown, "internal"},
		{with(cluster.ErrUnknown, cluster.ErrAbstained), connect.CodeUnknown, unknown, "unknown"},
		{invalid("no"), connect.CodeInvalidArgument, nothing, "invalid"},
	} {
		f := failed(fmt.Errorf("table x: %w", c.err))
		if f.code != c.code || f.outcome != c.outcome || f.reason != c.reason {
			t.Errorf("%v: %v %v %q: %v %v %q was expected", c.err, f.code, f.outcome, f.reason, c.code, c.outcome, c.reason)
		}
	}
	for _, c := range []struct {
		err     error
		code    connect.Code
		outcome parleyv1.Outcome
		reason  string
	}{
		// An agreement in flight continues when the node is closed or its machine has failed.
		{cluster.ErrClosed, connect.CodeUnavailable, nothing, "closed"},
		{with(cluster.ErrUnknown, cluster.ErrClosed), connect.CodeUnknown, unknown, "unknown"},
		{with(cluster.ErrUnknown, errors.New("host: it broke")), connect.CodeUnknown, unknown, "unknown"},
		{host.ErrStopped, connect.CodeInternal, unknown, "internal"},
		{errors.New("so many"), connect.CodeInternal, unknown, "internal"},
		{with(cluster.ErrRefused, errors.New("so many")), connect.CodeInvalidArgument, nothing, "invalid"},
		{with(cluster.ErrRefused, cluster.ErrReserved), connect.CodeInvalidArgument, nothing, "reserved"},
		{cluster.ErrTooLarge, connect.CodeInvalidArgument, nothing, "too large"},
		{cluster.ErrDraining, connect.CodeUnavailable, nothing, "draining"},
		{&cluster.RoundError{}, connect.CodeFailedPrecondition, nothing, "too slow"},
		{&cluster.RoundError{Slow: []cluster.Slow{{Delay: 0}}}, connect.CodeUnavailable, nothing, "not connected"},
		{with(cluster.ErrUnknown, late), connect.CodeDeadlineExceeded, unknown, "deadline"},
		{with(cluster.ErrRefused, late), connect.CodeDeadlineExceeded, nothing, "deadline"},
		{with(cluster.ErrUnknown, cluster.ErrAbstained), connect.CodeAborted, unknown, "abstained"},
		{with(cluster.ErrRefused, cluster.ErrAbstained), connect.CodeAborted, nothing, "abstained"},
	} {
		if f := failed(agreeFailed(c.err)); f.code != c.code || f.outcome != c.outcome || f.reason != c.reason {
			t.Errorf("of an agreement: %v: %v %v %q", c.err, f.code, f.outcome, f.reason)
		}
	}
}

// A failed method that only reads had no effect, and its text does not say that the outcome is unknown. Query is
// not such a method: its outcome depends on the command.
func TestReads(t *testing.T) {
	lost := fmt.Errorf("%w: %w", cluster.ErrUnknown, context.DeadlineExceeded)
	for _, c := range []struct {
		name      string
		procedure string
		err       error
		outcome   parleyv1.Outcome
	}{
		{"a read", parleyv1.TableServiceGetProcedure, lost, nothing},
		{"a change", parleyv1.TableServicePutProcedure, lost, unknown},
		{"a query that may change something", parleyv1.TableServiceQueryProcedure, maybeRead(lost, false), unknown},
		{"a query that reads", parleyv1.TableServiceQueryProcedure, maybeRead(lost, true), nothing},
	} {
		s := New(Config{})
		ctx := context.WithValue(t.Context(), callKey{}, &call{s: s, on: http.NewResponseController(httptest.NewRecorder())})
		err := s.around(ctx, connect.Spec{Procedure: c.procedure}, func(context.Context) error { return c.err })
		if d := client.Detail(err); d.GetOutcome() != c.outcome || d.GetReason() != "deadline" {
			t.Errorf("%s: %v, %v", c.name, err, d)
		}
		if strings.Contains(err.Error(), "outcome is unknown") != (c.outcome == unknown) {
			t.Errorf("%s: %v", c.name, err)
		}
		s.stop()
	}
}

// The reserved value is no value to clients.
func TestNoValue(t *testing.T) {
	none, some := []byte("\x00nothing\x00"), []byte("x")
	d := agreement{&Server{}}.decision(cluster.Decision{Value: none, Evidence: []stream.Evidence{{Tree: []stream.Branch{
		{In: none, Out: some}, {In: some, Out: none}, {In: []byte{}, Out: nil},
	}}}})
	tree := d.GetEvidence()[0].GetTree()
	if d.Value != nil || tree[0].In != nil || tree[0].Out == nil || tree[1].In == nil || tree[1].Out != nil ||
		tree[2].In == nil || tree[2].Out != nil {
		t.Error(d)
	}
}

// Every method of a node needs the right that its .proto file names.
func TestRights(t *testing.T) {
	files, err := filepath.Glob("parley/v1/*.proto")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	others := map[string]bool{"ParticipantService": true, "LinkService": true} // called by nodes
	said, services, method := make(map[string]string), regexp.MustCompile(`^service (\w+)`), regexp.MustCompile(`^  rpc (\w+)`)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		service, right := "", ""
		for line := range strings.Lines(string(b)) {
			if m := services.FindStringSubmatch(line); m != nil {
				service = m[1]
			}
			if r, ok := strings.CutPrefix(strings.TrimSpace(line), "// Right: "); ok {
				right = strings.Trim(r, ".\n")
			}
			if m := method.FindStringSubmatch(line); m != nil && !others[service] {
				said["/parley.v1."+service+"/"+m[1]], right = right, ""
			}
		}
	}
	methods := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("parley.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for j := 0; j < s.Methods().Len() && !others[string(s.Name())]; j++ {
				name := fmt.Sprintf("/%s/%s", s.FullName(), s.Methods().Get(j).Name())
				methods++
				if want, err := cert.ParseRights(said[name]); err != nil || rights[name] != want {
					t.Errorf("%s needs %q, and the file says %q", name, rights[name], said[name])
				}
			}
		}
		return true
	})
	if methods != len(rights) || methods != len(said) || methods < 20 {
		t.Errorf("%d methods, %d with rights, %d in the files", methods, len(rights), len(said))
	}
}

// A refused client is logged once a minute for each reason, with a limit on the number of clients.
func TestLogged(t *testing.T) {
	s := New(Config{Cluster: cluster.Config{}})
	defer s.stop()
	refused := s.counts.refused
	if !refused("a", "x") || refused("a", "x") || !refused("b", "x") || !refused("a", "y") || refused("a", "y") {
		t.Error("not once")
	}
	s.counts.logged[refusedFor{"a", "x"}] = time.Now().Add(-2 * time.Minute)
	if !refused("a", "x") {
		t.Error("never again")
	}
	named := 0
	for i := range 1000 {
		if refused("c", strconv.Itoa(i)) {
			named++
		}
	}
	if named > mostRefused || len(s.counts.logged) > mostRefused+1 || !refused("d", "x") || refused("d", "y") {
		t.Errorf("%d are named, and %d remembered", named, len(s.counts.logged))
	}
}

// Every metric of a node has a meaning in sentences, and stands in the documentation.
func TestMeanings(t *testing.T) {
	b, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("figures.go")
	if err != nil {
		t.Fatal(err)
	}
	sent := make(map[string]bool)
	for _, call := range regexp.MustCompile(`\.(?:gauge|count)\("(\w+)"`).FindAllSubmatch(source, -1) {
		sent[string(call[1])] = true
	}
	if len(sent) < 40 {
		t.Errorf("got %d metrics, want at least 40", len(sent))
	}
	for name := range sent {
		if text := meanings[name]; !strings.HasSuffix(text, ".") {
			t.Errorf("%s: got meaning %q, want sentences", name, text)
		}
		if !strings.Contains(string(b), "`parley_"+name+"`") {
			t.Errorf("docs/reference/metrics.md has no metric %s", name)
		}
	}
	for name := range meanings {
		if !sent[name] {
			t.Errorf("%s has a meaning, and is no metric", name)
		}
	}
}
