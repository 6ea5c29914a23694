// Command audit runs clusters of real processes in which some nodes are traitors (nodes that lie). It then audits the
// traces of the other nodes, as "parley audit" does. The clusters run agreements on the values of single nodes,
// agreements on the vector of all values, and a Byzantine total order. Many instances of each run at the same time,
// and the traitors use every behavior.
//
// Agreements run in rounds. If the computer is so busy that messages are too slow for the rounds, nothing is promised,
// so the command repeats the agreements, and then uses longer rounds. The order has no rounds: the command never
// repeats it, whatever the computer does meanwhile. With -stress, busy loops compete with the clusters.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"parley"
	"parley/catalog"
	"parley/cli"
	"parley/faulty"
	"parley/internal/must"
)

// spec is one cluster to be audited.
type spec struct {
	part                 // for all nodes
	n      int           // nodes
	how    []string      // the traitors' behaviors
	each   int           // instances in one cluster
	within time.Duration // for each service
	only   []string      // the services to audit; nil: all
}

// services returns the services to audit.
func (s spec) services() []string {
	if s.only == nil {
		return services
	}
	return s.only
}

// rounds reports whether the cluster runs a service in rounds.
func (s spec) rounds() bool { return slices.ContainsFunc(s.services(), inRounds) }

// inRounds reports whether a service runs in rounds, so that it promises nothing if messages are too slow for them.
func inRounds(service string) bool { return service != order }

func (s spec) String() string { return fmt.Sprintf("(%d,%d) %s", s.n, s.M, strings.Join(s.how, "+")) }

// sizes are the numbers of nodes and traitors.
var sizes = [][2]int{{4, 1}, {7, 2}}

// behaviors returns the names of all behaviors that a traitor may have.
func behaviors() []string {
	var out []string
	for _, b := range faulty.Named() {
		if b.Name != faulty.Honest.Name {
			out = append(out, b.Name)
		}
	}
	return out
}

func main() {
	switch os.Getenv(asChild) {
	case busyLoop:
		spin(os.Stdin)
		return
	case aNode:
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, "audit: a node:", err)
			os.Exit(1)
		}
		return
	}
	instances := flag.Int("instances", 1000, "how many `instances` of each service")
	each := flag.Int("part", 250, "how many of the `instances` one cluster is asked for")
	round := flag.Duration("round", 250*time.Millisecond, "the length of a round")
	within := flag.Duration("within", 10*time.Minute, "how `long` a service may take")
	only := flag.String("only", "", "only clusters whose name, as in \"(4,1) silent\", has this `text`")
	service := flag.String("service", "", "audit only this `service`: "+strings.Join(services, ", ")+"; by default all")
	stress := flag.Int("stress", 0, "how many busy `loops` run beside the clusters, each in a process of its own")
	keep := flag.String("keep", "", "keep certificates and traces in this `folder`")
	verbose := flag.Bool("v", false, "print what the nodes have to say")
	flag.Parse()
	var list []string
	if *service != "" {
		list = []string{*service}
	}
	if *stress < 0 || list != nil && !slices.Contains(services, *service) {
		fmt.Fprintf(os.Stderr, "audit: -service %q -stress %d: services are %s, and 0 or more loops are allowed\n", *service,
			*stress, strings.Join(services, ", "))
		os.Exit(2)
	}
	var specs []spec
	for _, size := range sizes {
		for _, how := range behaviors() {
			one := spec{
				part: part{M: size[1], Instances: *instances, AtOnce: 4, Round: *round, Verbose: *verbose},
				n:    size[0], how: []string{how}, each: max(1, *each), within: *within, only: list,
			}
			if strings.Contains(one.String(), *only) {
				specs = append(specs, one)
			}
		}
	}
	if len(specs) == 0 {
		fmt.Fprintf(os.Stderr, "audit: no cluster's name has %q: behaviors are %s\n", *only,
			strings.Join(behaviors(), ", "))
		os.Exit(2)
	}
	good, err := beside(*stress, func() (bool, error) { return runAll(specs, *keep, os.Stdout) })
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "audit:", err)
		os.Exit(2)
	case !good:
		os.Exit(1)
	}
}

