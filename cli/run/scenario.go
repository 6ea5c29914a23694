package run

import (
	"fmt"
	"io"
	"os"

	"parley"
	"parley/cli/console"
	"parley/internal/form"
)

// readScenario reads a file. Without a name it returns nil, which sets no flags.
func readScenario(file string) (*form.Scenario, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, parley.FlagErrorf("scenario", "%w", console.PathError(err))
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, form.MaxScenario+1)) // a device reports no size
	if err != nil {
		return nil, parley.FlagErrorf("scenario", "%w", console.PathError(err))
	}
	if len(b) > form.MaxScenario {
		return nil, fmt.Errorf("--scenario: %s is too long: at most %d bytes are allowed", file, form.MaxScenario)
	}
	return form.ParseScenario(file, b)
}
