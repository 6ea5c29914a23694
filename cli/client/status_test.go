package client

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"parley/cluster/api/parleyv1"
)

// Status names the disks that are slow or nearly full, and no others.
func TestStatusPrintsDisks(t *testing.T) {
	var out strings.Builder
	node := func(name string, s *parleyv1.StoreStatus) *parleyv1.StatusResponse {
		return &parleyv1.StatusResponse{Node: name, Store: s}
	}
	printDisks(&out, []*parleyv1.StatusResponse{
		node("a", nil), node("b", &parleyv1.StoreStatus{Low: "200 MiB are free"}),
		node("c", &parleyv1.StoreStatus{Full: "40 MiB are free", Slowest: durationpb.New(3 * time.Second)}),
		node("d", &parleyv1.StoreStatus{Slowest: durationpb.New(time.Millisecond)}),
	})
	want := "\nnode\tdisk\nb\twarning: 200 MiB are free\nc\trequests that write are refused: 40 MiB are free\n" +
		"c\tthe slowest commit took 3s\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
