package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"parley/internal/must"
)

// disk is a file system in a file for the data of one node: small enough to be filled, and on a device that can be
// stalled.
type disk struct{ mount string }

// diskBytes is the size of a disk.
const diskBytes = 384 << 20

// newDisk makes a file system in a file and mounts it on a folder.
func newDisk(ctx context.Context, image, mount string) (d *disk, err error) {
	defer must.Return(&err)
	f := must.Get(os.Create(image))
	must.Do(errors.Join(f.Truncate(diskBytes), f.Close(), os.MkdirAll(mount, 0o700)))
	for _, line := range [][]string{{"mkfs.ext4", "-q", "-F", "-m", "0", image}, {"mount", "-o", "loop", image, mount}} {
		if out, err := exec.CommandContext(ctx, line[0], line[1:]...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%v: %w: %s", line, err, out)
		}
	}
	return &disk{mount}, nil
}

// filler returns the name of the file that takes the free space of a disk.
func (d *disk) filler() string { return filepath.Join(d.mount, "filler") }

// left is the space that fill leaves free, in bytes: too little for a log, and enough to end.
const left = 16 << 20

// fill takes nearly all free space.
func (d *disk) fill() error {
	f, err := os.Create(d.filler())
	if err != nil {
		return err
	}
	at := int64(0)
	for size := int64(64 << 20); size >= 4096; {
		switch err := unix.Fallocate(int(f.Fd()), 0, at, size); {
		case errors.Is(err, unix.ENOSPC):
			size /= 2
		case err != nil:
			return errors.Join(err, f.Close())
		default:
			at += size
		}
	}
	return errors.Join(f.Truncate(max(0, at-left)), f.Close())
}

// free releases the space that fill has taken.
func (d *disk) free() error {
	if err := os.Remove(d.filler()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// The requests to a file system to freeze all writes, and to thaw them.
const (
	fsFreeze = 0xc0045877
	fsThaw   = 0xc0045878
)

// stall freezes all writes for some time.
func (d *disk) stall(how time.Duration) error {
	f, err := os.Open(d.mount)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := unix.IoctlSetInt(int(f.Fd()), fsFreeze, 0); err != nil {
		return fmt.Errorf("the disk can not be held: %w", err)
	}
	time.Sleep(how)
	return unix.IoctlSetInt(int(f.Fd()), fsThaw, 0)
}

// slow delays writes most of the time until the context ends.
func (d *disk) slow(ctx context.Context, each time.Duration) error {
	for ctx.Err() == nil {
		if err := d.stall(each); err != nil {
			return err
		}
		time.Sleep(each / 8)
	}
	return nil
}
