package cluster_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/cluster"
	"parley/cluster/cert"
	"parley/cluster/link/memory"
)

// A peer with a certificate of another cluster, an expired one, or a revoked one is logged once a minute and not
// once a packet, each separately, although all come from one address. A peer that invents a new name each time
// does not fill the log.
func TestBadCertificatesAreLoggedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		yesterday := time.Now().Add(-24 * time.Hour)
		clock := func() time.Time { return yesterday }
		a, err := cert.NewAuthority("test", 1000*time.Hour, func() time.Time { return clock() })
		must(t, err)
		issue := func(a *cert.Authority, name string) *cert.Issued {
			t.Helper()
			one, err := a.IssueNode(name, nil, time.Hour)
			must(t, err)
			return one
		}
		expired := issue(a, "expired")
		clock = time.Now
		revoked, good := issue(a, "revoked"), issue(a, "node2")
		must(t, second(a.Revoke("revoked")))
		trust, err := cert.NewTrust(a.Anchors(), nil)
		must(t, err)
		other, err := cert.NewAuthority("other", 1000*time.Hour, nil)
		must(t, err)
		at := memory.New(memory.Options{})
		var log logged
		config := cluster.Config{
			Name: "node2", Self: good.Self(), Trust: trust, Network: at.Host("node2"), SignerKey: good.Signer,
			Log: log.logger(),
			Members: []cluster.Member{
				{Name: "node1", Address: at.Host("node1").Addr(1)},
				{Name: "node2", Address: at.Host("node2").Addr(7000), Signer: good.SignerKey()},
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		var joining sync.WaitGroup
		joining.Go(func() { // it waits for the first node until the end
			if node, err := cluster.Join(ctx, config); err == nil {
				t.Error("it has joined alone", node.Close())
			}
		})
		defer joining.Wait()
		defer cancel()
		dial := func(one *cert.Issued) {
			to := cert.Identity{Cluster: "test", Kind: cert.Node, Name: "node2"}
			under, err := at.Host("outside").DialContext(t.Context(), "tcp", config.Members[1].Address)
			must(t, err)
			c := tls.Client(under, trust.Dial(one.Self(), to))
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
			_, _ = c.Read(make([]byte, 1)) // until it is refused
			_ = c.Close()
		}
		stranger := issue(other, "stranger")
		for range 4 { // for more than 1 s: the text about an expired certificate contains the time
			time.Sleep(300 * time.Millisecond)
			for _, one := range []*cert.Issued{stranger, expired, revoked} {
				dial(one)
			}
		}
		for i := range 25 {
			dial(issue(other, fmt.Sprint("made-up", i)))
		}
		within(t, 5*time.Second, "all are refused", func() bool { return strings.Contains(log.String(), "made-up5") })
		for _, name := range []string{"parley://other/node/stranger", "parley://test/node/expired", "parley://test/node/revoked"} {
			if n := strings.Count(log.String(), name); n != 1 {
				t.Errorf("%s is named %d times", name, n)
			}
		}
		if lines := strings.Count(log.String(), "link refused or lost"); lines > 16+2 {
			t.Errorf("%d lines:\n%s", lines, &log)
		}
	})
}
