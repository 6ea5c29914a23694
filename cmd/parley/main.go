// Command parley makes processes agree although some of them crash, omit messages or lie.
package main

import (
	"parley/catalog"
	"parley/cli"
)

func main() { cli.Main(catalog.All()) }