// The environment variable that makes a process of this program a child, and its values.
const (
	asChild  = "PARLEY_AUDIT_CHILD"
	aNode    = "node"
	busyLoop = "busy loop"
)

// spin keeps one processor busy until the input ends.
func spin(until io.Reader) {
	var ended atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		for !ended.Load() {
		}
	})
	_, _ = io.Copy(io.Discard, until)
	ended.Store(true)
	all.Wait()
}

// beside calls do while the given number of busy loops run.
func beside(loops int, do func() (bool, error)) (good bool, err error) {
	defer must.Return(&err)
	for range loops {
		cmd := exec.Command(must.Get(os.Executable())) //nolint:noctx // it ends when its input does
		cmd.Env = append(os.Environ(), asChild+"="+busyLoop)
		in := must.Get(cmd.StdinPipe())
		must.Do(cmd.Start())
		defer func() { _, _ = in.Close(), cmd.Wait() }()
	}
	return do()
}

// runAll runs clusters one after another and prints a table of the results.
func runAll(specs []spec, keep string, out io.Writer) (good bool, err error) {
	defer must.Return(&err)
	good = true
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "cluster\trounds\tservice\tjudged\tpromised\tviolated\tno answer\ttime\tverdict")
	for _, s := range specs {
		for _, r := range s.inParts(keep) {
			good = good && r.holds()
			rounds := r.round.String()
			if !inRounds(r.service) {
				rounds = "none"
			}
			fmt.Fprintf(w, "%v\t%s\t%s\t%d\t%d\t%d\t%d\t%.1f s\t%s\n",
				s, rounds, r.service, r.judged, r.promised, r.violated, r.failed, r.took.Seconds(), cmp.Or(r.verdict(), "holds"))
		}
		must.Do(w.Flush())
	}
	return good, nil
}

