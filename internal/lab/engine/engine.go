// Package engine computes what the web page of "parley lab" shows. The page shows runs of protocols in a browser.
// It sends questions, such as a run to make, and the engine answers with pictures, tables and texts. The engine
// runs in the program that serves the page, or in the browser itself, compiled to WebAssembly.
//
// A question is a JSON object, and so is its answer. An answer depends only on the question and on the version of
// the program, because every question contains the description of its run. (The engine remembers the latest runs
// only to save time.) So any engine can answer any question, and both forms of the page get the same bytes. There is
// one exception: the engine of the browser does not open the traces of nodes (see NewWithNodes).
package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"parley"
	"parley/internal/form"
	"parley/internal/input"
	"parley/internal/lab/cost"
	"parley/internal/lab/traitor"
	"parley/trace"
)

// Engine answers questions about runs of its protocols. It is safe for concurrent use.
type Engine struct {
	protocols []parley.Protocol
	scenarios fs.FS
	version   string
	runs      runs
	kept      kept
	// merge makes a recording from the traces of nodes, and readNodes reads them. They are nil if the engine cannot.
	merge     func([]trace.Trace) (recording, error)
	readNodes func(head []byte, rest io.Reader) ([]trace.Trace, error)
}

// New returns an engine for protocols. The gallery shows the scenario files of a folder. version is the program's.
func New(protocols []parley.Protocol, scenarios fs.FS, version string) *Engine {
	return &Engine{protocols: protocols, scenarios: scenarios, version: version}
}

// mostExploring is the longest duration of a search.
const mostExploring = 10 * time.Minute

// MaxQuestion is the size of the largest question, in bytes.
const MaxQuestion = 2 << 20

// asked is a question: its kind, and the kind's own fields.
type asked struct {
	Ask string `json:"ask"`
}

// aboutRun is a question about one run.
type aboutRun struct {
	asked
	Setting Setting `json:"run"`
}

func (q aboutRun) setting() Setting { return q.Setting }

// answerer answers the questions of one kind.
type answerer func(ctx context.Context, e *Engine, question []byte, progress func([]byte)) (any, error)

// answerers are the kinds of questions.
var answerers = map[string]answerer{
	"about":   ofAll((*Engine).about),
	"form":    ofAll((*Engine).form),
	"guide":   ofAll((*Engine).guide),
	"levels":  ofAll((*Engine).levels),
	"cost":    ofAll((*Engine).cost),
	"run":     ofRun((*made).answer),
	"picture": ofRun((*made).picture),
	"tables":  ofRun((*made).tables),
	"story":   ofRun((*made).story),
	"event":   ofRun((*made).event),
	"state":   ofRun((*made).state),
	"history": ofRun((*made).history),
	"cone":    ofRun((*made).cone),
	"vote":    ofRun((*made).vote),
	"waiting": ofRun(func(m *made, _ aboutRun) (any, error) { return waitingOf(m.processes(), m.waits()), nil }),
	"export":  ofRun((*made).export),
	"seat":    ofRun(seat),
	"search":  search,
	"trials":  trying,
	"model":   ofAll(func(e *Engine, q aboutModel) (any, error) { return modelOf(e.protocols, q.Model) }),
	"presets": ofAll((*Engine).presets),
	"explore": exploring,
	"pairs":   pairing,
	"walk":    walking,
	"samples": sampling,

	// About several runs.
	"compare":   comparing,
	"knowledge": knowing,
}

// ofAll makes an answerer from a method that answers at once.
func ofAll[Q any](answer func(*Engine, Q) (any, error)) answerer {
	return func(_ context.Context, e *Engine, b []byte, _ func([]byte)) (any, error) {
		var q Q
		if err := read(b, &q); err != nil {
			return nil, err
		}
		return answer(e, q)
	}
}

// ofRun makes an answerer from a method of a run.
func ofRun[Q interface{ setting() Setting }](answer func(*made, Q) (any, error)) answerer {
	return ofAll(func(e *Engine, q Q) (any, error) {
		m, err := e.of(q.setting())
		if err != nil {
			return nil, err
		}
		return answer(m, q)
	})
}

// seat answers what a faulty process could send.
func seat(m *made, q struct {
	aboutRun
	Of string `json:"of"`
}) (any, error) {
	if err := simulable(m); err != nil {
		return nil, err
	}
	return traitor.Seat(m.Run, q.Of)
}

