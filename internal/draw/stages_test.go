package draw_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"parley"
	"parley/internal/draw"
	"parley/internal/draw/reading"
	"parley/internal/draw/svg"
	"parley/trace"
)

// Kinds of indications by which a process of the protocol voting reaches a stage.
const reaches parley.Kind = parley.Indication + 0x20

// voting is a protocol with one decision for each value of a message: the kind says which stage is reached, and a log
// record with the text yes that the process is in doubt.
func voting(n int) parley.Protocol {
	p := gossip(n)
	p.Progress = func(m parley.Msg, record bool) (out parley.Progress) {
		switch {
		case record && string(m.Body) == "yes":
			out.Stage = parley.StageInDoubt
		case !record && m.Kind >= reaches && m.Kind <= reaches+parley.Kind(parley.StageAborted):
			out = parley.Progress{Stage: parley.Stage(m.Kind - reaches), Of: m.Value, Name: string(m.Body)}
		}
		return out
	}
	return p
}

// reach adds that a process reaches a stage.
func (s *story) reach(at parley.Tick, id parley.ID, stage parley.Stage) {
	s.at(at, trace.Indicate, id, parley.Msg{Kind: reaches + parley.Kind(stage)})
}

// votes is a run in which P1 crashes and the others go through all stages.
func votes() []trace.Event {
	var s story
	m := parley.Msg{Kind: 1, Body: []byte("vote?")}
	sent := s.send(0, 0, parley.All, m)
	s.come(100, 0, 1, m, sent)
	s.at(100, trace.Append, 1, parley.Msg{Body: []byte("yes")})
	s.add(trace.Event{Time: 150, Op: trace.Lose, At: 3, Peer: 0, Msg: m, Cause: sent})
	s.at(200, trace.Crash, 0, parley.Msg{})
	s.come(300, 0, 2, m, sent)
	s.at(300, trace.Append, 2, parley.Msg{Body: []byte("yes")})
	s.reach(400, 1, parley.StagePrepared)
	s.reach(500, 1, parley.StageInDoubt) // the same vote again
	s.reach(600, 2, parley.StageBlocked)
	s.at(700, trace.Crash, 2, parley.Msg{})
	s.at(800, trace.Restart, 2, parley.Msg{})
	s.reach(900, 1, parley.StageCommitted)
	s.reach(950, 1, parley.StageBlocked) // late
	s.reach(1000, 2, parley.StageAborted)
	s.at(9000, trace.Pause, 1, parley.Msg{})
	return s.events
}

// stages writes the spans of a lane.
func stages(l reading.StageLane) string {
	var out []string
	for _, s := range l.Spans {
		out = append(out, fmt.Sprintf("%d@%d", s.Stage, s.Since))
	}
	return strings.Join(out, " ")
}

// A process goes from stage to stage, is down after a crash, and restarts with what is durable.
func TestStages(t *testing.T) {
	got, ok := reading.StagesOf(voting(4), votes(), reading.Style{})
	if !ok || len(got.Lanes) != 4 || got.Named {
		t.Fatalf("%+v", got)
	}
	for id, want := range []string{
		"1@0 0@200", "1@0 2@100 3@400 5@900", "1@0 2@300 4@600 0@700 2@800 6@1000", "1@0",
	} {
		if spans := stages(got.Lanes[id]); spans != want || got.Lanes[id].At != parley.ID(id) {
			t.Errorf("P%d: %s, want %s", id+1, spans, want)
		}
	}
	if got.Changed != 1000 || got.Over != 9000 || len(got.Messages) != 3 {
		t.Errorf("changed %d, over %d, %d messages", got.Changed, got.Over, len(got.Messages))
	}
	if _, ok := reading.StagesOf(gossip(4), votes(), reading.Style{}); ok {
		t.Error("a protocol without stages has some")
	}
	if _, ok := reading.StagesOf(voting(4), happenings(), reading.Style{}); ok {
		t.Error("a run without stages has some")
	}
}

// A disk that is lost takes a vote with it.
func TestStagesLostDisk(t *testing.T) {
	var s story
	s.reach(10, 0, parley.StageInDoubt)
	s.at(20, trace.Crash, 0, parley.Msg{})
	s.at(30, trace.Restart, 0, parley.Msg{Value: 1})
	got, _ := reading.StagesOf(voting(1), s.events, reading.Style{})
	if spans := stages(got.Lanes[0]); spans != "1@0 2@10 0@20 1@30" {
		t.Error(spans)
	}
}

