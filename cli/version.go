package cli

import (
	"runtime/debug"
	"strings"
)

// version returns what "parley --version" prints: the version of the module, the commit and its date, Go's version and
// the system. The go command writes them into the program; a program that was not built in a clone has no commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return buildVersion(info)
}

// buildVersion returns the version that the go command wrote into a program.
func buildVersion(info *debug.BuildInfo) string {
	setting := make(map[string]string)
	for _, s := range info.Settings {
		setting[s.Key] = s.Value
	}
	details := []string{info.GoVersion + " " + setting["GOOS"] + "/" + setting["GOARCH"]}
	if commit := setting["vcs.revision"]; commit != "" {
		if setting["vcs.modified"] == "true" {
			commit += ", with changes"
		}
		details = append([]string{"commit " + commit, setting["vcs.time"]}, details...)
	}
	return info.Main.Version + " (" + strings.Join(details, ", ") + ")"
}