// inParts runs as many clusters as all instances need, concurrently because they mostly wait, and sums up the
// results. If the computer is delayed, only a part must be repeated. It fails by must.
func (s spec) inParts(keep string) (sum []row) {
	count := (s.Instances + s.each - 1) / s.each
	parts, errs := make([][]row, count), make([]error, count)
	var all sync.WaitGroup
	for i := range parts {
		one := s
		one.Instances = min(s.each, s.Instances-i*s.each)
		all.Go(func() { parts[i], errs[i] = one.patiently(keep, i+1) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		must.Failf("%v: %w", s, err)
	}
	sum = make([]row, len(s.services()))
	for _, rows := range parts {
		for i, r := range rows {
			sum[i].plus(r)
		}
	}
	return sum
}

// plus adds the results of another cluster.
func (r *row) plus(other row) {
	r.service, r.round = other.service, max(r.round, other.round)
	r.judged += other.judged
	r.promised += other.promised
	r.violated += other.violated
	r.failed += other.failed
	r.took = max(r.took, other.took)
	r.wrong = append(r.wrong, other.wrong...)
	r.unpromised = append(r.unpromised, other.unpromised...)
}

// patiently runs a cluster. If the computer was delayed or too slow for the rounds, so that not everything was
// promised, it repeats the services that this affected, and then with longer rounds. It repeats no violation, and
// nothing that runs without rounds. part is the number of the part.
func (s spec) patiently(keep string, part int) (rows []row, err error) {
	runs := 0
	return patiently(s, func(one spec) ([]row, error) {
		runs++
		return one.in(keep, fmt.Sprintf("%d-%d", part, runs))
	})
}

func patiently(s spec, run func(spec) ([]row, error)) (rows []row, err error) {
	found := make(map[string]row)
	one := s
	for _, longer := range []time.Duration{1, 1, 2, 2, 4, 4} {
		one.Round = longer * s.Round
		if rows, err = run(one); err != nil {
			return nil, err
		}
		var again []string
		for _, r := range rows {
			r.round = one.Round
			found[r.service] = r
			if inRounds(r.service) && !r.holds() && r.violated == 0 {
				again = append(again, r.service)
			}
		}
		if one.only = again; again == nil {
			break
		}
		fmt.Fprintf(os.Stderr, "audit: %v: %s: held up in rounds of %v: again\n", s, strings.Join(again, ", "), one.Round)
	}
	rows = nil
	for _, service := range s.services() {
		rows = append(rows, found[service])
	}
	return rows, nil
}

// in runs a cluster in a folder of its own. The folder is below keep, or is removed afterward if keep is empty.
func (s spec) in(keep, run string) (rows []row, err error) {
	defer must.Return(&err)
	if keep == "" {
		dir := must.Get(os.MkdirTemp("", "parley-audit-"))
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		return s.run(dir), nil
	}
	name := strings.NewReplacer("(", "", ")", "", ",", "-", " ", "-").Replace(s.String())
	dir := filepath.Join(keep, name+"-"+run)
	must.Do(os.MkdirAll(dir, 0o700))
	return s.run(dir), nil
}

// row is the result for one service.
type row struct {
	service                    string
	judged, promised, violated int
	failed                     int
	took, round                time.Duration
	// The reasons against the service: what must not happen, whatever was promised, and what was not promised.
	wrong, unpromised []string
}

// holds reports whether everything was promised and held.
func (r row) holds() bool { return len(r.wrong)+len(r.unpromised) == 0 }

// verdict returns the reasons against the service, in words.
func (r row) verdict() string { return strings.Join(slices.Concat(r.wrong, r.unpromised), "; ") }

// process is a child process.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// run runs one cluster of processes and audits it. It fails by must.
func (s spec) run(dir string) (rows []row) {
	parts, ports := prepare(dir, s.n, s.part)
	var all []*process
	defer func() {
		for _, p := range all {
			_ = p.cmd.Process.Kill() // has no effect on those that have ended
			_ = p.cmd.Wait()
		}
	}()
	lies := traitors(s.M, s.how)
	for i, one := range parts {
		one.Traitor = lies[parley.ID(i)]
		all = append(all, start(one, ports[i]))
	}
	answers(all, "joined")
	for _, service := range s.services() {
		began := time.Now()
		for _, p := range all {
			must.Do(json.NewEncoder(p.in).Encode(map[string]any{"Service": service, "Within": s.within}))
		}
		failed := answers(all[s.M:], service)
		rows = append(rows, row{service: service, failed: failed, took: time.Since(began)})
	}
	if s.rounds() {
		time.Sleep(s.rest())
	}
	for _, p := range all[:s.M] { // so that they broadcast nothing more
		_ = p.in.Close()
	}
	settle(all[s.M:])
	for _, p := range all[s.M:] {
		_ = p.in.Close()
	}
	for _, p := range all[s.M:] {
		must.Do(p.cmd.Wait())
	}
	must.Do(s.judge(parts[0].Traces, rows))
	return rows
}

// rest is how long nodes stay after all is done, so that everything in flight can finish.
func (s spec) rest() time.Duration { return time.Second + time.Duration(2*s.M+8)*s.Round }

// start starts a node in a process of its own, which takes over the port. It fails by must.
func start(one part, port *net.TCPListener) *process {
	defer func() { _ = port.Close() }()
	file := must.Get(port.File())
	defer func() { _ = file.Close() }()
	cmd := exec.Command(must.Get(os.Executable())) //nolint:noctx // it ends when its input does
	cmd.Env = append(os.Environ(), asChild+"="+aNode)
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{file}
	p := &process{cmd, must.Get(cmd.StdinPipe()), bufio.NewScanner(must.Get(cmd.StdoutPipe()))}
	must.Do(errors.Join(cmd.Start(), json.NewEncoder(p.in).Encode(one)))
	return p
}

// settle waits until all correct nodes have delivered the same number of payloads, and no more of them for a second, so
// that no node ends while others deliver. After a minute it gives up; the audit then finds what is missing. It fails
// by must.
func settle(correct []*process) {
	var before []int
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		var now []int
		for _, p := range correct {
			must.Do(json.NewEncoder(p.in).Encode(map[string]any{"Service": count}))
			now = append(now, answers([]*process{p}, count))
		}
		if slices.Min(now) == slices.Max(now) && slices.Equal(now, before) {
			return
		}
		before = now
	}
}

// answers waits for a line from each process, and adds up the numbers of failed instances. It fails by must.
func answers(all []*process, word string) (failed int) {
	for i, p := range all {
		if !p.out.Scan() {
			must.Failf("node %d ended before it said %s", i+1, word)
		}
		var count int
		have, rest, _ := strings.Cut(p.out.Text(), " ")
		if _, err := fmt.Sscan(rest, &count); have != word || rest != "" && err != nil {
			must.Failf("node %d said %q, and %s was expected", i+1, p.out.Text(), word)
		}
		failed += count
	}
	return failed
}

// found is the part of the output of "parley audit --json" about one machine that is used here.
type found struct {
	Machine               string
	Complete              bool
	Missing               []string
	Instances, Deliveries int
	Verdicts              []verdict
}

// verdict is the verdict on one property of the machine.
type verdict struct {
	Property, Outcome, Because, Broken string
	Promised                           int `json:"promised_in"`
	Violated                           int `json:"violated_in"`
}

// judge audits the traces, and sums up the results by service.
func (s spec) judge(traces string, rows []row) error {
	var out, complaint bytes.Buffer
	if status := cli.Run(catalog.All(), []string{"audit", "--json", traces}, &out, &complaint); status > 1 {
		return fmt.Errorf("parley audit: status %d: %s", status, &complaint)
	}
	var list struct{ Machines []found }
	err := json.Unmarshal(out.Bytes(), &list)
	for i := range rows {
		s.sum(&rows[i], list.Machines)
	}
	return err
}

// sum sums up the results for one service.
func (s spec) sum(r *row, list []found) {
	machines := 0
	for _, f := range list {
		if serviceOf(f.Machine) == r.service {
			r.add(f)
			machines++
		}
	}
	switch {
	case machines == 0:
		r.wrong = append(r.wrong, "there are no traces")
	case r.judged < s.Instances:
		r.wrong = append(r.wrong, fmt.Sprintf("%d instances judged of %d", r.judged, s.Instances))
	}
	if r.failed > 0 {
		r.wrong = append(r.wrong, fmt.Sprintf("%d got no answer", r.failed))
	}
}

// add adds the results for one machine, with the reasons against it.
func (r *row) add(f found) {
	if !f.Complete {
		r.wrong = append(r.wrong, "not complete: "+strings.Join(f.Missing, ", "))
	}
	promised := -1
	for _, v := range f.Verdicts {
		// Not applicable: slots whose source had no value. The remaining outcomes are judged.
		if v.Outcome == parley.Seen || v.Property == "links" && v.Violated == 0 || v.Outcome == parley.NotApplicable {
			continue
		}
		if r.violated += v.Violated; v.Violated > 0 || v.Outcome == parley.NotSeen {
			r.wrong = append(r.wrong, fmt.Sprintf("%s: %s: %s %s", f.Machine, v.Property, v.Outcome, v.Broken))
		}
		if promised < 0 || v.Promised < promised {
			promised = v.Promised
		}
		if f.Deliveries > 0 { // of an order
			promised = f.Deliveries * min(v.Promised, 1)
		}
		if v.Promised == 0 {
			r.unpromised = append(r.unpromised,
				fmt.Sprintf("%s: %s is not promised: %s", f.Machine, v.Property, v.Because))
		}
	}
	r.judged += f.Instances + f.Deliveries
	r.promised += max(promised, 0)
}

// serviceOf returns the service of a machine.
func serviceOf(machine string) string {
	switch {
	case machine == "group/"+group:
		return order
	case strings.HasPrefix(machine, "agree/") && strings.HasSuffix(machine, "/all"):
		return "propose"
	case strings.HasPrefix(machine, "agree/"):
		return "agree"
	}
	return ""
}
