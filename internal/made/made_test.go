package made

import (
	"os"
	"path/filepath"
	"testing"
)

// A part replaces what stood between its two lines, can be read again, and a page without the lines is an error.
func TestPart(t *testing.T) {
	p := Part{"x", "make x"}
	file := filepath.Join(t.TempDir(), "p.md")
	const old = "a\n<!-- x: made by \"make x\" -->\nold\n<!-- end of x -->\nb\n"
	if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.Write(file, "new\n"); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		if want := "a\n<!-- x: made by \"make x\" -->\n\nnew\n\n<!-- end of x -->\nb\n"; err != nil || string(b) != want {
			t.Errorf("got %q, %v, want %q", b, err, want)
		}
		if text, err := p.Read(file); err != nil || text != "new\n" {
			t.Errorf("got %q, %v, want new", text, err)
		}
	}
	if err := (Part{"y", "make y"}).Write(file, "new"); err == nil {
		t.Error("a page without the lines was filled")
	}
}
