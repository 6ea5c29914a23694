package api

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"parley/cluster"
	"parley/cluster/api/parleyv1"
	"parley/cluster/cert"
	"parley/replica/keyvalue"
)

// What clients are told of each error of a node.
func TestFailed(t *testing.T) {
	with := func(errs ...error) error { return errors.Join(errs...) }
	late, gone := context.DeadlineExceeded, context.Canceled
	for _, c := range []struct {
		err     error
		code    connect.Code
		outcome parleyv1.Outcome
		reason  string
	}{
		{cluster.ErrUnknown, connect.CodeUnknown, unknown, "unknown"},
		{with(cluster.ErrUnknown, cluster.ErrOut), connect.CodeUnknown, unknown, "unknown"},
		{with(cluster.ErrUnknown, cluster.ErrClosed), connect.CodeUnknown, unknown, "unknown"},
		{with(cluster.ErrUnknown, late), connect.CodeDeadlineExceeded, unknown, "deadline"},
		{with(cluster.ErrUnknown, gone), connect.CodeCanceled, unknown, "canceled"},
		{with(cluster.ErrExpired, cluster.ErrUnknown), connect.CodeAborted, unknown, "expired"},
		{&cluster.BlockedError{Tx: "t"}, connect.CodeUnknown, unknown, "blocked"},
		{cluster.ErrTaken, connect.CodeAlreadyExists, nothing, "taken"},
		{cluster.ErrNoTransaction, connect.CodeNotFound, nothing, "no transaction"},
		{keyvalue.ErrMissing, connect.CodeNotFound, nothing, "no value"},
		{keyvalue.ErrNoNumber, connect.CodeFailedPrecondition, nothing, "no number"},
		{keyvalue.ErrTooLarge, connect.CodeResourceExhausted, nothing, "too large"},
		{keyvalue.ErrUnknown, connect.CodeInvalidArgument, nothing, "no such command"},
		{cluster.ErrDraining, connect.CodeUnavailable, nothing, "draining"},
		{cluster.ErrRefused, connect.CodeFailedPrecondition, nothing, "refused"},
		{with(cluster.ErrRefused, late), connect.CodeDeadlineExceeded, nothing, "deadline"},
		{with(cluster.ErrRefused, gone), connect.CodeCanceled, nothing, "canceled"},
		{cluster.ErrExpelled, connect.CodeUnavailable, nothing, "expelled"},
		{cluster.ErrOut, connect.CodeUnavailable, nothing, "not a member"},
		{cluster.ErrClosed, connect.CodeUnavailable, nothing, "closed"},
		{cluster.ErrAbstained, connect.CodeAborted, unknown, "abstained"},
		{cluster.ErrReserved, connect.CodeInvalidArgument, nothing, "reserved"},
		{cluster.ErrSlow, connect.CodeAborted, nothing, "slow"},
		{cluster.ErrGone, connect.CodeOutOfRange, nothing, "gone"},
		{cluster.ErrTooLarge, connect.CodeInvalidArgument, nothing, "too large"},
		{&cluster.RoundError{}, connect.CodeFailedPrecondition, nothing, "too slow"},
		{late, connect.CodeDeadlineExceeded, unknown, "deadline"},
		{gone, connect.CodeCanceled, unknown, "canceled"},
		{errors.New("anything"), connect.CodeInternal, unknown, "internal"},
		{invalid("no"), connect.CodeInvalidArgument, nothing, "invalid"},
	} {
		f := failed(fmt.Errorf("table x: %w", c.err))
		if f.code != c.code || f.outcome != c.outcome || f.reason != c.reason {
			t.Errorf("%v: %v %v %q: %v %v %q was expected", c.err, f.code, f.outcome, f.reason, c.code, c.outcome, c.reason)
		}
	}
	// An agreement that was begun goes on when the node is closed.
	if f := failed(agreeFailed(cluster.ErrClosed)); f.outcome != unknown || f.code != connect.CodeUnavailable {
		t.Error(f)
	}
	if f := failed(agreeFailed(errors.New("so many"))); f.outcome != nothing || f.code != connect.CodeInvalidArgument {
		t.Error(f)
	}
	if f := failed(agreeFailed(late)); f.outcome != unknown || f.code != connect.CodeDeadlineExceeded {
		t.Error(f)
	}
}

// Every method that nodes serve needs a right, the one that its .proto file says.
func TestRights(t *testing.T) {
	files, err := filepath.Glob("parley/v1/*.proto")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	others := map[string]bool{"ParticipantService": true, "LinkService": true} // what nodes call
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

// Who is refused is named in the log once a minute for each reason.
func TestLogged(t *testing.T) {
	s := New(Config{Cluster: cluster.Config{}})
	defer s.stop()
	if !s.counts.refused("a") || s.counts.refused("a") || !s.counts.refused("b") {
		t.Error("not once")
	}
	s.counts.logged["a"] = time.Now().Add(-2 * time.Minute)
	if !s.counts.refused("a") {
		t.Error("never again")
	}
}
