package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"connectrpc.com/connect"

	"parley/cli/client"
	api "parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
)

// breaking delivers some texts and then fails.
type breaking struct {
	parleyv1.UnimplementedGroupServiceHandler
	texts []string
	err   error
}

func (b breaking) Subscribe(
	_ context.Context, _ *parleyv1.SubscribeRequest, to *connect.ServerStream[parleyv1.SubscribeResponse],
) error {
	for _, text := range b.texts {
		delivery := &parleyv1.Delivery{Payload: []byte(text)}
		if err := to.Send(&parleyv1.SubscribeResponse{Delivery: delivery}); err != nil {
			return err
		}
	}
	return b.err
}

// A delivery log that ends before the last text says why.
func TestListBreaksOff(t *testing.T) {
	lost := connect.NewError(connect.CodeUnavailable, errors.New("gone"))
	for _, c := range []struct {
		serves breaking
		want   string
	}{
		{breaking{texts: []string{"a1", lastWord}, err: lost}, "<nil>"}, // the last text is a delivery like all others
		{breaking{texts: []string{"a1"}, err: lost}, "unavailable: gone"},
		{breaking{texts: []string{"a1"}}, "unexpected EOF"},
	} {
		_, handler := parleyv1.NewGroupServiceHandler(c.serves)
		server := httptest.NewServer(handler)
		group := parleyv1.NewGroupServiceClient(server.Client(), server.URL)
		l, err := subscribe(t.Context(), client.Node{Client: &api.Client{Group: group}})
		if err != nil {
			t.Fatal(err)
		}
		<-l.over
		server.Close()
		if fmt.Sprint(l.err) != c.want || !slices.Equal(l.texts, c.serves.texts) {
			t.Errorf("got %q and %v, want %q and %s", l.texts, l.err, c.serves.texts, c.want)
		}
	}
}

// The printed commands can be called from the shell.
func TestItself(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if got := itself(); got != "go run ./cmd/parley" {
		t.Error(got)
	}
	if err := os.WriteFile(filepath.Join(dir, "parley"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := itself(); got != "parley" {
		t.Error(got)
	}
}
