package api

import (
	"context"
	"errors"
	"math"
	"strconv"

	"connectrpc.com/connect"

	"parley/cluster"
	"parley/cluster/api/parleyv1"
	"parley/cluster/cert"
	"parley/replica/keyvalue"
	"parley/replica/rsm"
)

// table is a node's replica of a state machine, with what the API knows of the machine.
type table struct {
	*cluster.Table
	keys  bool                      // a table of keys and values
	reads func(command []byte) bool // reports whether a command changes nothing; nil if not known
	// refuses reports whether an answer says that the command was refused and changed nothing; nil if not known.
	refuses func(answer []byte) bool
	// idle are unused sessions for callers that have none of their own.
	idle chan *cluster.Session
}

// mostIdle is how many idle sessions are kept.
const mostIdle = 64

func newTable(t *cluster.Table, c cluster.TableConfig) *table {
	out := &table{Table: t, keys: c.New == nil, idle: make(chan *cluster.Session, mostIdle)}
	var machine any = keyvalue.New()
	if c.New != nil {
		machine = c.New()
		_, out.keys = machine.(*keyvalue.Table)
	}
	if r, ok := machine.(interface{ Reads(command []byte) bool }); ok {
		out.reads = r.Reads
	}
	if r, ok := machine.(interface{ Refuses(answer []byte) bool }); ok {
		out.refuses = r.Refuses
	}
	return out
}

// tables implements TableService.
type tables struct{ s *Server }

// find returns the table with a name.
func (h tables) find(name string) (*table, error) {
	t := h.s.tables[name]
	if t == nil {
		return nil, refuse(connect.CodeNotFound, "no table", "there is no table %q", name)
	}
	return t, nil
}

// findKeys is find for tables of keys and values. It also checks the key and the value.
func (h tables) findKeys(name string, key, value []byte) (*table, error) {
	t, err := h.find(name)
	switch {
	case err != nil:
		return nil, err
	case !t.keys:
		return nil, refuse(connect.CodeFailedPrecondition, "no keys", "table %q is not one of keys and values", name)
	case len(key) == 0 || len(key) > keyvalue.MaxKey:
		return nil, invalid("a key of %d bytes: allowed are 1 to %d", len(key), keyvalue.MaxKey)
	case len(value) > keyvalue.MaxValue:
		return nil, invalid("a value of %d bytes: at most %d are allowed", len(value), keyvalue.MaxValue)
	}
	return t, nil
}

func (h tables) Open(ctx context.Context, r *parleyv1.OpenRequest) (*parleyv1.OpenResponse, error) {
	t, err := h.find(r.GetTable())
	if err != nil {
		return nil, err
	}
	session, err := t.OpenFor(ctx, callOf(ctx).who.Name)
	return &parleyv1.OpenResponse{Session: session}, err
}

func (h tables) Do(ctx context.Context, r *parleyv1.DoRequest) (*parleyv1.DoResponse, error) {
	t, err := h.find(r.GetTable())
	if err != nil {
		return nil, err
	}
	if r.GetCall() == nil {
		return nil, invalid("no call: a session and a number were expected, so that it can be asked again")
	}
	answer, position, err := t.do(ctx, r.GetCall(), r.GetCommand())
	if err == nil {
		err = t.known(answer)
	}
	return &parleyv1.DoResponse{Answer: answer, Position: position, Refused: t.refused(answer)}, err
}

// refused reports whether an answer is known to say that nothing was changed.
func (t *table) refused(answer []byte) bool { return t.refuses != nil && t.refuses(answer) }

// known returns an error if a table of keys and values does not know the command.
func (t *table) known(answer []byte) error {
	if a, ok := keyvalue.ReadAnswer(answer); t.keys && ok && a.Status == keyvalue.Unknown {
		return a.Status.Err()
	}
	return nil
}

// do applies a command of a session.
func (t *table) do(ctx context.Context, c *parleyv1.Call, command []byte) ([]byte, uint64, error) {
	switch {
	case rsm.Client(c.GetSession()) != c.GetSession():
		return nil, 0, invalid("session %d: that of Open was expected", c.GetSession())
	case c.GetNumber() == 0 || c.GetNumber() > math.MaxInt64:
		return nil, 0, invalid("number %d: the commands of a session are numbered from 1 on", c.GetNumber())
	}
	if err := fits(command); err != nil {
		return nil, 0, err
	}
	return t.Do(ctx, c.GetSession(), c.GetNumber(), command)
}

func fits(command []byte) error {
	if len(command) > cluster.MaxCommand {
		return invalid("a command of %d bytes: at most %d are allowed", len(command), cluster.MaxCommand)
	}
	return nil
}

