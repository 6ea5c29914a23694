package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/internal/draw"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/draw/svg"
	"parley/internal/draw/term"
	"parley/internal/form"
	"parley/internal/input"
	"parley/internal/lists"
	"parley/trace"
)

// Sections are the parts of a report, in their order.
var Sections = []string{"messages", "spacetime", "tree", "deliveries", "decisions", "verdict"}

// Options select what of a run is shown, and how.
type Options struct {
	Show  []string // the Sections to show; empty: all that are not too long
	Tree  string   // the name of the process whose information tree is shown; empty: the first that has one
	Rows  int      // how many messages of each sender are shown
	Beats bool     // show heartbeats too
	Color bool     // paint verdicts and faulty processes
}

// View is a report with what is needed to show it as text.
type View struct {
	report  *Report
	run     form.Run
	log     *trace.Log
	options Options
	style   reading.Style
	owner   parley.ID // whose tree is shown
	tree    parley.Tree
	// Heading, for traces of nodes, says whose traces they are: no command repeats such a run.
	Heading string
}

// NewView prepares a view. tree returns the tree of one process; nil means the tree that the log yields.
func NewView(r *Report, log *trace.Log, o Options, width int, tree func(parley.ID) parley.Tree) (*View, error) {
	s := r.run
	v := &View{report: r, run: s, log: log, options: o, style: s.Style(width)}
	v.style.Color, v.style.Honest = o.Color, honest(s, log)
	for id := range parley.ID(s.Protocol.N) {
		if !r.history.Correct(id) {
			v.style.Faulty.Add(id)
		}
	}
	if s.Protocol.Tree == nil {
		if o.Tree != "" {
			return nil, parley.FlagErrorf("tree", "%s has no information tree: omit the flag", s.Protocol.Name)
		}
		return v, nil
	}
	if o.Tree == "" {
		v.owner = v.firstWithTree(v.style.Faulty)
		if v.owner == parley.All { // all others crashed
			v.owner = v.firstWithTree(s.Liars())
		}
	} else {
		id, err := s.Names.Parse(o.Tree, s.Protocol.N)
		if err == nil && s.Liars().Has(id) {
			err = fmt.Errorf("%s is faulty, and its tree means nothing: name a correct process", s.Names.Full(id))
		}
		if err != nil {
			return nil, &parley.FlagError{Flag: "tree", Err: err}
		}
		v.owner = id
	}
	if tree == nil {
		m, err := Replay(s, log, v.owner)
		if err != nil {
			return nil, fmt.Errorf("the tree of %s cannot be made: %w", s.Names.Full(v.owner), err)
		}
		v.tree = s.Protocol.Tree(m)
	} else {
		v.tree = tree(v.owner)
	}
	return v, nil
}

// firstWithTree returns the first process that is not faulty and not the only proposer, whose tree is just its own
// value. It returns All if there is none.
func (v *View) firstWithTree(faulty parley.Set) parley.ID {
	p := v.run.Protocol
	var first parley.ID = parley.All
	for id := range parley.ID(p.N) {
		if faulty.Has(id) {
			continue
		}
		if p.Proposers.Len() != 1 || !p.Proposers.Has(id) {
			return id
		}
		first = min(first, id)
	}
	return first
}

// Rounds returns what was sent in each round.
func (v *View) Rounds() []reading.Round {
	return reading.Gather(v.run.Protocol, v.log.Events, reading.Gathering{Style: v.style, Rows: v.options.Rows})
}

// Outcomes returns the beginning and the end of the run for every process.
func (v *View) Outcomes() []reading.Outcome {
	return reading.Outcomes(v.report.history, v.run.Protocol.Proposers, func(id parley.ID) string {
		return v.behavior(id)
	})
}

// Behavior describes the behavior of a process that is faulty from the beginning; "" for any other process.
func (v *View) Behavior(id parley.ID) string {
	if _, is := v.run.Faulty[id]; !is {
		return ""
	}
	return v.behavior(id)
}

// behavior describes the behavior of a faulty process. In an explored run, the explorer chooses its actions.
func (v *View) behavior(id parley.ID) string {
	if v.report.explored {
		return "as the search found"
	}
	name := v.run.Faulty[id].Name
	if strings.HasPrefix(name, "moves:") {
		return "chosen messages"
	}
	return name
}

