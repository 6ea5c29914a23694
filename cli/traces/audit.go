package traces

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/console"
	"parley/cluster/audit"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/draw/term"
	"parley/internal/form"
	"parley/internal/input"
	"parley/internal/lists"
	"parley/internal/merged"
	"parley/internal/report"
	"parley/trace"
)

// auditFlags are the flags of "parley audit".
type auditFlags struct {
	faulty  string
	settle  time.Duration
	machine string
	asJSON  bool
}

// Audit is "parley audit".
func Audit(a *console.App) *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit TRACE...",
		Short: "Check the promises of protocols on the traces of nodes",
		Long: "Audit merges the traces of the nodes of a cluster, separately for each machine. A machine is " +
			"one instance of a protocol, such as group/order. Audit prints which properties of the protocol " +
			"held, and which properties were promised under the faults that occurred. A TRACE is a file, or " +
			"a folder with .jsonl files. Audit also accepts traces of runs. It changes no file.\n\n" +
			"Only the traces of correct nodes are evidence. A node is faulty if its trace says that faults " +
			"were injected into it, or if --faulty names it. Audit judges each agreement of a stream " +
			"separately, and judges an incomplete trace up to its end.\n\n" +
			"The exit status is 0 if no promise broke, 1 if one broke, and 2 if a trace cannot be read.",
		Example: "  parley run eig --trace run.jsonl\n  parley audit run.jsonl\n" +
			"  parley audit testdata/traces\n  parley audit testdata/traces --machine group/order --json",
		Args: console.Args(1, 0, "at least one TRACE is needed"),
		RunE: func(_ *cobra.Command, args []string) error { return runAudit(a, args, f) },
	}
	cmd.Flags().StringVar(&f.faulty, "faulty", "", "`nodes` that count as faulty, in addition to the nodes "+
		"whose traces say so; separated by commas")
	cmd.Flags().DurationVar(&f.settle, "settle", time.Second/2,
		"ignore requests in the last `duration` of the run, which counts as ended when the first trace of a "+
			"correct node ends; at most 1h")
	cmd.Flags().StringVar(&f.machine, "machine", "", "judge only this `machine`, such as group/news (default: all)")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	console.Prints(cmd.Flags(), "audit", auditOutput{})
	return cmd
}

func runAudit(a *console.App, args []string, f auditFlags) error {
	if f.settle <= 0 || f.settle > time.Hour {
		return parley.FlagErrorf("settle", "%v: allowed are durations above 0, up to 1h", f.settle)
	}
	defer a.Busy()()
	traces, err := console.ReadTraces(args)
	if err != nil {
		return err
	}
	found, err := judged(a, traces, f)
	if err != nil {
		return err
	}
	status := console.Fine
	list := []auditJSON{}
	for i := range found {
		if found[i].violated {
			status = console.Violated
		}
		if list = append(list, found[i].json); !f.asJSON {
			if i > 0 {
				fmt.Fprintln(a.Out)
			}
			fmt.Fprint(a.Out, found[i].text)
		}
	}
	if f.asJSON {
		return console.End(status, a.PrintJSON(auditOutput{list}))
	}
	return console.End(status, nil)
}

// audited is the verdict on one machine, for printing.
type audited struct {
	violated bool
	text     string
	json     auditJSON
}

