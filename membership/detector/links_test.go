package detector_test

import (
	"testing"

	"parley"
	"parley/membership/detector"
	"parley/sim"
)

// broke makes processes report their link with one as broken, and mended as mended.
func broke(of parley.ID, when parley.Tick, at ...parley.ID) (out []sim.Request) {
	return told(detector.Broke, of, when, at)
}

func mended(of parley.ID, when parley.Tick, at ...parley.ID) (out []sim.Request) {
	return told(detector.Mended, of, when, at)
}

func told(kind parley.Kind, of parley.ID, when parley.Tick, at []parley.ID) (out []sim.Request) {
	for _, id := range at {
		out = append(out, sim.Request{At: id, When: when, Msg: parley.Msg{Kind: kind, Origin: of}})
	}
	return out
}

// A crashed process is suspected as soon as a majority has reported broken links with it: after the grace and
// the delay of a message, not after a timeout.
func TestBrokenLinksOfACrash(t *testing.T) {
	for n := 3; n <= 6; n++ {
		c := detector.Config{N: n, Beats: 40}.WithDefaults()
		crashed := parley.ID(n - 1)
		var others []parley.ID
		for id := range crashed {
			others = append(others, id)
		}
		for seed := range uint64(40) {
			const when = 5000
			s := run(c, sim.Options{
				Seed: seed, FIFO: true, Crashes: []sim.Crash{{At: crashed, When: when}},
				Requests: broke(crashed, when+1, others[:n/2+1]...),
			})
			must(t, s, detector.Completeness, detector.Accuracy, detector.EventualAccuracy, detector.Detection)
			for _, id := range others {
				at := indicated(s, id, parley.Suspect, crashed)
				if latest := when + 1 + c.Grace + 900; len(at) != 1 || at[0] > latest {
					t.Errorf("n = %d, seed %d: %s suspects at %v, not once and by %d", n, seed, id, at, latest)
				}
			}
		}
	}
}

// No process is suspected while half of all still have their links with it, or if they are mended within the
// grace period; and reports of a crashed process do not count.
func TestBrokenLinksOfAFew(t *testing.T) {
	c := detector.Config{N: 5, Beats: 40}.WithDefaults()
	far := parley.Tick(1) + c.Grace
	for name, requests := range map[string][]sim.Request{
		"one link":              append(broke(1, 3000, 0), broke(0, 3000, 1)...),
		"two links":             broke(4, 3000, 0, 1),
		"all, mended at once":   append(broke(4, 3000, 0, 1, 2, 3), mended(4, 3000+c.Grace-1, 0, 1, 2, 3)...),
		"one after the other":   append(append(broke(4, 3000, 0, 1), mended(4, 3000+far, 0, 1)...), broke(4, 6000, 2, 3)...),
		"nobody there is meant": broke(250, 3000, 0, 1, 2, 3),
	} {
		for seed := range uint64(40) {
			s := run(c, sim.Options{Seed: seed, FIFO: true, Requests: requests})
			if n := s.Stats.FalseSuspicions; n > 0 {
				t.Errorf("%s, seed %d: %d suspicions of processes that live", name, seed, n)
			}
		}
	}
	// P4 reports that its link with P5 broke, and crashes. P1 and P2 lose theirs later: that makes two.
	requests := append(broke(4, 3000, 3), broke(4, 20_000, 0, 1)...)
	for seed := range uint64(40) {
		s := run(detector.Config{N: 5, Beats: 80}, sim.Options{
			Seed: seed, FIFO: true, Requests: requests, Crashes: []sim.Crash{{At: 3, When: 4500}},
		})
		must(t, s, detector.Completeness)
		for id := range parley.ID(3) {
			if at := indicated(s, id, parley.Suspect, 4); len(at) > 0 {
				t.Errorf("seed %d: %s counts the word of one that has crashed", seed, id)
			}
		}
	}
}

// A live process with which a majority reports broken links is suspected, and trusted again after its next
// heartbeats. Accuracy covers only processes that keep their links.
func TestBrokenLinksOfOneThatLives(t *testing.T) {
	c := detector.Config{N: 3, Beats: 40}
	for seed := range uint64(40) {
		s := run(c, sim.Options{
			Seed: seed, FIFO: true, Requests: append(broke(2, 3000, 0, 1), mended(2, 4000, 0, 1)...),
			Links: []sim.Link{{From: parley.SetOf(2), To: parley.SetOf(0, 1), Since: 2900, Until: 4000, Loss: 1}},
		})
		must(t, s, detector.Accuracy, detector.EventualAccuracy)
		for id := range parley.ID(2) {
			if suspects, trusts := indicated(s, id, parley.Suspect, 2), indicated(s, id, detector.Trust, 2); len(suspects) != 1 ||
				len(trusts) != 1 || trusts[0] < suspects[0] {
				t.Errorf("seed %d: %s suspects at %v and trusts at %v", seed, id, suspects, trusts)
			}
		}
	}
}

// A malformed report of links is no heartbeat.
func TestWord(t *testing.T) {
	c := detector.Config{N: 9}.WithDefaults()
	m := detector.NewMonitor(c, 0)
	m.Watch(0, parley.Everyone(9))
	if w := m.Word(); w != nil {
		t.Errorf("with all links whole the word is %x", w)
	}
	m.Broke(10, 3)
	m.Broke(10, 8)
	if m.Links(10+c.Grace-1) || !m.Links(10+c.Grace) || m.Links(11+c.Grace) {
		t.Error("the links have not changed once, when the grace is over")
	}
	word := m.Word()
	if string(word) != "\x08\x01" {
		t.Errorf("the word is %x", word)
	}
	for _, bad := range []string{"\x00\x00", "\x08", "\x08\x03", "\x08\x01\x00", "\x00\x02"} {
		if m.Said(1, []byte(bad)) {
			t.Errorf("%x is taken for a word", bad)
		}
	}
	if !m.Said(1, word) || !m.Said(1, nil) {
		t.Error("a word is refused")
	}
}
