// Command parley makes processes agree when some of them crash, fall silent or lie.
package main

import (
	"parley/catalog"
	"parley/cli"
)

func main() { cli.Main(catalog.All()) }