// origin says where the run comes from.
func (v *View) origin() string {
	if v.report.explored {
		return "found by exploration"
	}
	if v.run.Host != "" {
		return v.run.Words
	}
	text := fmt.Sprintf("seed %d", v.run.Seed)
	if len(v.run.Node) > 0 {
		text += ", each process runs the program " + parley.Printable([]byte(strings.Join(v.run.Node, " ")))
	}
	return text
}

// Owner returns the process whose information tree is shown, and whether there is one.
func (v *View) Owner() (parley.ID, bool) { return v.owner, v.tree != nil }

// Tree returns the information tree of the owner, or nil.
func (v *View) Tree() parley.Tree { return v.tree }

// Style returns the style in which the run is shown: it marks the faulty processes, and those that crashed.
func (v *View) Style() reading.Style { return v.style }

// title describes what was run.
func (v *View) title() string {
	p := v.run.Protocol
	tolerates := prose.Count(uint64(p.M), "fault", "faults") + " tolerated"
	if p.Bound != nil && p.Bound(p.N, p.M) != nil {
		tolerates = "beyond the bound"
	}
	text := fmt.Sprintf("%s: %s\nn = %d processes, m = %d: %s", p.Name, p.Title, p.N, p.M, tolerates)
	if v.Heading != "" {
		text += "\n" + v.Heading
	} else {
		text += ", " + v.origin() + v.plannedEvents()
	}
	if len(v.run.Faulty) > p.M {
		text += fmt.Sprintf("; %d are faulty, more than m", len(v.run.Faulty))
	}
	if len(v.run.Faulty) == 0 {
		if v.run.Plan.Faults() > 0 {
			return text
		}
		return text + "; no process is faulty"
	}
	who := lists.Each(v.run.Liars().All(), func(id parley.ID) string {
		return v.run.Names.Full(id) + " (" + v.behavior(id) + ")"
	})
	text += "\nfaulty: " + strings.Join(who, ", ")
	if len(who) > 1 && v.run.Host != "" {
		text += "; each acts alone, and does not know what the others receive"
	}
	return text
}

// plannedEvents describes what the plan does to the processes, one line for each event.
func (v *View) plannedEvents() string {
	return strings.Join(append([]string{""}, v.run.Plan.Describe(v.run.Names.Full)...), "\n  ")
}

// Parts returns the chosen sections.
func (v *View) Parts() (parts []string) {
	for _, section := range Sections {
		if !slices.Contains(v.shown(), section) {
			continue
		}
		switch section {
		case "messages":
			parts = append(parts, term.Rounds(v.Rounds(), term.RoundsOptions{Style: v.style, Rows: v.options.Rows}))
		case "spacetime":
			o := term.SpaceTimeOptions{
				SpaceTimeOptions: reading.SpaceTimeOptions{Style: v.style, Beats: v.options.Beats},
				All:              "--show spacetime", AllBeats: "--alive",
			}
			if len(v.options.Show) == 0 {
				o.Most = v.options.Rows * 5
			}
			parts = append(parts, term.SpaceTime(v.run.Protocol, v.log.Events, o))
		case "deliveries":
			text := term.Deliveries(v.run.Protocol, v.report.history, v.style)
			if text == "" && (len(v.options.Show) > 0 || v.run.Protocol.Proposers == (parley.Set{})) {
				text = "No process delivers anything.\n"
			}
			if text != "" {
				parts = append(parts, text)
			}
		case "tree":
			for _, t := range v.trees() {
				parts = append(parts, term.Tree(t.Tree, t.options))
			}
		case "decisions":
			parts = append(parts, term.Decisions(v.Outcomes(), v.style))
		case "verdict":
			parts = append(parts, v.card().Text())
		}
	}
	return parts
}

