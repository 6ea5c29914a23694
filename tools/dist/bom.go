package main

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// boms writes for each binary the list of the modules in it (a software bill of materials), in the form of CycloneDX.
func (r *release) boms() error {
	for _, b := range r.binaries {
		bom, err := bomOf(b)
		if err != nil {
			return err
		}
		out, err := os.Create(r.name(b, ".cdx.json"))
		if err != nil {
			return err
		}
		err = cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
	return nil
}

func bomOf(b *binary) (*cdx.BOM, error) {
	main := component(cdx.ComponentTypeApplication, b.info.Main.Path, b.info.Main.Version)
	main.PackageURL += "?goos=" + b.os + "&goarch=" + b.arch
	main.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	components := []cdx.Component{component(cdx.ComponentTypeLibrary, "std", strings.TrimPrefix(b.info.GoVersion, "go"))}
	for _, m := range b.info.Deps {
		c := component(cdx.ComponentTypeLibrary, m.Path, m.Version)
		// The sum in go.sum is the SHA-256 of the list of the module's files, as other lists of Go modules give it too.
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
		if err != nil || len(sum) == 0 {
			return nil, errors.Join(err, fmt.Errorf("%s: module %s has no sum", b.path, m.Path))
		}
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
		components = append(components, c)
	}
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.BOMRef
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: b.date.Format(time.RFC3339), Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return bom, nil
}

func component(kind cdx.ComponentType, path, version string) cdx.Component {
	url := "pkg:golang/" + path + "@" + version
	return cdx.Component{BOMRef: url, Type: kind, Name: path, Version: version, PackageURL: url}
}
