package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// display reports whether there is a screen on which a browser may open.
func display() bool {
	switch runtime.GOOS {
	case "darwin", "windows":
		return true
	}
	return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != ""
}

// opener returns the command that opens a file in the browser.
func opener(file string) []string {
	switch runtime.GOOS {
	case "darwin":
		return []string{"open", file}
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", file}
	}
	return []string{"xdg-open", file}
}

// browse opens an address in the browser, by a file that leads to it. forget removes the file.
func browse(address string) (forget func(), err error) {
	dir, err := os.MkdirTemp("", "parley-lab-") // which only the user can read
	if err != nil {
		return func() {}, err
	}
	forget = func() { os.RemoveAll(dir) }
	file := filepath.Join(dir, "lab.html")
	text := fmt.Sprintf("<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>Parley lab</title>\n"+
		"<meta http-equiv=\"refresh\" content=\"0; url=%[1]s\">\n<a href=\"%[1]s\">Open the lab</a>\n", address)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return forget, err
	}
	words := opener(file)
	cmd := exec.Command(words[0], words[1:]...)
	apart(cmd)
	if err := cmd.Start(); err != nil {
		return forget, err
	}
	return forget, cmd.Process.Release() // it may be the browser, which remains
}
