package group_test

import (
	"fmt"
	"testing"

	"parley"
	"parley/membership/detector"
	"parley/membership/group"
)

// broke has processes hear from their host that a link is broken, and then for the grace.
func (p *post) broke(of parley.ID, at ...parley.ID) {
	for _, id := range at {
		p.ask(id, parley.Msg{Kind: detector.Broke, Origin: of})
	}
	p.now += detector.Config{}.WithDefaults().Grace
	for _, id := range at {
		p.do(id, func(m parley.Machine, s *parley.Step) { m.Timeout(s, 2) })
	}
}

// A member whose links with a majority are broken is left out of the next view at once; with
// one link fewer than that nothing happens.
func TestBrokenLinks(t *testing.T) {
	for _, down := range []parley.ID{0, 2, 4} {
		p := newPost(t, group.Config{N: 5})
		var stay []parley.ID
		for id := range parley.ID(5) {
			if id != down {
				stay = append(stay, id)
			}
		}
		p.broke(down, stay[:2]...)
		p.settle(stay...)
		for _, id := range stay {
			p.expect(id, "")
		}
		p.broke(down, stay[2:3]...)
		p.settle(stay...)
		for _, id := range stay {
			if said := p.heard(id); said != "suspects "+fmt.Sprint(down)+"; view 2 "+fmt.Sprint(stay) &&
				said != "view 2 "+fmt.Sprint(stay) {
				t.Errorf("without %d, %d says %s", down, id, said)
			}
		}
	}
}

// A link that is mended before the grace is over was never broken for the others.
func TestMendedLinks(t *testing.T) {
	p := newPost(t, group.Config{N: 3})
	for _, id := range []parley.ID{0, 1} {
		p.ask(id, parley.Msg{Kind: detector.Broke, Origin: 2})
		p.ask(id, parley.Msg{Kind: detector.Mended, Origin: 2})
	}
	p.broke(2)
	for _, id := range []parley.ID{0, 1} {
		p.do(id, func(m parley.Machine, s *parley.Step) { m.Timeout(s, 2) })
	}
	p.settle(0, 1, 2)
	p.expectOf("", 0, 1, 2)
}

// A link that is mended may have lost what somebody waits for: the view ends, with all in the
// next one, and what was lost is delivered by its cut. If nothing is waited for it goes on.
func TestMendedLinkLostSomething(t *testing.T) {
	for _, regains := range []parley.ID{0, 1} {
		p := newPost(t, group.Config{N: 3})
		p.ask(regains, parley.Msg{Kind: detector.Mended, Origin: 1 - regains})
		p.settle(0, 1, 2)
		p.expect(0, "")
		p.cast(regains, "a")
		p.lose(regains, 1-regains)
		p.settle(0, 1, 2)
		p.expect(regains, "")
		p.ask(regains, parley.Msg{Kind: detector.Mended, Origin: 1 - regains})
		p.settle(0, 1, 2)
		p.expectOf("1:a; view 2 [0 1 2]", 0, 1, 2)
	}
}
