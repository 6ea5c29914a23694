package envelope_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/catalog"
	"parley/internal/envelope"
)

func protocol(t testing.TB, name string) parley.Protocol {
	t.Helper()
	all := catalog.All()
	return all[slices.IndexFunc(all, func(p parley.Protocol) bool { return p.Name == name })]
}

// Programs can stand in for the protocols whose requests and results lines can express.
func TestSuits(t *testing.T) {
	var fit []string
	for _, p := range catalog.All() {
		if envelope.Suits(p) == nil {
			fit = append(fit, p.Name)
		}
	}
	want := "[eig om sm consensus agreement phaseking tetra diffusion uniform forwarding fifo causal atomic bracha " +
		"byzantine ballot twophase threephase quorum agreed]"
	if got := fmt.Sprint(fit); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What Parley writes is in the envelope of Maelstrom: its documentation has the same words.
func TestWrite(t *testing.T) {
	w := envelope.Writer{Self: 1}
	s := &parley.Step{N: 3, Log: []parley.Record{{Body: []byte(`{"n":1}`)}}, Restart: true}
	om := protocol(t, "om")
	for _, c := range []struct {
		line []byte
		want string
	}{
		{w.Init(s, om, map[string]string{"m": "1"}), `{"src":"c1","dest":"n2","body":{"type":"init","msg_id":1,` +
			`"node_id":"n2","node_ids":["n1","n2","n3"],"m":1,"proposers":["n1"],"settings":{"m":"1"},"restart":true,` +
			`"records":[{"n":1}]}}`},
		{w.Request(parley.Msg{Kind: parley.Propose, Body: []byte("a\"b")}, 3),
			`{"src":"c1","dest":"n2","body":{"type":"propose","msg_id":2,"value":"a\"b"}}`},
		{w.Request(problem.Request([]byte("m1")), 3),
			`{"src":"c1","dest":"n2","body":{"type":"broadcast","msg_id":3,"message":"m1"}}`},
		{w.Request(problem.RequestTo(parley.SetOf(0, 2), []byte("m1")), 3),
			`{"src":"c1","dest":"n2","body":{"type":"broadcast","msg_id":4,"message":"m1","to":["n1","n3"]}}`},
		{w.Request(parley.Msg{Kind: parley.Suspect}, 3), ""},
		{w.Receive(0, parley.Msg{Kind: envelope.Message, Body: []byte(`{"x":1}`)}),
			`{"src":"n1","dest":"n2","body":{"x":1}}`},
		{w.Receive(1, parley.Msg{Kind: parley.Suspect, Origin: 2}),
			`{"src":"parley","dest":"n2","body":{"type":"suspect","node":"n3"}}`},
		{w.Receive(0, parley.Msg{Kind: envelope.Message, Body: []byte(`{`)}), ""},
		{w.Timeout(7), `{"src":"parley","dest":"n2","body":{"type":"timeout","timer":7}}`},
	} {
		if got := strings.TrimSuffix(string(c.line), "\n"); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// Each line of a program has one effect.
func TestRead(t *testing.T) {
	om := envelope.Of(protocol(t, "om"))
	for line, want := range map[string]parley.Effect{
		`{"src":"n2","dest":"n3","body":{ "a" : 1 }}`: {Op: parley.OpSend, From: 1, To: 2,
			Msg: parley.Msg{Kind: envelope.Message, Seq: 2, Body: []byte(`{"a":1}`)}},
		`{"dest":"parley","body":{"type":"decide","value":"x"}}`: {Op: parley.OpDeliver, From: 1,
			Msg: parley.Msg{Kind: parley.Decide, Body: []byte("x")}},
		`{"dest":"parley","body":{"type":"decide","value":[1, 2]}}`: {Op: parley.OpDeliver, From: 1,
			Msg: parley.Msg{Kind: parley.Decide, Body: []byte("[1,2]")}},
		`{"dest":"parley","body":{"type":"deliver","origin":"n3","message":5}}`: {Op: parley.OpDeliver, From: 1, To: 2,
			Msg: parley.Msg{Kind: parley.Carried, Origin: 2, Body: []byte("5")}},
		`{"dest":"parley","body":{"type":"suspect","node":"n1"}}`: {Op: parley.OpIndicate, From: 1, To: 1,
			Msg: parley.Msg{Kind: parley.Suspect}},
		`{"dest":"parley","body":{"type":"append","record":{ }}}`: {Op: parley.OpAppend, From: 1,
			Msg: parley.Msg{Body: []byte("{}")}},
		`{"dest":"parley","body":{"type":"set_timer","timer":3,"after":10}}`: {Op: parley.OpSetTimer, From: 1, Timer: 3, After: 10},
		`{"dest":"parley","body":{"type":"stop_timer","timer":3}}`:           {Op: parley.OpStopTimer, From: 1, Timer: 3},
	} {
		l, err := envelope.Read([]byte(line), 1, om)
		if err != nil || l.Do == nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		s := &parley.Step{Self: 1, N: 4, Now: 2100}
		l.Do(s)
		if len(s.Effects) != 1 || fmt.Sprint(s.Effects[0]) != fmt.Sprint(want) {
			t.Errorf("%s\ngot  %v\nwant %v", line, s.Effects, want)
		}
	}
	for line, want := range map[string]envelope.Line{
		`{"src":"n2","dest":"c1","body":{"type":"init_ok","in_reply_to":1}}`:    {InitOK: true},
		`{"body":{"type":"parley_done"}}`:                                       {Done: true},
		`{"src":"n2","dest":"parley","body":{"type":"parley_done"}}`:            {Done: true},
		`{"src":"n2","dest":"c9","body":{"type":"read_ok","in_reply_to":null}}`: {},
	} {
		if l, err := envelope.Read([]byte(line), 1, om); err != nil || l.Done != want.Done || l.InitOK != want.InitOK || l.Do != nil {
			t.Errorf("%s: %+v, %v", line, l, err)
		}
	}
}

// Messages are shown by their types and their other keys.
func TestExplain(t *testing.T) {
	om := envelope.Of(protocol(t, "om"))
	for body, want := range map[string]string{
		`{"origin":"n2","type":"value","value":7,"path":["n1"]}`: `value origin=n2 path=["n1"] 7`,
		`{"type":"ping"}`: "ping", `{"a":1}`: `{"a":1}`, `{"type":{}}`: "{}", `[1]`: `[1]`, `{`: `{`,
	} {
		for got := range om.Explain(parley.Env{}, parley.Msg{Kind: envelope.Message, Body: []byte(body)}, nil) {
			if got != want {
				t.Errorf("%s: got %s, want %s", body, got, want)
			}
		}
	}
}

// A program can neither forge its name nor name processes that do not exist.
func TestReadRefuses(t *testing.T) {
	om := envelope.Of(protocol(t, "om"))
	for _, line := range []string{
		`{"src":"n1","dest":"n3","body":{}}`, `{"dest":"n5","body":{}}`, `{"dest":"n0","body":{}}`, `{"dest":"n03","body":{}}`,
		`{"dest":"n2","body":{}}`, `{"dest":"parley","body":{"type":"deliver","origin":"n5","message":1}}`,
		`{"dest":"parley","body":{"type":"deliver","origin":"n3"}}`, `{"dest":"parley","body":{"type":"decide"}}`,
		`{"dest":"parley","body":{"type":"set_timer","timer":65535,"after":1}}`,
		`{"dest":"parley","body":{"type":"set_timer","timer":1,"after":-1}}`,
	} {
		if l, err := envelope.Read([]byte(line), 1, om); err == nil {
			t.Errorf("%s: taken as %+v", line, l)
		}
	}
}

// Whatever a program writes is refused, or is something that a host carries out.
func FuzzRead(f *testing.F) {
	for _, line := range []string{
		`{"src":"n2","dest":"n3","body":{"type":"x"}}`, `{"dest":"parley","body":{"type":"decide","value":{}}}`,
		`{"dest":"parley","body":{"type":"set_timer","timer":1e3,"after":1}}`, `{"dest":"n65537","body":{}}`, `[]`, `{"dest":"c"`,
	} {
		f.Add([]byte(line))
	}
	om := envelope.Of(protocol(f, "om"))
	f.Fuzz(func(t *testing.T, line []byte) {
		l, err := envelope.Read(line, 1, om)
		if err != nil || l.Do == nil {
			return
		}
		s := &parley.Step{Self: 1, N: 4, Host: refusals{}}
		l.Do(s)
		for _, e := range s.Effects {
			if e.Op == parley.OpSend && (e.To == 1 || e.To > 3 || !json.Valid(e.Msg.Body)) {
				t.Errorf("%s: %+v", line, e)
			}
		}
	})
}

// refusals is the host of a step that only refuses.
type refusals struct{}

func (refusals) Choose(int) int                        { return 0 }
func (refusals) Sign(parley.ID, []byte) []byte         { return nil }
func (refusals) Verify(parley.ID, []byte, []byte) bool { return false }
func (refusals) Refused(_, _ parley.ID, _ string)      {}
