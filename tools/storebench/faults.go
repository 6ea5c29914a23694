package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"parley/internal/must"
)

// patience is how long a candidate may wait for a sync that never returns.
const patience = 15 * time.Second

// faultTable makes a disk call fail, or never return, for candidates that can be given a file system; and
// for all of them, fills a small disk and then makes room again.
func faultTable(dir string, chosen []candidate) {
	heading("candidate", "one write fails", "one sync fails", "a sync never ends", "the disk is full, then has room")
	for _, c := range chosen {
		cells := []string{c.name}
		for _, how := range []string{"write", "sync", "stall", "full"} {
			at := filepath.Join(dir, c.name+how)
			must.Do(os.Mkdir(at, 0o700))
			if !c.faults && how != "full" {
				cells = append(cells, "–")
				continue
			}
			if how == "full" {
				mount := exec.CommandContext(context.Background(), "mount", "-t", "tmpfs", "-o", "size=16m", "none", at)
				if out, err := mount.CombinedOutput(); err != nil {
					must.Failf("%w: %s (it needs root)", err, out)
				}
			}
			cells = append(cells, c.harmed(filepath.Join(at, "log"), how))
			if how == "full" {
				must.Do(exec.CommandContext(context.Background(), "umount", at).Run())
			}
		}
		row(cells...)
	}
}

// asked is the start of what harm prints once an append has failed; the number of acknowledged records
// follows.
const asked = "reported; asked again:"

// harmed lets another process harm a candidate, and reads the folder when that process has ended.
func (c candidate) harmed(dir, how string) string {
	var done int
	out := runApart(c, "harm", dir, how)
	line, rest, _ := strings.Cut(out, "\n")
	if n, _ := fmt.Sscanf(line, asked+"%d", &done); n == 0 {
		return out
	}
	if does, more, ok := strings.Cut(rest, "\n"); ok {
		rest = does
		_, _ = fmt.Sscan(more, &done)
	}
	return fmt.Sprintf("%s %s; reopened: %s", asked, rest, runApart(c, "judge", dir, strconv.Itoa(done)))
}

// harm makes records durable until a call fails or stalls, or the disk is full. Then it makes room, and
// appends the same record again, and 99 others.
func harm(c candidate, dir, how string) string {
	var armed atomic.Bool
	o, limit, ballast := options{size: 1 << 20}, 1<<20, dir+".ballast"
	if how == "full" {
		must.Do(os.WriteFile(ballast, make([]byte, 11<<20), 0o600))
	} else {
		limit, o.fault = 100, func(call string) error {
			if how == "stall" && call == "sync" && armed.Load() {
				select {} // forever
			} else if call == how && armed.CompareAndSwap(true, false) {
				return errors.New("input/output error")
			}
			return nil
		}
	}
	l, done := c.begin(dir, o), 0
	try := func() (err error) {
		if err = l.append(done, [][]byte{record(done, small)}); err == nil {
			done++
		}
		return err
	}
	var err error
	for done < limit && err == nil {
		err = try()
	}
	began, ended := time.Now(), make(chan error, 1)
	if how != "full" {
		armed.Store(true)
		go func() { ended <- try() }()
		select {
		case err = <-ended:
		case <-time.After(patience):
			return fmt.Sprintf("waits for more than %v", patience)
		}
	}
	switch _ = os.Remove(ballast); {
	case err == nil:
		return "not reported"
	case how == "stall":
		return fmt.Sprintf("reported after %.0f s", time.Since(began).Seconds())
	}
	fmt.Println(asked, done)
	before := done
	for range 100 {
		_ = try()
	}
	if done == before {
		return "refuses"
	}
	return fmt.Sprintln("acknowledges", done-before) + fmt.Sprint(done)
}
