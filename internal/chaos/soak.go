package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"parley/internal/chaos/judge"
	"parley/internal/must"
)

// In a soak run the last nodes are killed and restarted in turn, while the steady ones run from beginning to end:
// what those use must not grow.
const steady = 3

// sample is a node's usage at one time.
type sample struct {
	at   time.Duration
	uses [4]float64 // in the order of measures
}

// measure is one quantity that a node uses.
type measure struct {
	name, unit string
	scale      float64
	// slack is how much it may grow in the second half of a run, in addition to 1/10.
	slack float64
}

var measures = [...]measure{
	{"memory", "MB", 1 << 20, 16 << 20},
	{"heap", "MB", 1 << 20, 12 << 20},
	{"descriptors", "", 1, 12},
	{"goroutines", "", 1, 20},
}

// soak makes requests in pieces of one minute, restarts nodes now and then, and watches the usage of the nodes.
type soak struct {
	*run
	keys     [32]string
	state    map[string]judge.Content // of keys
	samples  [steady][]sample
	answered int
}

func (r *soak) do(ctx context.Context, long time.Duration) error {
	for i := range r.keys {
		r.keys[i] = fmt.Sprintf("key %d", i)
		if i%8 == 0 {
			r.keys[i] = fmt.Sprintf("sum %d", i)
		}
	}
	r.state = make(map[string]judge.Content)
	r.load = r.newLoad(25*time.Millisecond, func(time.Duration) []string { return r.keys[:] })
	fmt.Fprintf(r.out, "seed %d: five nodes, %v; %s and those after it are restarted now and then\n", r.seed, long,
		nodeName(steady))
	whole, end := context.WithCancel(ctx)
	defer end()
	r.load.listen(whole, r.all()...)
	for turn := 0; r.load.now() < long; turn++ {
		if err := r.minute(whole, turn); err != nil {
			if ctx.Err() != nil {
				err = errors.New("interrupted")
			}
			return errors.Join(err, r.sums())
		}
	}
	return r.sums()
}

// minute is a piece of a soak run that is judged separately, so that its history need not be kept.
func (r *soak) minute(ctx context.Context, turn int) (err error) {
	l := r.load
	l.history, l.answerTimes = new(judge.History), nil
	stop := make(chan struct{})
	l.start(ctx, stop, r.seed+uint64(turn)<<16, fmt.Sprint("minute ", turn), r.all()...)
	until := l.now() + time.Minute
	hold(ctx, 20*time.Second)
	if turn%2 == 1 {
		i := steady + turn/2%(count-steady)
		if err = r.inject(ctx, restart(i, turn%4 == 1)); err == nil {
			err = r.slow(r.heal)
		}
	}
	for err == nil && ctx.Err() == nil && l.now() < until {
		err = r.sample(ctx)
		hold(ctx, 10*time.Second)
	}
	close(stop)
	l.asks.Wait()
	if err == nil {
		err = r.closing(ctx)
	}
	answered := judge.Answered(l.history.All())
	r.answered += answered
	if err == nil {
		last := r.samples[0][len(r.samples[0])-1].uses
		r.printf("%d answers in the minute; %s: %.0f MB, %.0f descriptors, %.0f goroutines", answered, nodeName(0),
			last[0]/(1<<20), last[2], last[3])
	}
	return err
}

// restart returns the fault of restarting one node.
func restart(i int, kill bool) fault {
	return fault{name: "restart", do: func(ctx context.Context, r *run) string {
		if kill {
			return r.killFor(ctx, i, r.between(1, 3))
		}
		r.affects(i)
		must.Do(r.nodes[i].end(ctx))
		must.Do(r.back(i))
		return nodeName(i) + ", asked to end"
	}}
}

// closing judges a minute: all replicas are equal, every key is read, and the answers fit the previous states of the
// keys. Then it stores the new states.
func (r *soak) closing(ctx context.Context) (err error) {
	defer must.Return(&err)
	ctx, done := within(ctx, 4*r.heal)
	defer done()
	must.Do(r.quiet(ctx))
	after := make(map[string]judge.Content)
	w := r.load.worker(workers, r.seed)
	for _, key := range r.keys {
		o := &judge.Op{Client: w.id, Verb: judge.Get, Key: key}
		if w.carryOut(ctx, o); !o.Known {
			must.Failf("key %s can not be read: %w", key, context.Cause(ctx))
		}
		after[key] = o.Content()
	}
	ops := r.load.history.All()
	linear := judge.Linear(ops, r.state, time.Minute)
	must.Do(errors.Join(linear, judge.Ordered(ops), r.load.orders.Settle()))
	r.state = after
	return nil
}

