package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/client"
	"parley/cli/console"
	"parley/cluster"
	api "parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
	"parley/cluster/cert"
	"parley/cluster/nodefile"
)

// Doctor is "parley doctor".
func Doctor(a *console.App) *cobra.Command {
	var round, asJSON bool
	var config, as string
	var length time.Duration
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Measure a cluster and propose its round length",
		Long: "With --round, doctor measures how long messages take, and how late the operating system " +
			"wakes processes. It " +
			"proposes three values, each with its reason: the length of a round, m (how many nodes may be " +
			"faulty), and delta (the largest difference of the clocks). Doctor does not join the cluster, " +
			"and changes nothing.\n\n" +
			"With --client, doctor calls the API of the configured node as the named client. The node " +
			"answers with the times that it has measured while it was running. Without --client, doctor " +
			"itself measures on this computer. It measures how late the operating system wakes its own " +
			"process, and how long a " +
			"connection to each other node takes. For these connections it uses the node's certificate. " +
			"Before you trust the proposal, measure for half an hour under the usual load (--for 30m).\n\n" +
			"The exit status is 1 if the configured rounds are too short for the measured times, or if " +
			"doctor did not reach a node. It is 2 if the configuration is wrong. With --client, it is 3 if " +
			"the node does not answer.",
		Example: "  parley doctor --round --config node.yaml --for 2s",
		Args:    console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !round {
				return parley.FlagErrorf("round", "it is missing: a measurement to make was expected, and this is the only one")
			}
			file, err := readConfig(config)
			switch {
			case err != nil:
				return err
			case length < time.Second || length > 24*time.Hour:
				return parley.FlagErrorf("for", "%v: allowed are 1s to 24h", length)
			}
			var m cluster.Measurement
			var away map[string]error
			if as != "" {
				m, err = askMeasured(cmd.Context(), file, as)
			} else {
				m, away, err = measureHere(cmd.Context(), file, length)
			}
			if err != nil {
				return client.Report(a, err)
			}
			return advise(a, m, away, asJSON)
		},
	}
	cmd.Flags().BoolVar(&round, "round", false, "propose the length of a round, m, and delta (required)")
	cmd.Flags().StringVar(&config, "config", "node.yaml", "configuration `file` of a node")
	cmd.Flags().StringVar(&as, "client", "",
		"ask the node through its API as the client with this `name`")
	cmd.Flags().DurationVar(&length, "for", 10*time.Second,
		"how long to measure without --client: `time` from 1s to 24h")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	console.Prints(cmd.Flags(), "doctor", doctorReport{})
	return cmd
}

