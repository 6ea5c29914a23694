package browser_test

import (
	"fmt"
	"testing"
)

// loose is how many times a budget a busy computer may take. Such a limit finds serious mistakes only.
const loose = 8

// The page stays small and quick: its files, its heap after 100 runs, its longest task, and a step of the cursor. The
// times have loose limits, and docs/lab-performance.md has the figures of a quiet computer.
func TestBudgets(t *testing.T) {
	size := sizes(t)
	t.Logf("compressed sizes: %v", size)
	for kind, most := range map[string]int{".js": 70_000, ".css": 12_000, ".wasm": 3_700_000} {
		if size[kind] == 0 || size[kind] > most {
			t.Errorf("%s: %d bytes compressed, at most %d", kind, size[kind], most)
		}
	}
	b := one(t)
	const runs = 100
	for seed := range runs {
		b.follow(fmt.Sprintf("#/run?s=eig&n=7&m=2&f=1:twofaced&seed=%d", seed))
		b.until(fmt.Sprintf(`document.querySelector(".title")?.textContent.includes("seed %d") && !document.querySelector(".busy")`, seed))
	}
	b.settled()
	if heap := b.heap(); heap > 250*loose/4 {
		t.Errorf("after %d runs the heap has %.0f MB", runs, heap)
	}
	if _, _, most := b.scrubbed(100); most > 50*loose {
		t.Errorf("a step of the cursor took %.0f ms", most)
	}
	if longest := b.longTasks(); longest > 50*loose*2 {
		t.Errorf("a task took %.0f ms", longest)
	}
	b.clean()
}
