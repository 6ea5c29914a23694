//go:build unix

package link

import (
	"net"
	"testing"
	"time"
)

// The system's connections spill too, by what a socket takes.
func TestSocketSpills(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	ours, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	defer ours.Close()
	there, err := l.Accept()
	must(t, err)
	defer there.Close()
	spills(t, ours, there, time.Hour, func() {})
}