func (h tables) Query(ctx context.Context, r *parleyv1.QueryRequest) (*parleyv1.QueryResponse, error) {
	t, err := h.find(r.GetTable())
	if err != nil {
		return nil, err
	}
	if err := fits(r.GetCommand()); err != nil {
		return nil, err
	}
	reads := t.reads != nil && t.reads(r.GetCommand())
	if !reads {
		if err := callOf(ctx).may(cert.Write, "a command that may change something"); err != nil {
			return nil, err
		}
	}
	answer, position, err := t.Query(ctx, r.GetCommand())
	if err == nil {
		err = t.known(answer)
	}
	if err != nil {
		return nil, maybeRead(err, reads)
	}
	return &parleyv1.QueryResponse{Answer: answer, Position: position, Refused: t.refused(answer)}, nil
}

// maybeRead returns the error of a command that may have been a read: if so, it had no effect.
func maybeRead(err error, reads bool) error {
	if f := failed(err); reads {
		return f.harmless()
	}
	return err
}

func (h tables) Inspect(ctx context.Context, r *parleyv1.InspectRequest) (*parleyv1.InspectResponse, error) {
	t, err := h.find(r.GetTable())
	if err != nil {
		return nil, err
	}
	position, hash, err := t.Inspect(ctx)
	return &parleyv1.InspectResponse{Position: position, Hash: hash}, err
}

func (h tables) Get(ctx context.Context, r *parleyv1.GetRequest) (*parleyv1.GetResponse, error) {
	t, err := h.findKeys(r.GetTable(), r.GetKey(), nil)
	if err != nil {
		return nil, err
	}
	b, _, err := t.Query(ctx, keyvalue.Get(r.GetKey()))
	a, err := read(b, err)
	return &parleyv1.GetResponse{Value: a.Value, Version: a.Version}, err
}

// read parses an answer of a table of keys and values.
func read(b []byte, err error) (keyvalue.Answer, error) {
	if err != nil {
		return keyvalue.Answer{}, err
	}
	a, ok := keyvalue.ReadAnswer(b)
	if !ok {
		return a, errors.New("the answer does not come from a table of keys and values")
	}
	return a, a.Status.Err()
}

// keyRequest is a request that changes a key.
type keyRequest interface {
	GetTable() string
	GetKey() []byte
	GetCall() *parleyv1.Call
}

// change changes a key, with the caller's session, or an idle one for callers without.
func (h tables) change(ctx context.Context, r keyRequest, value, command []byte) (keyvalue.Answer, error) {
	t, err := h.findKeys(r.GetTable(), r.GetKey(), value)
	if err != nil {
		return keyvalue.Answer{}, err
	}
	if c := r.GetCall(); c != nil {
		b, _, err := t.do(ctx, c, command)
		return read(b, err)
	}
	var own *cluster.Session
	select {
	case own = <-t.idle:
	default:
		own = t.Session()
	}
	defer func() {
		select {
		case t.idle <- own:
		default:
		}
	}()
	b, _, err := own.Do(ctx, command)
	return read(b, err)
}

func (h tables) Put(ctx context.Context, r *parleyv1.PutRequest) (*parleyv1.PutResponse, error) {
	a, err := h.change(ctx, r, r.GetValue(), keyvalue.Put(r.GetKey(), r.GetValue()))
	return &parleyv1.PutResponse{Version: a.Version}, err
}

func (h tables) Swap(ctx context.Context, r *parleyv1.SwapRequest) (*parleyv1.SwapResponse, error) {
	a, err := h.change(ctx, r, r.GetValue(), keyvalue.Swap(r.GetKey(), r.GetVersion(), r.GetValue()))
	if errors.Is(err, keyvalue.ErrChanged) {
		return &parleyv1.SwapResponse{Version: a.Version, Value: a.Value}, nil
	}
	return &parleyv1.SwapResponse{Swapped: true, Version: a.Version}, err
}

func (h tables) Add(ctx context.Context, r *parleyv1.AddRequest) (*parleyv1.AddResponse, error) {
	a, err := h.change(ctx, r, nil, keyvalue.Add(r.GetKey(), r.GetBy()))
	if err != nil {
		return nil, err
	}
	sum, err := strconv.ParseInt(string(a.Value), 10, 64)
	return &parleyv1.AddResponse{Sum: sum}, err
}

func (h tables) Delete(ctx context.Context, r *parleyv1.DeleteRequest) (*parleyv1.DeleteResponse, error) {
	a, err := h.change(ctx, r, nil, keyvalue.Delete(r.GetKey()))
	return &parleyv1.DeleteResponse{Version: a.Version}, err
}
