package news_test

import (
	"testing"

	"parley/replica/news"
)

// A response is understood if the article came first (lecture, FIFO broadcast,
// continued).
func TestOrderMatters(t *testing.T) {
	right, wrong := news.New(), news.New()
	right.Apply([]byte("article a"))
	if got := string(right.Apply([]byte("response b to a"))); got != "understood b" {
		t.Error(got)
	}
	if got := string(wrong.Apply([]byte("response b to a"))); got != "misread b: there is no a yet" {
		t.Error(got)
	}
	if got := string(wrong.Apply([]byte("rumour"))); got != "no such command" {
		t.Error(got)
	}
	copied := news.New()
	if !copied.Restore(right.Snapshot()) || string(copied.Snapshot()) != "a b" {
		t.Errorf("%q", copied.Snapshot())
	}
	if copied.Restore([]byte(" a")) {
		t.Error("a state with a blank in front was taken")
	}
}
