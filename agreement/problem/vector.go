package problem

import (
	"bytes"
	"fmt"

	"parley"
)

// Vector returns the properties of interactive consistency. A process decides by
// delivering a vector, one value per process, which decode reads.
func Vector(decode func(body []byte) ([][]byte, error)) []parley.Property {
	return []parley.Property{
		agreed("vector", parley.All, "process", "processes"),
		{
			Name: Validity,
			Says: "if process i is correct, entry i of every correct process is the initial value of i",
			Mode: parley.Always,
			Check: func(h *parley.History) error {
				proposed, decided := proposals(h), Decisions(h)
				for id := range parley.Everyone(h.N).All() {
					if body, done := decided[id]; !done {
						continue
					} else if err := entries(h, proposed, id, body, decode); err != nil {
						return err
					}
				}
				return nil
			},
			Vacuous: undecided(1, parley.All, "process", "processes"),
		},
		termination, integrity,
	}
}

// entries checks the vector of one process against the initial values.
func entries(h *parley.History, proposed map[parley.ID][]byte, id parley.ID, body []byte,
	decode func([]byte) ([][]byte, error)) error {
	vector, err := decode(body)
	if err != nil {
		return fmt.Errorf("%s decided no vector: %w", h.Name(id), err)
	}
	if len(vector) != h.N {
		return fmt.Errorf("%s decided a vector of %d entries", h.Name(id), len(vector))
	}
	for i, v := range vector {
		of := parley.ID(i)
		if value, given := proposed[of]; given && h.Correct(of) && !bytes.Equal(v, value) {
			return fmt.Errorf("%s decided %[3]s for %[2]s, but %[2]s is correct and its value is %[4]s",
				h.Name(id), h.Name(of), parley.Printable(v), parley.Printable(value))
		}
	}
	return nil
}
