// Package made updates the parts of documentation pages that contain the output of commands. Such a part is between
// the comments <!-- NAME: made by "COMMAND" --> and <!-- end of NAME -->. The rest of a page is written by hand.
package made

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Part is a part of a page.
type Part struct {
	Name    string // unique on the page
	Command string // as a reader types it, such as "make mutants"
}

func (p Part) begin() []byte {
	return fmt.Appendf(nil, "<!-- %s: made by \"%s\" -->\n", p.Name, p.Command)
}
func (p Part) end() []byte { return fmt.Appendf(nil, "<!-- end of %s -->\n", p.Name) }

// cut returns what stands before, in, and after the part. A page without its two lines is an error.
func (p Part) cut(page []byte) (before, part, after []byte, err error) {
	before, rest, found := bytes.Cut(page, p.begin())
	part, after, closed := bytes.Cut(rest, p.end())
	if !found || !closed {
		return nil, nil, nil, fmt.Errorf("the lines %sand %sare missing", p.begin(), p.end())
	}
	return before, part, after, nil
}

// Fill returns the page with another text as the part.
func (p Part) Fill(page []byte, text string) ([]byte, error) {
	before, _, after, err := p.cut(page)
	if err != nil {
		return nil, err
	}
	return slices.Concat(before, p.begin(), []byte("\n"+strings.Trim(text, "\n")+"\n\n"), p.end(), after), nil
}

// Write fills the part of the page in a file.
func (p Part) Write(file, text string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if page, err = p.Fill(page, text); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, page, 0o644)
}

// Read returns the part of the page in a file, without the empty lines around it.
func (p Part) Read(file string) (string, error) {
	page, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	_, part, _, err := p.cut(page)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return strings.Trim(string(part), "\n") + "\n", nil
}

// Here says when and where a command ran: date, processors, system, and version of Go.
func Here() string {
	model := ""
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, rest, _ := strings.Cut(string(info), "model name")
		line, _, _ := strings.Cut(rest, "\n")
		_, name, _ := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); name != "" {
			model = " (" + name + ")"
		}
	}
	return fmt.Sprintf("%s, %d processors%s, %s/%s, %s", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), model,
		runtime.GOOS, runtime.GOARCH, runtime.Version())
}