// Print writes the chosen sections.
func (v *View) Print(w io.Writer) error {
	parts := append([]string{prose.Fold(v.title(), v.style.Width) + "\n"}, v.Parts()...)
	if text := v.refused(); text != "" {
		parts = append(parts, prose.Fold(text, v.style.Width)+"\n")
	}
	end := fmt.Sprintf("%s events, trace %s", prose.Number(v.report.Events), v.report.Trace)
	if left := v.leftOut(); left != "" {
		end = left + "\n" + end
	}
	end = prose.Fold(end, v.style.Width) + "\n"
	if v.report.Unrepeatable {
		end += prose.Fold(Unrepeatable("This run"), v.style.Width) + "\n"
	}
	if v.Heading == "" {
		end += input.Command("the same again: ", v.run.Args, v.style.Width) + "\n"
	}
	parts = append(parts, end)
	_, err := io.WriteString(w, strings.Join(parts, "\n"))
	return err
}

// much is the number of messages beyond which messages are shown only on request.
const much = 50_000

// shown returns the sections to show: those requested, or all except the messages of a run with more than much of
// them.
func (v *View) shown() []string {
	if len(v.options.Show) > 0 {
		return v.options.Show
	}
	p := v.run.Protocol
	if p.Timing != parley.Synchronous {
		if p.Proposers == (parley.Set{}) || v.onlyDelivers() {
			return []string{"spacetime", "deliveries", "verdict"}
		}
		return []string{"spacetime", "deliveries", "decisions", "verdict"}
	}
	end := "decisions"
	if p.Proposers == (parley.Set{}) {
		end = "deliveries"
	}
	if total(v.report.Cost.Measured).Messages > much || p.N > 40 {
		return []string{"tree", end, "verdict"}
	}
	return []string{"messages", "tree", end, "verdict"}
}

// onlyDelivers reports whether processes deliver something and decide nothing: a proposal only starts them.
func (v *View) onlyDelivers() bool {
	all := v.report.history.Deliveries
	decides := func(d parley.ExternalEvent) bool { return d.Msg.Kind == parley.Decide }
	return len(all) > 0 && !slices.ContainsFunc(all, decides)
}

// leftOut says which sections are omitted without a request to omit them.
func (v *View) leftOut() string {
	if len(v.options.Show) > 0 || slices.Contains(v.shown(), "messages") || slices.Contains(v.shown(), "spacetime") {
		return ""
	}
	return "the messages are not shown because there are many: --show messages shows them"
}

// refused counts, by reason, the messages that correct processes received and refused.
func (v *View) refused() string {
	parts := lists.Of(slices.Sorted(maps.Keys(v.report.Refused)), func(why string) string {
		return fmt.Sprintf("%s (%s)", why, prose.Number(v.report.Refused[why]))
	})
	if len(parts) == 0 {
		return ""
	}
	return "refused by correct processes: " + strings.Join(parts, ", ")
}

// titled is a tree with its heading.
type titled struct {
	parley.Tree
	options reading.TreeOptions
}

// trees returns the trees to show: usually one. Where many agreements run side by side, their trees form one tree
// with an empty root, and it returns one for each.
func (v *View) trees() []titled {
	if v.tree == nil {
		return nil
	}
	title := "The information tree of " + v.run.Names.Full(v.owner)
	if root := v.tree.Root(); len(root) > 0 {
		return []titled{{v.tree, reading.TreeOptions{Style: v.style, Of: v.owner, Title: title}}}
	}
	var all []titled
	_, _, sources := v.tree.Node(nil)
	for _, id := range sources {
		whose := v.run.Names.Full(id)
		of := title + " in the agreement on the value of " + whose
		all = append(all, titled{subtree{v.tree, []parley.ID{id}}, reading.TreeOptions{
			Style: v.style, Of: v.owner, Title: of, Root: "the entry of " + whose,
		}})
	}
	return all
}

// subtree is the part of a tree below one of its nodes.
type subtree struct {
	parley.Tree
	root []parley.ID
}

func (s subtree) Root() []parley.ID { return s.root }

