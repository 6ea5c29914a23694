package server

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Live is a cluster that the page shows and acts on.
type Live interface {
	// Do carries out a request, and returns a JSON object.
	Do(ctx context.Context, request []byte) []byte
	// Watch calls emit with the state of the cluster, a JSON object, until ctx ends or emit fails. If it refuses the
	// request, it returns an error and has called emit never. Such an error has the method BadRequest if the request
	// is wrong, so that it would be refused again.
	Watch(ctx context.Context, request []byte, emit func([]byte) error) error
}

// Acts is the maximum number of requests to the cluster at the same time, and maxAct the size of the largest.
const (
	Acts   = 16
	maxAct = 4 << 10
)

// desk passes requests to the cluster.
type desk struct {
	Live
	acts chan struct{} // holds an element for each request in progress
}

// act passes a request on.
func (d *desk) act(w http.ResponseWriter, r *http.Request) *refusal {
	select {
	case d.acts <- struct{}{}:
		defer func() { <-d.acts }()
	default:
		return refuse(http.StatusServiceUnavailable, "Refused: %d requests are in progress already: try again later.", Acts)
	}
	b, err := body(w, r, maxAct)
	if err != nil {
		return err
	}
	supported(http.NewResponseController(w).SetReadDeadline(time.Time{})) // otherwise it would end the request
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(d.Do(r.Context(), b), '\n')) // fails only if the client has gone
	return nil
}

// watch passes the states of the cluster on, a line for each.
func (d *desk) watch(w http.ResponseWriter, r *http.Request) *refusal {
	b, refused := body(w, r, maxAct)
	if refused != nil {
		return refused
	}
	conn := http.NewResponseController(w)
	supported(conn.SetReadDeadline(time.Time{}))
	ctx, end := context.WithCancel(r.Context())
	defer end()
	out := lines{w: w, conn: conn, end: end}
	begun := false
	err := d.Watch(ctx, b, func(state []byte) error {
		if !begun {
			w.Header().Set("Content-Type", "application/x-ndjson")
			begun = true
		}
		if out.write("state", state); out.failed {
			return errors.New("the client has gone")
		}
		return nil
	})
	if err != nil && !begun {
		status := http.StatusServiceUnavailable
		if errors.As(err, new(interface{ BadRequest() bool })) {
			status = http.StatusBadRequest
		}
		return refuse(status, "Refused: %v.", err)
	}
	return nil
}
