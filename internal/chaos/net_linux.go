package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"parley/internal/must"
)

// network is one network namespace for each node, each with one interface. This process receives all their packets
// and is the switch between them. So packets can be lost or delayed in one direction only, whatever the kernel was
// built with.
type network struct {
	spaces []*space

	mu    sync.Mutex
	rules map[[2]int]rule // by sender and receiver
	dice  *rand.Rand
}

// space is the namespace of one node: a thread that has entered it and stays in it.
type space struct {
	fd   int // of the namespace
	tun  *os.File
	work chan func()
}

// address returns the address of a node in the network.
func (*network) address(i int) string { return fmt.Sprintf("10.99.0.%d", i+1) }

// newNetwork makes the namespaces.
func newNetwork(n int, seed uint64) (*network, error) {
	nw := &network{rules: make(map[[2]int]rule), dice: rand.New(rand.NewPCG(seed, 1))}
	for i := range n {
		s, err := newSpace(nw.address(i))
		if err != nil {
			return nil, fmt.Errorf("a network namespace: %w", err)
		}
		nw.spaces = append(nw.spaces, s)
	}
	for i := range n {
		go nw.carry(i)
	}
	return nw, nil
}

// newSpace makes a namespace with an interface that has the given address.
func newSpace(address string) (*space, error) {
	s := &space{work: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // forever: no other goroutine may use the thread
		err := s.enter(address)
		made <- err
		if err != nil {
			return
		}
		for f := range s.work {
			f()
		}
	}()
	return s, <-made
}

// enter makes the namespace and moves the calling thread into it.
func (s *space) enter(address string) (err error) {
	defer must.Return(&err)
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	s.fd = must.Get(unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0))
	s.tun = must.Get(openTun("eth0"))
	return errors.Join(up("lo", ""), up("eth0", address))
}

// do runs a function in the namespace.
func (s *space) do(f func() error) error {
	done := make(chan error)
	s.work <- func() { done <- f() }
	return <-done
}

// dial connects from within the namespace.
func (s *space) dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // forever: the thread ends with the goroutine
		if err = unix.Setns(s.fd, unix.CLONE_NEWNET); err == nil {
			c, err = new(net.Dialer).DialContext(ctx, network, address)
		}
	}()
	<-done
	return c, err
}

// openTun makes an interface whose packets this process reads and writes.
func openTun(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	r, err := unix.NewIfreq(name)
	if err == nil {
		r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("an interface: %w", err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}

// up assigns an address in a /24 network to an interface, unless it has one, and starts the interface.
func up(name, address string) (err error) {
	defer must.Return(&err)
	fd := must.Get(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))
	defer func() { _ = unix.Close(fd) }()
	set := func(what uint, fill func(r *unix.Ifreq) error) {
		r, err := unix.NewIfreq(name)
		if err == nil {
			err = fill(r)
		}
		if err == nil {
			err = unix.IoctlIfreq(fd, what, r)
		}
		if err != nil {
			must.Failf("%s: %w", name, err)
		}
	}
	if address != "" {
		ip, mask := net.ParseIP(address).To4(), net.IPv4(255, 255, 255, 0).To4()
		set(unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(ip) })
		set(unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr(mask) })
	}
	set(unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error {
		r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		return nil
	})
	return nil
}

// carry forwards the packets of a node.
func (nw *network) carry(from int) {
	buf := make([]byte, 1<<16)
	for {
		n, err := nw.spaces[from].tun.Read(buf)
		if err != nil {
			return
		}
		to, ok := receiver(buf[:n])
		if !ok || to == from || to >= len(nw.spaces) {
			continue
		}
		wait, lost := nw.drawTransit(from, to)
		switch {
		case lost:
		case wait > 0:
			packet := append([]byte(nil), buf[:n]...)
			time.AfterFunc(wait, func() { nw.hand(to, packet) })
		default:
			nw.hand(to, buf[:n])
		}
	}
}

// receiver returns the node that a packet is addressed to.
func receiver(packet []byte) (int, bool) {
	if len(packet) < 20 || packet[0]>>4 != 4 {
		return 0, false // not IPv4: the kernel's own packets
	}
	to := binary.BigEndian.Uint32(packet[16:])
	return int(to&0xff) - 1, to>>8 == 10<<16|99<<8
}

func (nw *network) hand(to int, packet []byte) {
	_, _ = nw.spaces[to].tun.Write(packet) // a full interface loses packets
}

// drawTransit draws what happens to one packet.
func (nw *network) drawTransit(from, to int) (wait time.Duration, lost bool) {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	r, is := nw.rules[[2]int{from, to}]
	if !is {
		return 0, false
	}
	if r.lost > 0 && nw.dice.Float64() < r.lost {
		return 0, true
	}
	wait = r.delay
	if r.jitter > 0 {
		wait += time.Duration(nw.dice.Int64N(int64(r.jitter)))
	}
	return wait, false
}

// set applies a rule to packets from some nodes to others.
func (nw *network) set(r rule, from, to []int) {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	for _, f := range from {
		for _, t := range to {
			nw.rules[[2]int{f, t}] = r
		}
	}
}

// clear removes all rules.
func (nw *network) clear() {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	clear(nw.rules)
}
