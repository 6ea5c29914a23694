package cli

import (
	"runtime/debug"
	"testing"
)

func TestBuildVersion(t *testing.T) {
	system := []debug.BuildSetting{{Key: "GOARCH", Value: "arm64"}, {Key: "GOOS", Value: "linux"}}
	commit := append([]debug.BuildSetting{
		{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "fcd39d160c29"}, {Key: "vcs.time", Value: "2026-11-26T01:52:03Z"},
	}, system...)
	for _, c := range []struct {
		settings []debug.BuildSetting
		want     string
	}{
		{system, "v1.2.3 (go1.26.8 linux/arm64)"},
		{commit, "v1.2.3 (commit fcd39d160c29, 2026-11-26T01:52:03Z, go1.26.8 linux/arm64)"},
		{append(commit, debug.BuildSetting{Key: "vcs.modified", Value: "true"}),
			"v1.2.3 (commit fcd39d160c29, with changes, 2026-11-26T01:52:03Z, go1.26.8 linux/arm64)"},
	} {
		info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "v1.2.3"}, Settings: c.settings}
		if got := buildVersion(info); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
