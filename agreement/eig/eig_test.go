package eig_test

import (
	"fmt"
	"testing"
	"time"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
	"parley/trace"
)

func propose(at parley.ID, v string) []sim.Request {
	return []sim.Request{{At: at, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(v)}}}
}

func TestSmoke(t *testing.T) {
	c := eig.Config{N: 7, M: 2, Default: []byte("0")}
	p := eig.New(c, lockstep.Simulated)
	log := &trace.Log{Keep: true}
	s := sim.Run(sim.Options{Protocol: p, Faulty: map[parley.ID]faulty.Behaviour{0: faulty.TwoFaced, 4: faulty.Flip},
		Requests: propose(0, "0"), Measure: true, Log: log})
	fmt.Println(s.Stats, problem.Decisions(&s.History), log.Hash())
	fmt.Println(eig.Cost(7, 2))
	for _, v := range parley.Judge(p, parley.Assumptions{N: 7, M: 2, Faulty: 2}, &s.History) {
		fmt.Println(v.Property.Name, v.Broken, v.Promise)
	}
	for _, e := range log.Events {
		if e.Op == trace.Send && e.At == 1 {
			for row := range p.Explain(parley.Env{From: e.At, To: e.Peer, Path: e.Path}, e.Msg, func(id parley.ID) string { return fmt.Sprint(id + 1) }) {
				fmt.Print(row, " ")
			}
			fmt.Println()
		}
	}
}

func TestBig(t *testing.T) {
	c := eig.Config{N: 19, M: 6, Default: []byte("0")}
	f := map[parley.ID]faulty.Behaviour{}
	for i := range parley.ID(6) {
		f[1+i*3] = faulty.Random
	}
	for range 3 {
		t0 := time.Now()
		s := sim.Run(sim.Options{Protocol: eig.New(c, lockstep.Simulated), Faulty: f, Requests: propose(0, "1"), Delay: sim.Delay{Least: 1, Most: 1}})
		fmt.Println(time.Since(t0), s.Stats, len(problem.Decisions(&s.History)))
	}
}
