package foreign

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"parley"
	"parley/internal/envelope"
)

// machine is a program as a machine. Each clause writes a line to the program, and requests the effects of its answer.
type machine struct {
	parley.Outside
	crew  *Crew // scratch
	self  parley.ID
	*node                 // scratch
	lines envelope.Writer // scratch: numbers the requests
	read  int             // scratch: lines of the program so far
	asked int             // scratch: how many of them it had written when it was asked last
	says  bool            // scratch: it says parley_done
}

// newMachine starts a program. It starts here so that all programs of a run start at the same time.
func newMachine(c *Crew, self parley.ID) *machine {
	return &machine{crew: c, self: self, node: begin(c), lines: envelope.Writer{Self: self}}
}

// Start tells the program who it is, and waits for init_ok.
func (m *machine) Start(s *parley.Step) {
	if m.err != nil {
		m.fail(fmt.Errorf("cannot be started: %w", m.err))
	}
	m.say(m.lines.Init(s, m.crew.Protocol, m.crew.Settings))
	began := time.Now()
	for until := began.Add(m.crew.Patience); ; {
		l, ok := m.hear(s, until)
		switch {
		case !ok:
			m.fail(fmt.Errorf("did not answer init with init_ok within %s", m.crew.Patience))
		case l.Done:
			m.fail(errors.New("said parley_done before init_ok"))
		}
		if l.InitOK {
			break
		}
	}
	m.says = m.answer(s, hello)
	if !m.says {
		m.crew.rash.Store(true)
	}
}

// Request passes a request on.
func (m *machine) Request(s *parley.Step, q parley.Msg) {
	line := m.lines.Request(q, s.N)
	if line == nil {
		s.Refuse(s.Self, "not a request that a program understands")
		return
	}
	m.ask(s, line)
}

// Receive passes a message or a suspicion on.
func (m *machine) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	line := m.lines.Receive(from, q)
	if line == nil {
		s.Refuse(from, "not a JSON object")
		return
	}
	m.ask(s, line)
}

// Timeout passes the number of a timer on.
func (m *machine) Timeout(s *parley.Step, t parley.Timer) { m.ask(s, m.lines.Timeout(t)) }

// ask writes a line, and requests the effects of the answer.
func (m *machine) ask(s *parley.Step, line []byte) {
	if m.says {
		if text, ok, _ := m.out.take(); ok {
			m.read++
			m.reject(text, errors.New("it follows parley_done, and nothing was asked since"))
		}
		m.say(line)
		if !m.answer(s, m.crew.Patience) {
			m.fail(fmt.Errorf("did not end its answer with parley_done within %s, as it did before; it was asked %s",
				m.crew.Patience, quoted(strings.TrimSpace(string(line)))))
		}
		return
	}
	m.say(line)
	m.answer(s, pause)
}

// say writes a line to the program.
func (m *machine) say(line []byte) {
	m.asked = m.read
	late := time.NewTimer(m.crew.Patience)
	defer late.Stop()
	select {
	case m.in <- line:
	case <-late.C:
		m.fail(fmt.Errorf("did not read its standard input for %s", m.crew.Patience))
	case <-m.crew.ctx.Done():
		m.fail(m.crew.ctx.Err())
	}
}

// answer requests the effects of lines until the program says that its answer is complete. It returns false if the
// program wrote nothing for the given time. No answer may take longer than the patience of the crew.
func (m *machine) answer(s *parley.Step, wait time.Duration) (done bool) {
	end := time.Now().Add(max(wait, m.crew.Patience))
	for {
		until := time.Now().Add(wait)
		last := until.After(end)
		if last {
			until = end
		}
		l, ok := m.hear(s, until)
		if !ok && last && wait < m.crew.Patience {
			m.fail(fmt.Errorf("wrote lines for %s, with neither parley_done nor a pause of %s", m.crew.Patience, wait))
		}
		if !ok || l.Done {
			return ok
		}
	}
}

// hear waits for a line of the program, and requests its effect. It returns false if there was none in time.
func (m *machine) hear(s *parley.Step, until time.Time) (envelope.Line, bool) {
	late := time.NewTimer(time.Until(until))
	defer late.Stop()
	for {
		if err := m.crew.ctx.Err(); err != nil {
			m.fail(err)
		}
		text, ok, err := m.out.take()
		switch {
		case err != nil:
			m.fail(err)
		case ok:
			m.read++
			l, err := envelope.Read([]byte(text), m.self, m.crew.Protocol)
			if err != nil {
				m.reject(text, err)
			}
			if m.read-m.asked > mostLines {
				m.fail(errTooMuch)
			}
			if l.Do != nil {
				l.Do(s)
			}
			return l, true
		}
		select {
		case <-m.out.news:
		case <-late.C:
			return envelope.Line{}, false
		case <-m.crew.ctx.Done():
			m.fail(m.crew.ctx.Err())
		}
	}
}

// fail ends the run.
func (m *machine) fail(err error) {
	panic(&Failure{Process: m.crew.Name(m.self), Node: envelope.Name(m.self), Err: err})
}

// reject ends the run because of the line that was read last.
func (m *machine) reject(text string, err error) {
	panic(&Failure{Process: m.crew.Name(m.self), Node: envelope.Name(m.self), Line: m.read, Text: text, Err: err})
}

func lastLine(text string) string {
	text = strings.TrimRight(text, "\n\r ")
	return text[strings.LastIndexByte(text, '\n')+1:]
}