// simulable returns an error if the processes of the run were programs: the lab starts none.
func simulable(m *made) error {
	if m.of != nil {
		return errors.New("the processes of this run were nodes of a cluster, and the lab does not repeat what they did")
	}
	if len(m.Node) > 0 {
		return errors.New("the processes of this run were programs, and the lab starts none: use parley run with --node")
	}
	return nil
}

// search answers whether faulty processes can break a property.
func search(ctx context.Context, e *Engine, b []byte, progress func([]byte)) (any, error) {
	var q struct {
		aboutRun
		traitor.Question
	}
	if err := read(b, &q); err != nil {
		return nil, err
	}
	m, err := e.of(q.Setting)
	if err != nil {
		return nil, err
	}
	if err := simulable(m); err != nil {
		return nil, err
	}
	return traitor.Search(ctx, m.Run, q.Question, progress)
}

// trying answers whether any of many runs breaks the property of a level.
func trying(ctx context.Context, e *Engine, b []byte, progress func([]byte)) (any, error) {
	var q struct {
		asked
		Level   string `json:"level"`
		Seconds int    `json:"seconds"`
	}
	if err := read(b, &q); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(traitor.Levels, func(l traitor.Level) bool { return l.ID == q.Level && l.Seeds > 0 })
	if i < 0 {
		return nil, fmt.Errorf("no level %.20q is sampled", q.Level)
	}
	l := traitor.Levels[i]
	return traitor.Sample(ctx, l, q.Seconds, func(flags map[string]string) (form.Setup, error) {
		f, _, err := e.filled(Setting{Protocol: l.Protocol, Flags: flags})
		if err != nil {
			return form.Setup{}, err
		}
		return f.Setup()
	}, progress)
}

// LevelsAnswer is the answer to "levels": what a traitor can try, in order.
type LevelsAnswer struct {
	Levels []traitor.Level `json:"levels"`
}

func (e *Engine) levels(struct{ asked }) (any, error) { return LevelsAnswer{traitor.Levels}, nil }

func (e *Engine) guide(struct{ asked }) (any, error) {
	return guideOf(commands{e.protocols, e.scenarios})
}

func (e *Engine) presets(struct{ asked }) (any, error) { return PresetsAnswer{presets}, nil }

func (e *Engine) cost(q struct {
	asked
	cost.Question
}) (any, error) {
	return cost.Of(e.protocols, q.Question)
}

// read reads a question, whose fields must be known.
func read(b []byte, q any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(q); err != nil {
		return fmt.Errorf("the question is not understood: %w", err)
	}
	return nil
}

// Answer answers a question. Until it returns it may call progress with JSON objects that say how far it is. If ctx
// ends, the answer covers what was done so far.
func (e *Engine) Answer(ctx context.Context, question []byte, progress func([]byte)) []byte {
	return encoded(e.answer(ctx, question, progress))
}

// encoded returns an answer, or an error as an answer.
func encoded(answer any, err error) []byte {
	if err != nil {
		answer = struct {
			Error Failure `json:"error"`
		}{failure(err)}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(answer); err != nil {
		panic(err) // texts and numbers
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

func (e *Engine) answer(ctx context.Context, question []byte, progress func([]byte)) (any, error) {
	if len(question) > MaxQuestion {
		return nil, fmt.Errorf("the question has %d bytes: at most %d are allowed", len(question), MaxQuestion)
	}
	var kind asked
	if err := json.Unmarshal(question, &kind); err != nil {
		return nil, fmt.Errorf("the question is not understood: %w", err)
	}
	answer, known := answerers[kind.Ask]
	if !known {
		return nil, fmt.Errorf("the question %.40q is not known: the page and the program have different versions, "+
			"so load the page again", kind.Ask)
	}
	return answer(ctx, e, question, progress)
}

// Failure is an error as the page shows it: at its flag, or at its line of the scenario.
type Failure struct {
	Message string `json:"message"`
	Flag    string `json:"flag,omitempty"`
	Line    int    `json:"line,omitempty"`
}

// failure describes an error.
func failure(err error) Failure {
	f := Failure{Message: err.Error()}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		err = &parley.FlagError{Flag: bad.GetFlag().Name, Err: input.ValueError(bad)}
		f.Message = err.Error()
	}
	if about, ok := errors.AsType[*parley.FlagError](err); ok {
		f.Flag, f.Message = about.Flag, about.Err.Error()
	}
	if in, ok := errors.AsType[*input.FileError](err); ok {
		_, f.Line = in.Place()
		f.Message = in.Err.Error()
	}
	f.Message = cmp.Or(f.Message, "something is wrong")
	return f
}
