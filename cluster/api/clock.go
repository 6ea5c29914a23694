package api

import (
	"context"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"parley/cluster"
	"parley/cluster/api/parleyv1"
)

// clock implements ClockService.
type clock struct{ s *Server }

func (h clock) Now(context.Context, *parleyv1.NowRequest) (*parleyv1.NowResponse, error) {
	return nowOut(h.s.c.Node.Clock()), nil
}

// nowOut converts a reading of the cluster's time.
func nowOut(r cluster.Reading) *parleyv1.NowResponse {
	out := &parleyv1.NowResponse{
		Time: timestamppb.New(r.Time), Synchronized: r.Synchronized, Offset: durationpb.New(r.Offset),
	}
	if r.Synchronized {
		out.Bound = durationpb.New(r.Bound)
	}
	return out
}