// Of several decisions, each has lanes for the processes that take part in it.
func TestStagesSeveral(t *testing.T) {
	var s story
	for i, of := range []uint64{7, 3, 7} {
		s.at(parley.Tick(10*i+10), trace.Indicate, parley.ID(i), parley.Msg{
			Kind: reaches + parley.Kind(parley.StageInDoubt), Value: of, Body: fmt.Appendf(nil, "t%d", of)})
	}
	got, _ := reading.StagesOf(voting(4), s.events, reading.Style{})
	var lanes []string
	for _, l := range got.Lanes {
		lanes = append(lanes, fmt.Sprintf("%s P%d %s", l.Name, l.At+1, stages(l)))
	}
	if text := strings.Join(lanes, ", "); text != "t3 P2 1@0 2@20, t7 P1 1@0 2@10, t7 P3 1@0 2@30" {
		t.Error(text)
	}
	well(t, stagesSVG(4, s.events))
}

func stagesSVG(n int, events []trace.Event) string {
	r := draw.Run{Heading: draw.Heading{Title: "Votes"}, Protocol: voting(n), Events: events}
	r.Faulty = parley.SetOf(0)
	return string(svg.File(r.Scene()))
}

// The picture has a bar for each stage, arrows for what arrived, and the legend of the stages in use. What happens
// long after the last change is left out, and that is said.
func TestStagesSVG(t *testing.T) {
	picture := stagesSVG(4, votes())
	all := well(t, picture)
	golden(t, "stages.svg", picture)
	if n := arrows(all); n != 2+1 { // and one in the legend
		t.Errorf("%d arrows", n)
	}
	for _, want := range []string{
		"P2 is prepared from 400 to 900", "P2 is committed from 900<", "P3 is blocked from 600 to 700", "P1 is down from 200<",
		"P1 to P2: 1 says vote?; sent at 0, arrives at 100", "P1 to P4: 1 says vote?; sent at 0, lost",
		">✓ committed<", ">blocked: cannot find out the outcome<", ">lost message<",
		"The run ends at 9,000; no process changes its state after 1,000.",
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("no %s", want)
		}
	}
	late := append(votes(), trace.Event{ID: 99, Time: 8000, Op: trace.Receive, At: 3, Peer: 0, Cause: 1})
	if text := stagesSVG(4, late); !strings.Contains(text, "1 message is not drawn") || strings.Contains(text, "arrives at 8,000") {
		t.Error("a message that arrives after the end of the picture is drawn")
	}
	few := stagesSVG(4, votes()[:4])
	if strings.Contains(few, "blocked") || strings.Contains(few, "committed") {
		t.Error("the legend explains a stage that nothing reaches")
	}
}

// A run with many messages stays small: they are counted.
func TestStagesMany(t *testing.T) {
	events := votes()
	s := story{events}
	for i := range parley.Tick(2000) {
		m := parley.Msg{Kind: 1, Seq: uint64(i), Body: []byte("x")}
		s.come(i+1, 0, 1, m, s.send(i, 0, 1, m))
	}
	picture := stagesSVG(4, s.events)
	if well(t, picture); !strings.Contains(picture, "2,003 messages are not drawn") || len(picture) > 30_000 {
		t.Errorf("%d bytes", len(picture))
	}
}

var segment = regexp.MustCompile(`M(\d+),(\d+) L(\d+),(\d+)`)

// All textures stay within their bars.
func TestHatching(t *testing.T) {
	found := 0
	for _, m := range regexp.MustCompile(`class="stage-(?:hatch|stripe)[^"]*" d="([^"]*)"`).
		FindAllStringSubmatch(stagesSVG(4, votes()), -1) {
		for _, s := range segment.FindAllStringSubmatch(m[1], -1) {
			found++
			for i, text := range s[1:] {
				if at, _ := strconv.Atoi(text); at < 0 || i%2 == 0 && at > 1000 {
					t.Errorf("%v", s)
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("%d lines", found)
	}
}
