package nodefile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Open listens for the other nodes.
func (f *File) Open(ctx context.Context) (net.Listener, error) {
	l, err := listen(ctx, f.Listen)
	switch {
	case err == nil:
		return l, nil
	case !f.set("listen"):
		return nil, f.addresses[f.self()].wrong("%v", err)
	}
	return nil, f.at("listen", err)
}

// OpenServices listens for clients and for monitoring. It returns nil for an address that the file does not have.
func (f *File) OpenServices(ctx context.Context) (api, metrics net.Listener, err error) {
	if f.API != "" {
		if api, err = listen(ctx, f.API); err != nil {
			return nil, nil, f.at("api", err)
		}
	}
	if f.Metrics != "" {
		if metrics, err = listen(ctx, f.Metrics); err != nil {
			err = f.at("metrics", err)
			if api != nil {
				err = errors.Join(err, api.Close())
			}
			return nil, nil, err
		}
	}
	return api, metrics, nil
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%s is in use: this node is running already, or another process listens there: stop it, or change "+
			"the address", address)
	}
	return l, err
}
