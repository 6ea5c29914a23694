package exercise

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A check that is killed takes the grader with it.
func TestGraderEndsWithCheck(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	check := exec.Command(os.Args[0])
	check.Env = append(os.Environ(), variable+"=checks", address+"="+listener.Addr().String())
	if err := check.Start(); err != nil {
		t.Fatal(err)
	}
	c, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := check.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = check.Wait()
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the grader lives on: %v", err)
	}
}
