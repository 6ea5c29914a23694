//go:build unix

package link

import (
	"net"
	"testing"
	"time"
)

// Connections of the system spill, too, after what a socket accepts.
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
