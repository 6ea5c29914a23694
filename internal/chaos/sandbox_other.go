//go:build !linux

package main

import (
	"context"
	"errors"
)

var errSandbox = errors.New("faults of networks and disks need Linux")

func enterSandbox(context.Context) (status int, entered bool, err error) { return 0, true, errSandbox }

func newEnvironment(context.Context, string, int, uint64) (environment, faultyNetwork, []faultyDisk, error) {
	return nil, nil, nil, errSandbox
}