func (v *View) card() term.Card {
	c := term.Card{
		Style: v.style, Title: "Verdict", Verdicts: v.report.Judged, Measured: v.report.Cost.Correct,
		Counted: v.counted(), ValueBits: v.report.Cost.Bits, Shown: v.report.shown,
	}
	p := v.run.Protocol
	if p.Cost != nil {
		is := v.report.Cost
		c.Cost = parley.Cost{Rounds: is.Rounds, PerRound: is.Theorem, AtMost: is.AtMost}
	}
	if p.Timing == parley.Synchronous {
		return c
	}
	c.Whole, c.Tasks = true, 1
	c.Counted, c.Beside = "sent by all processes", v.besides()
	if v.report.lossy {
		c.Counted += "; a message counts once, when it is sent, also if a link loses or doubles it"
	}
	if p.Serves {
		c.Task, c.Tasks = "one broadcast to all", 0
		for _, q := range v.report.history.Requests {
			if q.Msg.Kind != parley.Propose {
				c.Tasks++
			}
		}
	}
	return c
}

// besides returns what faulty processes sent.
func (v *View) besides() parley.Traffic {
	all, correct := total(v.report.Cost.Measured), total(v.report.Cost.Correct)
	return parley.Traffic{
		Messages: all.Messages - correct.Messages, Bits: all.Bits - correct.Bits,
		Signatures: all.Signatures - correct.Signatures,
	}
}

// counted says whose messages are compared with the theorem, and what the other processes sent.
func (v *View) counted() string {
	faulty := v.besides()
	if faulty == (parley.Traffic{}) {
		return "sent by all processes"
	}
	text := "sent by correct processes; the faulty sent " + prose.Count(faulty.Messages, "message", "messages")
	if faulty.Bits > 0 {
		text += ", " + prose.Count(faulty.Bits, "bit", "bits")
	}
	if faulty.Signatures > 0 {
		text += ", " + prose.Count(faulty.Signatures, "signature", "signatures")
	}
	return text
}

// SVG draws the run.
func (v *View) SVG() []byte { return v.Found(v.log.Events, v.origin(), false) }

// Found draws a run that an explorer found, in which times are the numbers of steps if stepped is set. about says
// what was found.
func (v *View) Found(events []trace.Event, about string, stepped bool) []byte {
	r := v.Drawing(events)
	r.Subtitle, r.Steps = fmt.Sprintf("n = %d, m = %d, %s", v.run.Protocol.N, v.run.Protocol.M, about), stepped
	return svg.File(r.Scene())
}

// Drawing returns what there is to draw of the run, as far as the given events show it. It has the tree of one process.
func (v *View) Drawing(events []trace.Event) *draw.Run {
	p := v.run.Protocol
	r := &draw.Run{
		Heading:          draw.Heading{Title: strings.ToUpper(p.Title[:1]) + p.Title[1:], Verdicts: v.report.Judged},
		SpaceTimeOptions: reading.SpaceTimeOptions{Style: v.style, Beats: v.options.Beats},
		Protocol:         p, Events: events, Lives: v.Outcomes(),
	}
	if p.Timing == parley.Synchronous {
		r.Rounds = v.Rounds()
	}
	for _, one := range v.report.Judged {
		if one.Property.Tainted == nil || one.Broken == nil {
			continue
		}
		r.Tainted = make(map[uint64]bool)
		for _, order := range one.Property.Tainted(v.report.history) {
			r.Tainted[order] = true
		}
	}
	for id, how := range v.run.Faulty { // order: each process has its own time
		when, ok := form.CrashTime(how)
		if !ok {
			continue
		}
		if r.Crashed == nil {
			r.Crashed = make(map[parley.ID]parley.Tick)
		}
		r.Crashed[id] = parley.Tick(when)
	}
	for _, l := range v.run.Plan.Links {
		if l.Loss == 1 {
			r.Cuts = append(r.Cuts, draw.Cut{Since: l.Since, Until: l.Until})
		}
	}
	for _, t := range v.trees() {
		if root := t.Root(); root[0] != v.owner { // a process's agreement on its own value shows nothing
			r.Trees = append(r.Trees, draw.Tree{Tree: t.Tree, TreeOptions: t.options})
			break
		}
	}
	return r
}

// Unrepeatable says why runs of programs cannot be repeated.
func Unrepeatable(runs string) string {
	return runs + " cannot be repeated exactly: a program did not end its answers with parley_done, so Parley waited " +
		"for them, and the result depends on the speed of this computer."
}
