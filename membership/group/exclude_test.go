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
func TestExcludeNoProcess(t *testing.T) {
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

// A member that was down when it was excluded is another incarnation for those who asked for that: it joins again,
// but not without Return.
func TestExcludedWhileDown(t *testing.T) {
	for _, c := range []group.Config{{N: 4, Durable: true, Return: true}, {N: 4, Durable: true}} {
		p := newPost(t, c)
		p.ask(0, parley.Msg{Kind: group.Exclude, Origin: 1})
		p.down(1)
		p.restart(1)
		p.all(20, 0, 2, 3)
		p.expectOf("suspects 1; view 2 [0 2 3]; excludes 1", 0, 3)
		p.heard(1)
		p.all(40, 0, 1, 2, 3)
		if !c.Return {
			p.expect(1, "out 0")
			continue
		}
		p.expect(1, "out 0; restored 0 ; view 3 [0 1 2 3]")
	}
}

// A member that has restarted, and has entered a view since, is excluded like any other: it does not rejoin by itself.
func TestExcludedAfterARestart(t *testing.T) {
	p := newPost(t, group.Config{N: 4, Durable: true, Return: true})
	p.down(1)
	p.restart(1)
	p.all(20, 0, 1, 2, 3)
	p.expect(1, "view 1 [0 1 2 3]; view 2 [0 1 2 3]")
	p.ask(0, parley.Msg{Kind: group.Exclude, Origin: 1})
	p.all(20, 0, 1, 2, 3)
	p.expect(1, "out 2")
}

// A member that reads in its log that another one was excluded does not indicate that again: that one may be back.
func TestExclusionIsNotRepeated(t *testing.T) {
	p := newPost(t, group.Config{N: 4, Durable: true})
	p.ask(0, parley.Msg{Kind: group.Exclude, Origin: 1})
	p.all(20, 0, 1, 2, 3)
	p.expect(3, "view 2 [0 2 3]; excludes 1")
	p.restart(3)
	p.expect(3, "view 1 [0 1 2 3]; view 2 [0 2 3]")
}
