package api_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"parley/cluster"
	"parley/cluster/api"
	"parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
	"parley/replica/keyvalue"
	"parley/replica/rsm"
)

// deceiver is a table that answers with other values than it has.
type deceiver struct{ *keyvalue.Table }

func (d deceiver) Apply(command []byte) []byte {
	return bytes.ReplaceAll(d.Table.Apply(command), []byte("paid"), []byte("owed"))
}

// quorum returns a client of all nodes, of which one may be faulty.
func (s *served) quorum(t *testing.T) *client.Quorum {
	t.Helper()
	var nodes []*client.Client
	for i := range s.nodes {
		nodes = append(nodes, s.client(t, len(s.nodes)-1-i, all))
	}
	q, err := client.NewQuorum(1, nodes...)
	must(t, err)
	return q
}

// put puts a value in a session with a quorum.
func put(ctx context.Context, s *client.QuorumSession, key, value string) (version uint64, err error) {
	r, err := s.Do(ctx, func(ctx context.Context, c *client.Client, call *parleyv1.Call) (proto.Message, error) {
		return c.Table.Put(ctx, &parleyv1.PutRequest{Table: "safe", Key: []byte(key), Value: []byte(value), Call: call})
	})
	answer, _ := r.(*parleyv1.PutResponse)
	return answer.GetVersion(), err
}

// get reads a value from a quorum.
func get(ctx context.Context, q *client.Quorum, key string) (value string, err error) {
	r, err := client.Agreed(ctx, q, func(ctx context.Context, c *client.Client) (*parleyv1.GetResponse, error) {
		return c.Table.Get(ctx, &parleyv1.GetRequest{Table: "safe", Key: []byte(key)})
	})
	return string(r.GetValue()), err
}

// A client that asks m+1 nodes of a table of level byzantine accepts no lie, although a node that lies is called first.
// It gets its answers, too, if a node is silent in place of lying.
func TestQuorum(t *testing.T) {
	for _, lies := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := serveSafe(t, 4, api.Limits{}, func(i int, c *cluster.Config) {
				if safe := &c.Tables[2]; lies && i == 3 {
					safe.New = func() rsm.Application { return deceiver{keyvalue.New()} }
				}
			})
			t.Cleanup(func() { s.close(t) })
			if !lies {
				s.network.Cut(s.network.Host("clients"), s.network.Host("node4"))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			q := s.quorum(t)
			session := q.Session("safe")
			for i := range uint64(5) {
				if version, err := put(ctx, session, "bill", "paid"); version != i+1 || err != nil {
					t.Fatal(version, err)
				}
			}
			for range 5 {
				if value, err := get(ctx, q, "bill"); value != "paid" || err != nil {
					t.Fatal(value, err)
				}
			}
			_, err := get(ctx, q, "nothing")
			if client.Detail(err).GetReason() != "no value" || client.Unknown(err) {
				t.Error(err)
			}
			if _, err := put(ctx, q.Session("none"), "bill", "paid"); client.Detail(err).GetReason() != "no table" {
				t.Error(err)
			}
			if !lies {
				return
			}
			r, err := s.client(t, 3, all).Table.Get(ctx, &parleyv1.GetRequest{Table: "safe", Key: []byte("bill")})
			if string(r.GetValue()) != "owed" || err != nil {
				t.Errorf("the node that lies answers %v, %v", r, err)
			}
		})
	}
}