// judged judges traces of runs one by one, and traces of nodes together.
func judged(a *console.App, traces []trace.Trace, f auditFlags) ([]audited, error) {
	var out []audited
	var nodes []trace.Trace
	for _, t := range traces {
		if t.Header.Node != nil && t.Header.Node.Self != trace.Merged {
			if f.machine == "" || f.machine == t.Header.Node.Machine {
				nodes = append(nodes, t)
			}
			continue
		}
		one, err := auditRun(a, t)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	if f.machine != "" && len(nodes) == 0 {
		return nil, parley.FlagErrorf("machine", "no trace comes from the machine %q: check its name, such as "+
			"group/news", f.machine)
	}
	o := audit.Options{Settle: f.settle, Protocol: audit.Protocols(a.Protocols, merged.Naming)}
	if f.faulty != "" {
		o.Faulty = strings.Split(f.faulty, ",")
	}
	if len(nodes) == 0 && f.faulty != "" {
		return nil, parley.FlagErrorf("faulty", "these are traces of runs, which name the faulty processes: omit the flag")
	}
	channels, err := audit.Audit(nodes, o)
	if err != nil {
		return nil, err
	}
	for i := range channels {
		out = append(out, auditChannel(a, &channels[i]))
	}
	return out, nil
}

// auditRun judges the trace of a run.
func auditRun(a *console.App, t trace.Trace) (audited, error) {
	if t.Log.Broken {
		return audited{}, fmt.Errorf("%s: its last line is missing, which only traces of nodes may lack: record "+
			"it again", t.Name)
	}
	s, err := form.Remake(a.Protocols, t.Header)
	if err != nil {
		return audited{}, &input.FileError{File: t.Name, Line: 1, Err: err}
	}
	r := report.New(s, t.Log, t.Header.Facts)
	who := s.Names.List(s.Down())
	out := audited{violated: r.Violated(), json: auditJSON{
		Machine: t.Name, Protocol: r.Protocol, N: r.N, M: r.M, Faulty: who, Complete: true, Events: r.Events,
		Verdicts: []auditVerdict{},
	}}
	for _, v := range r.Verdicts {
		out.json.Verdicts = append(out.json.Verdicts, auditVerdict{Verdict: v})
	}
	style := reading.Style{Width: a.Width(0), Name: s.Names.Full, Color: a.Colors()}
	card := term.Card{Style: style, Verdicts: r.Judged}
	head := fmt.Sprintf("%s, %s: %s\nn = %d, m = %d", t.Name, r.Protocol, r.Title, r.N, r.M)
	if len(who) > 0 {
		head += "; faulty: " + strings.Join(who, ", ")
	}
	out.text = prose.Fold(head, style.Width) + "\n\n" + card.Text()
	return out, nil
}

// auditOutput is the JSON output of "parley audit".
type auditOutput struct {
	Machines []auditJSON `json:"machines"`
}

// auditJSON is the JSON form of the verdict on one machine.
type auditJSON struct {
	Cluster  string   `json:"cluster,omitempty"`
	Machine  string   `json:"machine"`
	Protocol string   `json:"protocol"`
	N        int      `json:"n"`
	M        int      `json:"m"`
	Faulty   []string `json:"faulty"`
	Crashed  []string `json:"crashed,omitempty"`
	Held     []string `json:"held_up,omitempty"`
	Complete bool     `json:"complete"`
	Missing  []string `json:"missing,omitempty"`
	Lost     uint64   `json:"messages_lost,omitempty"`
	// The kind and number of instances, and how many were not judged.
	Kind      string         `json:"kind,omitempty"`
	Instances int            `json:"instances,omitempty"`
	Unjudged  int            `json:"unjudged,omitempty"`
	Delivered int            `json:"deliveries,omitempty"`
	Events    uint64         `json:"events"`
	Verdicts  []auditVerdict `json:"verdicts"`
}

// auditVerdict is the verdict on one property in all instances.
type auditVerdict struct {
	report.Verdict
	Promised int `json:"promised_in,omitempty"`
	Violated int `json:"violated_in,omitempty"`
	Broken   int `json:"broken_unpromised_in,omitempty"`
}

// auditChannel puts the verdict on a machine into words.
func auditChannel(a *console.App, c *audit.Channel) audited {
	list := func(set parley.Set) []string { return append([]string{}, lists.Each(set.All(), c.Name)...) }
	out := audited{violated: c.Violated(), json: auditJSON{
		Cluster: c.Cluster, Machine: c.Machine, Protocol: c.Protocol.Name, N: c.Header.N, M: c.Protocol.M,
		Faulty: list(c.Liars), Crashed: list(c.Crashed), Held: list(c.Held), Complete: c.Incomplete == nil,
		Lost: c.Lost,
		Kind: c.Kind, Instances: c.Instances, Unjudged: c.Unjudged, Delivered: c.Deliveries,
		Events: c.Log.Len(), Verdicts: []auditVerdict{},
	}}
	if c.Incomplete != nil {
		out.json.Missing = strings.Split(c.Incomplete.Error(), "\n")
	}
	card := term.Card{Style: reading.Style{Width: a.Width(0), Name: c.Name, Color: a.Colors()}}
	for _, v := range c.Verdicts {
		one := summary(c, v)
		card.Verdicts = append(card.Verdicts, one)
		out.json.Verdicts = append(out.json.Verdicts, auditVerdict{report.NewVerdict(one), v.Promised, v.Violated, v.Broken})
	}
	out.text = prose.Fold(auditHead(&out.json, c), card.Width) + "\n\n" + card.Text()
	return out
}

// auditHead says whose traces were judged.
func auditHead(j *auditJSON, c *audit.Channel) string {
	text := j.Machine
	if j.Cluster != "" {
		text += " of cluster " + j.Cluster
	}
	text += fmt.Sprintf(": %s\nn = %d, m = %d", c.Protocol.Title, j.N, j.M)
	for _, part := range []struct {
		what string
		who  []string
	}{{"faulty", j.Faulty}, {"ended early", j.Crashed}, {"held up", j.Held}} {
		if len(part.who) > 0 {
			text += "; " + part.what + ": " + strings.Join(part.who, ", ")
		}
	}
	if c.Kind != "" {
		text += fmt.Sprintf("\n%s %s judged", prose.Number(uint64(c.Instances)), c.Kind)
		if c.Unjudged > 0 {
			text += fmt.Sprintf(", and %s that were under way when a node ended", prose.Number(uint64(c.Unjudged)))
		}
	}
	text += fmt.Sprintf("\n%s events", prose.Number(j.Events))
	if j.Delivered > 0 {
		text += ", " + prose.Count(uint64(j.Delivered), "delivery", "deliveries")
	}
	if j.Lost > 0 {
		text += fmt.Sprintf(", %s lost on the links", prose.Count(j.Lost, "message", "messages"))
	}
	if !j.Complete {
		text += "; NOT COMPLETE: " + strings.Join(j.Missing, ", ")
	}
	return text
}

// summary combines the verdicts on all instances into one.
func summary(c *audit.Channel, v audit.Verdict) parley.Verdict {
	one := v.Whole()
	if c.Kind == "" || v.Property.Name == "links" || one.Outcome() == parley.NotApplicable {
		return one
	}
	number := func(n int) string { return prose.Number(uint64(n)) }
	text := fmt.Sprintf("promised in %s of %s %s", number(v.Promised), number(c.Instances), c.Kind)
	if v.Violated > 0 {
		text += ", violated in " + number(v.Violated)
	} else if v.Promised > 0 {
		text += ", held in all of them"
	}
	if v.Idle > 0 {
		text += ", not applicable in " + number(v.Idle)
	}
	if v.Promised > 0 && v.Promised+v.Idle < c.Instances {
		text += "; elsewhere " + v.Spared
	}
	if v.Broken > 0 {
		text += fmt.Sprintf(", broken in %s in which it was not promised", number(v.Broken))
	}
	one.Measured = text
	return one
}
