package browser_test

import "testing"

// After an agreement, the page shows its stream, and after a broadcast the group again. When the nodes have broadcast for
// some seconds, the page says what the audit says. It does not judge a node that was killed. (On a busy computer a node may
// be too late for an agreement; then the page gives no verdict on it. Package live tests these verdicts.)
func TestLiveVerdict(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	lab, address := killable(t)
	defer func() {
		_ = lab.Process.Kill()
		_ = lab.Wait()
	}()
	b := open(t, address)
	b.says(shown)
	start(b)
	b.says("nothing is judged now")
	b.press("Agree")
	b.until(`/^agree/.test(document.querySelector(".live-lanes select")?.value)`)
	b.press("Broadcast")
	b.until(`/^group/.test(document.querySelector(".live-lanes select")?.value)`)
	b.until(`(box => box.checked || (box.click(), true))(document.querySelector(".check input"))`)
	b.until(`/broadcasts? in the last seconds, at node1, node2 and node3/.test(document.querySelector(".ruling-live")?.innerText)`)
	b.until(`document.querySelectorAll(".ruling-live .ok").length > 2 && !document.querySelector(".ruling-live .bad")`)
	b.pressNamed("Kill node3")
	b.press("Do it")
	b.until(`!/node3/.test(document.querySelector(".ruling-live .card-head")?.innerText)`)
	b.clean()
}
