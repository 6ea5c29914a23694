package diffusion_test

import (
	"testing"

	"parley/broadcast/diffusion"
	"parley/broadcast/problem"
	"parley/explore"
	"parley/parleytest"
)

// TestExplored searches every order of arrivals among three processes, with a crash after each effect of each
// step. Nothing breaks. Uniform agreement, which is promised only of the uniform form, also holds of the
// plain one here: it sends before it delivers, and what was sent arrives.
func TestExplored(t *testing.T) {
	system := func(uniform bool, m explore.Model, casts ...string) explore.Options {
		p := diffusion.New(diffusion.Config{N: 3, Uniform: uniform})
		if !uniform {
			p.Properties = append(p.Properties, problem.Of(problem.UniformAgreement)...)
		}
		return explore.Options{Protocol: p, Model: m, Roots: parleytest.Casts(casts...), Beyond: true}
	}
	crash, crashes := explore.Model{Crashes: 1}, explore.Model{Crashes: 2}
	parleytest.Explored(t, []parleytest.System{
		{Name: "one message", Options: system(false, explore.Model{}, "0a"), States: 38, Ends: 1},
		{Name: "two crashes", Options: system(false, crashes, "0a"), States: 185, Ends: 25},
		{Name: "two messages", Options: system(false, crash, "0a", "1b"), States: 12364, Ends: 61},
		{Name: "uniform, one message", Options: system(true, crash, "0a"), States: 129, Ends: 9},
		{Name: "uniform, two messages", Options: system(true, crash, "0a", "1b"), States: 26221, Ends: 140},
	})
}
