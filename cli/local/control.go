package local

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"
)

// control says how "cluster down" reaches the process that runs a cluster: its address and a token. It is in a file
// that only the owner can read.
type control struct {
	Address string `json:"address"`
	Token   string `json:"token"`
}

func controlFile(dir string) string { return filepath.Join(dir, "running.json") }

// The requests to a running cluster, whether it runs and to end, and its answers.
const (
	askRuns = '?'
	itRuns  = "runs"

	askEnd = '!'
	theEnd = "ended"
)

// openControl answers whether the cluster runs. It calls end when a client requests the end, and answers that client
// when the returned function is called.
func openControl(ctx context.Context, dir string, end func()) (ended func(), err error) {
	l, err := listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := control{l.Addr().String(), rand.Text()}
	b, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(controlFile(dir), b, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			who, err := l.Accept()
			if err != nil {
				return
			}
			said := make([]byte, 1+len(c.Token))
			_ = who.SetDeadline(time.Now().Add(time.Second))
			_, err = io.ReadFull(who, said)
			known := err == nil && subtle.ConstantTimeCompare(said[1:], []byte(c.Token)) == 1
			switch {
			case known && said[0] == askRuns:
				_, _ = io.WriteString(who, itRuns)
			case known && said[0] == askEnd:
				end()
				<-over
				_ = who.SetDeadline(time.Now().Add(time.Second))
				_, _ = io.WriteString(who, theEnd)
			}
			_ = who.Close()
		}
	}()
	return func() {
		_ = os.Remove(controlFile(dir))
		close(over)
		_ = l.Close()
		<-done
	}, nil
}

// running is a connection to the process that runs a cluster.
type running struct {
	net.Conn
	token string
}

// dialControl connects to the process that runs the cluster in a folder.
func dialControl(ctx context.Context, dir string) (*running, error) {
	b, err := os.ReadFile(controlFile(dir))
	var c control
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	var conn net.Conn
	if err == nil {
		conn, err = (&net.Dialer{Timeout: 3 * time.Second}).DialContext(ctx, "tcp", c.Address)
	}
	if err != nil {
		return nil, fmt.Errorf("no cluster runs in %s: \"parley cluster up --dir %[1]s\" starts one", dir)
	}
	return &running{conn, c.Token}, nil
}

// runs returns nil if the cluster runs. It asks because another program may have taken its port.
func (c *running) runs() error { return c.ask(askRuns, itRuns, 3*time.Second) }

// awaitEnd requests the end of the cluster and waits for it.
func (c *running) awaitEnd() error { return c.ask(askEnd, theEnd, 45*time.Second) }

// ask sends a request and demands a certain answer.
func (c *running) ask(what rune, want string, limit time.Duration) error {
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, string(what)+c.token); err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(c, 64))
	if err == nil && string(b) != want {
		err = fmt.Errorf("%q was answered", b)
	}
	return err
}
