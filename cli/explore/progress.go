package explore

import (
	"fmt"
	"os"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"parley/cli/console"
	"parley/explore"
	"parley/internal/draw/prose"
	"parley/internal/exploration"
)

// searchProgress returns a function that shows the progress of a search, and one that stops this. A terminal shows
// one line, which is overwritten. Another file gets a line whenever the duration of the search has doubled, or after
// another 30 seconds, unless --json promises a program that only errors are there.
func searchProgress(a *console.App, width int) (show func(explore.Progress), clear func()) {
	out, ok := a.Err.(*os.File)
	if !ok {
		return func(explore.Progress) {}, func() {}
	}
	if !term.IsTerminal(int(out.Fd())) {
		if a.JSON {
			return func(explore.Progress) {}, func() {}
		}
		next := time.Duration(0)
		return func(p explore.Progress) {
			if p.Took >= next {
				next = p.Took + min(p.Took, 30*time.Second)
				fmt.Fprintln(out, progressLine(p, inUse(), 1<<10))
			}
		}, func() {}
	}
	var last atomic.Pointer[explore.Progress]
	clear = a.Progress(time.Second/4, func() string {
		if p := last.Load(); p != nil {
			return progressLine(*p, inUse(), a.Width(width))
		}
		return ""
	})
	return func(p explore.Progress) { last.Store(&p) }, clear
}

// progressLine returns the progress of a search as one line.
func progressLine(p explore.Progress, memory uint64, width int) string {
	text := prose.Count(p.States, "state", "states")
	if p.Outcomes > p.States { // liars' answers are enumerated before they yield states
		text += ", " + prose.Count(p.Outcomes, "outcome of a step", "outcomes of steps")
	}
	text += fmt.Sprintf(", %s per second, depth %s, %s waiting, %s",
		prose.Number(exploration.Rate(p)), prose.Number(uint64(p.Depth)), prose.Number(p.Frontier), mebibytes(memory))
	if len(text) >= width { // a line that wraps could not be overwritten
		text = text[:max(width-1, 0)]
	}
	return text
}

func mebibytes(b uint64) string { return prose.Number((b+1<<19)>>20) + " MiB" }

// inUse returns the number of bytes that the program holds from the system.
func inUse() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}