// sample records the usage of the steady nodes.
func (r *soak) sample(ctx context.Context) error {
	for i := range r.samples {
		s := sample{at: r.load.now()}
		pid := r.nodes[i].now().cmd.Process.Pid
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			return err
		}
		found, err := r.metrics(ctx, i, "process_resident_memory_bytes", "go_memstats_heap_inuse_bytes", "go_goroutines")
		if err != nil {
			return fmt.Errorf("metrics of %s: %w", nodeName(i), err)
		}
		s.uses = [4]float64{found[0], found[1], float64(len(fds)), found[2]}
		r.samples[i] = append(r.samples[i], s)
	}
	return nil
}

// metrics reads some metrics of a node.
func (r *soak) metrics(ctx context.Context, i int, names ...string) (out []float64, err error) {
	defer must.Return(&err)
	ctx, done := context.WithTimeout(ctx, 5*time.Second)
	defer done()
	_, _, address := r.w.listen(i)
	web := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return r.w.dial(ctx, i, network, address)
		},
	}}
	q := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil))
	p, err := web.Do(q)
	must.Do(err)
	defer func() { _ = p.Body.Close() }()
	out = make([]float64, len(names))
	missing := len(names)
	for s := bufio.NewScanner(p.Body); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), " ")
		if k := slices.Index(names, name); k >= 0 {
			out[k] = must.Get(strconv.ParseFloat(value, 64))
			missing--
		}
	}
	if missing > 0 {
		return nil, fmt.Errorf("not all of %v are there", names)
	}
	return out, nil
}

// sums prints the usage of the nodes, and returns an error if it grows.
func (r *soak) sums() (err error) {
	cast, delivered := r.load.orders.Count()
	r.toll.print(r.out)
	fmt.Fprintf(r.out, "%d commands answered, %d broadcasts, %d delivered\n", r.answered, cast, delivered)
	w := tabwriter.NewWriter(r.out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nnode\tuses\tat half\tat the end\tgrows in an hour\tby\t\n")
	for i, all := range r.samples {
		half := all[len(all)/2:]
		if len(half) < 8 {
			err = errors.Join(err, fmt.Errorf("%s: %d samples: too few to tell anything", nodeName(i), len(all)))
			continue
		}
		for k, m := range measures {
			level, slope := line(half, k)
			span := (half[len(half)-1].at - half[0].at).Hours()
			grows := slope * span
			fmt.Fprintf(w, "%s\t%s %s\t%.1f\t%.1f\t%+.2f\t%+.1f %%\t\n", nodeName(i), m.name, m.unit, level/m.scale,
				(level+grows)/m.scale, slope/m.scale, 100*slope/max(level, 1))
			if grows > level/10+m.slack {
				err = errors.Join(err, fmt.Errorf("%s: %s grows from %.1f to %.1f %s", nodeName(i), m.name, level/m.scale,
					(level+grows)/m.scale, m.unit))
			}
		}
	}
	_ = w.Flush()
	if r.answered == 0 {
		err = errors.Join(err, errors.New("nothing was answered"))
	}
	return err
}

// line returns the initial value of samples and their growth per hour: the median of the slopes of all pairs, which
// single peaks do not affect.
func line(all []sample, k int) (begin, slope float64) {
	var slopes []float64
	for i, a := range all {
		for _, b := range all[i+1:] {
			slopes = append(slopes, (b.uses[k]-a.uses[k])/(b.at-a.at).Hours())
		}
	}
	slices.Sort(slopes)
	slope = slopes[len(slopes)/2]
	var at []float64
	for _, a := range all {
		at = append(at, a.uses[k]-slope*(a.at-all[0].at).Hours())
	}
	slices.Sort(at)
	return at[len(at)/2], slope
}
