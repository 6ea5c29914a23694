package conform

import (
	"parley"
	"parley/broadcast/diffusion"
	"parley/internal/conform/form"
)

// diffusionCase is one reliable broadcast by diffusion.
type diffusionCase struct {
	head
	Graph   map[string][]string `json:"graph"` // the neighbors of each process
	Sender  string              `json:"sender"`
	Crashes map[string][]string `json:"crashes" empty:"allowed"`
}

type diffusionExpect struct {
	Delivered []string `json:"delivered_by_correct"`
	Messages  *int     `json:"messages"`
}

func diffuse(c diffusionCase, want diffusionExpect, report reporter) {
	b := c.prepare()
	b.run()
	report("delivered_by_correct", want.Delivered, b.deliveredByCorrect())
	report("messages", want.Messages, b.writes(diffusion.Data)+len(b.kept)) // includes the sender's copy to itself
}

func (c diffusionCase) prepare() *spread {
	k := named("", form.Keys(c.Graph))
	sender := k.id("sender", c.Sender)
	graph := make([]parley.Set, len(k.names))
	for i, name := range k.names {
		ids := k.ids("graph: "+name, c.Graph[name])
		if graph[i] = parley.SetOf(ids...); graph[i].Len() < len(ids) || graph[i].Has(parley.ID(i)) {
			fail("graph: %s: a neighbour is given twice, or is the process itself", name)
		}
	}
	for i, neighbours := range graph {
		for id := range neighbours.All() {
			if !graph[id].Has(parley.ID(i)) {
				fail("graph: %q is a neighbour of %q, and not the other way round", k.names[id], k.names[i])
			}
		}
	}
	return newSpread(k, diffusion.New(diffusion.Config{N: len(graph), Graph: graph}), diffusion.Data, sender, c.Crashes)
}
