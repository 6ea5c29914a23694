package nodefile_test

import (
	"errors"
	"fmt"
	"strings"

	"parley/cluster/nodefile"
)

// A file is parsed strictly: an unknown key is an error with its line and a suggestion.
func ExampleParse() {
	file, err := nodefile.Parse("node.yaml", []byte(nodefile.Example))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(file.Name, "of", file.Cluster, "with", len(file.Members), "members")

	_, err = nodefile.Parse("node.yaml", []byte(strings.Replace(nodefile.Example, "\ndurable:", "\ndurabel:", 1)))
	wrong := new(nodefile.Error)
	if errors.As(err, &wrong) {
		found, _, _ := strings.Cut(wrong.Text, ":")
		fmt.Println(found)
	}
	// Output:
	// a of bank with 4 members
	// unknown key "durabel"
}
