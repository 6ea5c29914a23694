package group_test

import (
	"testing"

	"parley"
	"parley/membership/group"
)

// A live member is excluded if another one requests it, of whatever rank: all members indicate it as
// expelled, and it does not rejoin by itself.
func TestExclude(t *testing.T) {
	for _, asks := range []parley.ID{0, 2} {
		p := newPost(t, group.Config{N: 4, Return: true})
		p.deliver(1, "a", 0, 1, 2, 3)
		p.ask(asks, parley.Msg{Kind: group.Exclude, Origin: 1})
		p.all(20, 0, 1, 2, 3)
		p.expect(1, "1:a; out 2")
		p.expectOf("1:a; view 2 [0 2 3]; excludes 1", 0, 3)
		p.deliver(3, "b", 0, 2, 3)
		p.expect(0, "2:b")
		p.sent(1, 0)
	}
}

// A request to exclude oneself, a process that is no member, or all members has no effect.
func TestExcludeNobody(t *testing.T) {
	p := newPost(t, group.Config{N: 3, Initial: parley.SetOf(0, 1)})
	for _, id := range []parley.ID{0, 2, 9} {
		p.ask(0, parley.Msg{Kind: group.Exclude, Origin: id})
	}
	p.settle(0, 1)
	p.expect(0, "")
	// Two members each want to exclude the other: both stay, because a view has a majority of all.
	p.ask(0, parley.Msg{Kind: group.Exclude, Origin: 1})
	p.ask(1, parley.Msg{Kind: group.Exclude, Origin: 0})
	p.settle(0, 1)
	p.expectOf("", 0, 1)
	p = newPost(t, group.Config{N: 3})
	p.ask(0, parley.Msg{Kind: group.Exclude, Origin: 1})
	p.ask(0, parley.Msg{Kind: group.Exclude, Origin: 2})
	p.settle(0, 1, 2)
	p.expect(0, "view 2 [0 2]; excludes 1")
}
