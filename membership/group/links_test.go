package group_test

import (
	"fmt"
	"testing"

	"parley"
	"parley/membership/detector"
	"parley/membership/group"
)

// broke reports a broken link to processes, and lets the grace period pass.
func (p *post) broke(of parley.ID, at ...parley.ID) {
	for _, id := range at {
		p.ask(id, parley.Msg{Kind: detector.Broke, Origin: of})
	}
	p.now += detector.Config{}.WithDefaults().Grace
	for _, id := range at {
		p.do(id, func(m parley.Machine, s *parley.Step) { m.Timeout(s, 2) })
	}
}

// A member whose links with a majority are broken is excluded at once; with one broken link fewer nothing
// happens.
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

// The others never count a link as broken that is mended within the grace period.
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

// A mended link may have lost a message that a process waits for: the view ends, all are in the next one, and
// its cut delivers what was lost. If nothing is waited for, the view continues.
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
