package conform

import (
	"fmt"

	"parley"
	"parley/broadcast/diffusion"
	"parley/internal/conform/form"
)

// diffusionCase is one reliable broadcast by diffusion.
type diffusionCase struct {
	head
	Graph   map[string][]string `json:"graph"` // the neighbours of each process
	Sender  string              `json:"sender"`
	Crashes map[string][]string `json:"crashes" empty:"allowed"`
}

type diffusionExpect struct {
	Delivered []string `json:"delivered_by_correct"`
	Messages  *int     `json:"messages"`
}

func diffuse(raw []byte, report reporter) error {
	var c diffusionCase
	var want diffusionExpect
	if err := read(raw, &c, &want); err != nil {
		return err
	}
	b, err := c.prepare()
	if err != nil {
		return err
	}
	if err := b.run(); err != nil {
		return err
	}
	if want.Delivered != nil {
		report("delivered_by_correct", want.Delivered, b.deliveredByCorrect())
	}
	if want.Messages != nil { // the sender's copy to itself counts
		report("messages", *want.Messages, b.writes(diffusion.Data)+len(b.kept))
	}
	return nil
}

func (c diffusionCase) prepare() (*spread, error) {
	k, err := named(form.Keys(c.Graph))
	if err != nil {
		return nil, err
	}
	sender, err := k.id(c.Sender)
	if err != nil {
		return nil, fmt.Errorf("sender: %w", err)
	}
	graph := make([]parley.Set, len(k.names))
	for i, name := range k.names {
		ids, err := k.ids(c.Graph[name])
		if err != nil {
			return nil, fmt.Errorf("graph: %s: %w", name, err)
		}
		if graph[i] = parley.SetOf(ids...); graph[i].Len() < len(ids) || graph[i].Has(parley.ID(i)) {
			return nil, fmt.Errorf("graph: %s: a neighbour is given twice, or is the process itself", name)
		}
	}
	for i, neighbours := range graph {
		for id := range neighbours.All() {
			if !graph[id].Has(parley.ID(i)) {
				return nil, fmt.Errorf("graph: %q is a neighbour of %q, and not the other way round", k.names[id], k.names[i])
			}
		}
	}
	p := diffusion.New(diffusion.Config{N: len(graph), Graph: graph})
	return newSpread(k, p, diffusion.Data, sender, c.Crashes)
}
