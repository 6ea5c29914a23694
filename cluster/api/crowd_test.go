package api_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"parley/cluster/api"
	"parley/cluster/api/parleyv1"
	"parley/cluster/cert"
)

// Silent connections of one address keep no client out, neither of another address nor of the same one.
func TestSilentCrowd(t *testing.T) {
	inBubble(t, 1, api.Limits{}, func(t *testing.T, s *served) {
		var silent []net.Conn
		for range 600 {
			c, err := s.network.Host("crowd").DialContext(t.Context(), "tcp", s.addresses[0])
			must(t, err)
			silent = append(silent, c)
		}
		for _, host := range []string{"clients", "crowd"} {
			self := s.certificate(t, "of-"+host, all)
			var calls sync.WaitGroup
			errs := make([]error, 40)
			for i := range errs {
				c := s.from(t, host, self)
				calls.Go(func() { _, errs[i] = c.Admin.Status(t.Context(), &parleyv1.StatusRequest{}) })
			}
			calls.Wait()
			for i, err := range errs {
				if err != nil {
					t.Errorf("client %d from host %s: %v", i, host, err)
				}
			}
		}
		if n := s.refused(t, "crowd"); n == "0" {
			t.Error("no silent connection had to go")
		}
		for _, c := range silent {
			_ = c.Close()
		}
	})
}

// An address that connects too often is refused, and others are not.
func TestConnectionRate(t *testing.T) {
	inBubble(t, 1, api.Limits{AddressRate: 1, AddressOnce: 20}, func(t *testing.T, s *served) {
		for range 30 {
			c, err := s.network.Host("crowd").DialContext(t.Context(), "tcp", s.addresses[0])
			if err == nil {
				_ = c.Close()
			}
		}
		// The addresses share 1024 counters by a secret hash, so that one in 1024 shares its counter with the
		// crowd; all three of them do not.
		turned := 10
		for _, host := range []string{"clients", "others", "third"} {
			_, err := s.from(t, host, s.certificate(t, "of-"+host, all)).Admin.Status(t.Context(), &parleyv1.StatusRequest{})
			if err == nil {
				break
			}
			if turned++; turned > 12 {
				t.Error(err)
			}
		}
		if n := s.refused(t, "rate"); n != strconv.Itoa(turned) {
			t.Errorf("got %s connections turned away, want %d", n, turned)
		}
	})
}

// A client that resets the streams of its requests at once loses its connection. Another client is served.
func TestRapidReset(t *testing.T) {
	inBubble(t, 1, api.Limits{Resets: 5}, func(t *testing.T, s *served) {
		self := s.certificate(t, "reader", cert.Read)
		transport := &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{self.TLS}},
			DialContext:     s.network.Host("crowd").DialContext, ForceAttemptHTTP2: true,
		}
		defer transport.CloseIdleConnections()
		c, url := &http.Client{Transport: transport}, "https://"+s.addresses[0]+"/parley.v1.GroupService/Subscribe"
		for range 200 {
			ctx, cancel := context.WithCancel(t.Context())
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("\x00\x00\x00\x00\x13{\"group\":\"total\"}  "))
			must(t, err)
			r.Header.Set("Content-Type", "application/connect+json")
			if answer, err := c.Do(r); err == nil {
				cancel()
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
			cancel()
			time.Sleep(time.Millisecond)
		}
		if n := s.refused(t, "resets"); n == "0" {
			t.Error("resets are not bounded")
		}
		if _, err := s.from(t, "clients", s.certificate(t, "c", all)).Admin.Status(t.Context(), &parleyv1.StatusRequest{}); err != nil {
			t.Error(err)
		}
	})
}

// A client above its request rate gets an error. Others are served.
func TestRequestRate(t *testing.T) {
	inBubble(t, 1, api.Limits{Rate: 10}, func(t *testing.T, s *served) {
		c, refused := s.client(t, 0, all), 0
		for range 30 {
			_, err := c.Admin.Status(t.Context(), &parleyv1.StatusRequest{})
			if connect.CodeOf(err) == connect.CodeResourceExhausted {
				refused++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if refused < 10 {
			t.Errorf("%d of 30 requests were refused", refused)
		}
		if _, err := s.from(t, "clients", s.certificate(t, "other", all)).Admin.Status(t.Context(), &parleyv1.StatusRequest{}); err != nil {
			t.Error(err)
		}
	})
}

// No error contains more than 256 bytes of a client's input.
func TestErrorsAreBrief(t *testing.T) {
	inBubble(t, 1, api.Limits{}, func(t *testing.T, s *served) {
		c, long := s.client(t, 0, all), strings.Repeat("long", 10_000)
		_, table := c.Table.Get(t.Context(), &parleyv1.GetRequest{Table: long, Key: []byte("x")})
		_, group := c.Group.Fetch(t.Context(), &parleyv1.FetchRequest{Group: long})
		_, member := c.Admin.Expel(t.Context(), &parleyv1.ExpelRequest{Name: long})
		_, commit := c.Commit.Commit(t.Context(), &parleyv1.CommitRequest{Transaction: long})
		for what, err := range map[string]error{"table": table, "group": group, "member": member, "transaction": commit} {
			if err == nil || strings.Count(err.Error(), "long") > 64 || len(err.Error()) > 400 {
				t.Errorf("%s: an error of %d bytes", what, len(fmt.Sprint(err)))
			}
		}
	})
}