// askMeasured asks a node for its measurements.
func askMeasured(ctx context.Context, file *nodefile.File, as string) (m cluster.Measurement, err error) {
	if file.API == "" {
		return m, parley.FlagErrorf("client", "%s has no key api: add it, or omit --client", file.Path)
	}
	c, err := api.Load(file.Folder(file.Certificates), as, file.API)
	if err != nil {
		return m, parley.FlagErrorf("client", "%w", err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	got, err := c.Admin.Measure(ctx, &parleyv1.MeasureRequest{})
	if err != nil {
		return m, client.Failed(client.Said(client.Node{Name: file.Name}, err))
	}
	m = cluster.Measurement{Nodes: int(got.GetNodes()), M: file.M, Round: got.GetRound().AsDuration()}
	if w := got.GetWake(); w != nil {
		m.Wake.Median, m.Wake.P999 = w.GetMedian().AsDuration(), w.GetP999().AsDuration()
		m.Wake.Most, m.Wake.Pauses = w.GetMost().AsDuration(), w.GetPauses()
	}
	for _, p := range got.GetPeers() {
		one := cluster.PeerMeasurement{Name: p.GetName(), Connected: p.GetConnected()}
		if r := p.GetRoundTrip(); r != nil {
			one.RTT.Min, one.RTT.P50 = r.GetLeast().AsDuration(), r.GetMedian().AsDuration()
			one.RTT.P999, one.RTT.Samples = r.GetP999().AsDuration(), int(r.GetSamples())
		}
		if p.GetSkew() != nil {
			one.Read, one.Skew, one.Error = true, p.GetSkew().AsDuration(), p.GetError().AsDuration()
		}
		m.Peers = append(m.Peers, one)
	}
	return m, nil
}

// measureHere measures from this computer, as the node of a configuration would. away says why a node was not
// reached.
func measureHere(ctx context.Context, file *nodefile.File, length time.Duration,
) (m cluster.Measurement, away map[string]error, err error) {
	c, err := file.Config()
	if err != nil {
		return m, nil, err
	}
	m = cluster.Measurement{Nodes: len(c.Members), M: c.M, Round: cmp.Or(c.Round, cluster.DefaultRound)}
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var all sync.WaitGroup
	others := slices.DeleteFunc(slices.Clone(c.Members), func(o cluster.Member) bool { return o.Name == c.Name })
	m.Peers = make([]cluster.PeerMeasurement, len(others))
	errs := make([]error, len(others))
	for i, other := range others {
		m.Peers[i].Name = other.Name
		all.Go(func() { errs[i] = connectTo(ctx, c, other, &m.Peers[i]) })
	}
	m.Wake = cluster.Wakes(ctx, m.Round)
	all.Wait()
	away = make(map[string]error)
	for i, p := range m.Peers {
		if p.RTT.Samples == 0 {
			away[p.Name] = errs[i]
		}
	}
	return m, away, nil
}

// connectTo measures repeatedly how long it takes to connect to a node, which is one round trip. The first time it
// checks the identity of the node. It returns the first error.
func connectTo(ctx context.Context, c cluster.Config, peer cluster.Member, to *cluster.PeerMeasurement) (first error) {
	var list []time.Duration
	every := time.NewTicker(100 * time.Millisecond) // below the rate that a node takes for flooding
	defer every.Stop()
	for known := false; ctx.Err() == nil; {
		begun := time.Now()
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", peer.Address)
		took := time.Since(begun)
		if err == nil && !known {
			is := tls.Client(conn, c.Trust.Dial(c.Self, cert.Identity{
				Cluster: c.Trust.Cluster(), Kind: cert.Node, Name: peer.Name,
			}))
			if err = cert.Explain(is.HandshakeContext(ctx)); err != nil && ctx.Err() != nil {
				err = errors.New("it accepts connections but sends nothing")
			}
			known = err == nil
		}
		if conn != nil {
			_ = conn.Close() // nothing was sent
		}
		if err == nil {
			list = append(list, took)
		} else if first == nil {
			first = err
		}
		select {
		case <-ctx.Done():
		case <-every.C:
		}
	}
	to.Connected, to.RTT.Samples = len(list) > 0, len(list)
	to.RTT.Min, to.RTT.P50, to.RTT.P999 = cluster.Samples(list)
	return first
}

// doctorReport is the JSON output of doctor. Durations are written as in a configuration.
type doctorReport struct {
	Round      string       `json:"round"` // proposed
	M          int          `json:"m"`
	Delta      string       `json:"delta"`
	Error      string       `json:"error"` // of the reading of a clock, proposed
	Configured string       `json:"configured"`
	TooShort   bool         `json:"too_short"`
	Reasons    []string     `json:"reasons"`
	Wake       wakeReport   `json:"wake"`
	Peers      []peerReport `json:"peers"`
}

type wakeReport struct {
	Median string `json:"median"`
	P999   string `json:"p999"`
	Most   string `json:"most"`
	Pauses uint64 `json:"pauses"`
}

type peerReport struct {
	Name    string `json:"name"`
	Least   string `json:"least,omitempty"` // round trips
	Median  string `json:"median,omitempty"`
	P999    string `json:"p999,omitempty"`
	Samples int    `json:"samples"`
	Skew    string `json:"skew,omitempty"`
	Why     string `json:"why,omitempty"` // why it was not reached
}

// advise prints the advice that follows from the measurements, and why nodes were not reached.
func advise(a *console.App, m cluster.Measurement, away map[string]error, asJSON bool) error {
	advice, err := cluster.Advise(m)
	if err != nil {
		return err
	}
	r := doctorReport{
		Round: advice.Round.String(), M: advice.M, Delta: advice.Delta.String(), Error: advice.Error.String(),
		Configured: m.Round.String(), TooShort: advice.Short, Reasons: advice.Reasons,
		Wake: wakeReport{m.Wake.Median.String(), m.Wake.P999.String(), m.Wake.Most.String(), m.Wake.Pauses},
	}
	reached := true
	for _, p := range m.Peers {
		one := peerReport{Name: p.Name, Samples: p.RTT.Samples}
		if reached = reached && p.RTT.Samples > 0; away[p.Name] != nil {
			one.Why = away[p.Name].Error()
		}
		if p.RTT.Samples > 0 {
			one.Least, one.Median, one.P999 = p.RTT.Min.String(), p.RTT.P50.String(), p.RTT.P999.String()
		}
		if p.Read {
			one.Skew = p.Skew.String()
		}
		r.Peers = append(r.Peers, one)
	}
	if asJSON {
		err = a.PrintJSON(r)
	} else {
		printAdvice(a, r)
	}
	if advice.Short || !reached {
		return console.End(console.Violated, err)
	}
	return err
}

func printAdvice(a *console.App, r doctorReport) {
	t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "round trips to\tleast\tmedian\t999 of 1000\tsamples\tits clock is ahead by")
	for _, p := range r.Peers {
		if p.Samples == 0 {
			fmt.Fprintf(t, "%s\tnot reached%s\n", p.Name, strings.TrimSuffix(": "+p.Why, ": "))
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\n", p.Name, p.Least, p.Median, p.P999, p.Samples, p.Skew)
	}
	_ = t.Flush() // ignored, as for all output
	fmt.Fprintf(a.Out, "\nproposed:\nround: %s\nm: %d\nclocks: {error: %s}\n\n", r.Round, r.M, r.Error)
	fmt.Fprintf(a.Out, "delta, which is how far apart the clocks then may be: %s\n\n", r.Delta)
	for _, why := range r.Reasons {
		fmt.Fprintf(a.Out, "- %s\n", why)
	}
	if r.TooShort {
		fmt.Fprintf(a.Out, "\nthe rounds that are configured, of %s, are too short\n", r.Configured)
	}
}
