package cert

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Description describes a certificate, a list, a key, or a signer in a file. Only the fields that apply are set.
type Description struct {
	File    string    `json:"file"`
	What    string    `json:"what"` // in words, with the name in it
	Name    string    `json:"name,omitempty"`
	Rights  Rights    `json:"rights,omitzero"`
	Hosts   []string  `json:"hosts,omitempty"`
	Use     string    `json:"use,omitempty"`
	Serial  string    `json:"serial,omitempty"`
	From    time.Time `json:"from,omitzero"`
	Until   time.Time `json:"until,omitzero"`
	Signer  string    `json:"signer,omitempty"`
	Number  string    `json:"number,omitempty"`  // of a list
	Revoked int       `json:"revoked,omitempty"` // number of entries of a list
	Problem string    `json:"problem,omitempty"` // what is wrong with it; empty if nothing is
}

// Inspect describes the contents of a file. It judges the file by trust, at the present time of trust. If trust is
// nil, Inspect cannot check the signature, and reports this as a problem. Inspect returns an error if the file
// contains nothing that it can describe.
func Inspect(file string, t *Trust) ([]Description, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if line := strings.TrimSpace(string(b)); strings.HasPrefix(line, signerPrefix) {
		if _, err := ParseSigner(line); err != nil {
			return nil, inFile(file, err)
		}
		return []Description{{File: file, What: "public half of a signer", Signer: line}}, nil
	}
	var out []Description
	for {
		var block *pem.Block
		if block, b = pem.Decode(b); block == nil {
			break
		}
		d, err := inspect(block, t)
		if err != nil {
			return nil, fmt.Errorf("%s: block %d: %w", file, len(out)+1, err)
		}
		if block.Type == pemKey {
			d.Problem = readableByOthers(file)
		}
		d.File = file
		out = append(out, d)
	}
	if out == nil {
		return nil, fmt.Errorf("%s: neither a certificate nor a revocation list, a key or a signer", file)
	}
	return out, nil
}

func inspect(block *pem.Block, t *Trust) (Description, error) {
	switch block.Type {
	case pemCertificate:
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return Description{}, err
		}
		return describe(c, t), nil
	case pemList:
		list, err := x509.ParseRevocationList(block.Bytes)
		if err == nil && list.Number == nil {
			err = errors.New("a revocation list without a number")
		}
		if err != nil {
			return Description{}, err
		}
		return describeList(list, t), nil
	case pemKey:
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return Description{}, err
		}
		switch key := key.(type) {
		case ed25519.PrivateKey:
			return Description{What: "signer", Signer: FormatSigner(key.Public().(ed25519.PublicKey))}, nil
		case *ecdsa.PrivateKey:
			return Description{What: "key of a certificate"}, nil
		}
		return Description{}, errors.New("a key of a kind that is not in use here")
	}
	return Description{}, fmt.Errorf("a PEM block %s: allowed are %s, %s and %s",
		quoted(block.Type), pemCertificate, pemList, pemKey)
}

const noAuthority = "no authority is at hand: who signed is not known"

// describe describes a certificate.
func describe(c *x509.Certificate, t *Trust) Description {
	d := Description{Serial: Serial(c), From: c.NotBefore, Until: c.NotAfter, Hosts: c.DNSNames}
	for _, ip := range c.IPAddresses {
		d.Hosts = append(d.Hosts, ip.String())
	}
	if len(c.URIs) > 0 {
		d.Name = c.URIs[0].String()
	}
	if cluster, err := clusterOf(c); err == nil {
		d.What, d.Use = "authority of cluster "+cluster, "signs certificates and revocation lists"
		now := time.Now()
		if t != nil {
			now = t.now()
		}
		if outOfTime(c, now) {
			d.Problem = untimely(c, "it", now).Error()
		}
		return d
	}
	d.What, d.Use = "certificate of nobody", useOf(c)
	if id, err := Parse(c); err == nil {
		d.What, d.Rights = fmt.Sprintf("certificate of %s %s of cluster %s", id.Kind, id.Name, id.Cluster), id.Rights
	} else {
		d.Problem = err.Error()
	}
	if t != nil {
		if _, err := t.Verify(c); err != nil {
			d.Problem = err.Error()
		}
	} else if d.Problem == "" {
		d.Problem = noAuthority
	}
	return d
}

func describeList(list *x509.RevocationList, t *Trust) Description {
	d := Description{
		What: "revocation list", From: list.ThisUpdate, Revoked: len(list.RevokedCertificateEntries),
		Number: list.Number.String(),
	}
	if t == nil {
		d.Problem = noAuthority
		return d
	}
	a := t.held.Load()
	for _, c := range a.all {
		if list.CheckSignatureFrom(c) != nil {
			continue
		}
		d.What += " of the authority of cluster " + a.cluster
		if newest := a.numbers[keyOf(c)]; list.Number.Cmp(newest) < 0 {
			d.Problem = fmt.Sprintf("out of date: number %v is at hand", newest)
		}
		return d
	}
	d.Problem = fmt.Sprintf("%s: not signed by the authority of cluster %s", OtherAuthority, a.cluster)
	return d
}

// readableByOthers returns a problem if others than the owner can read a file.
func readableByOthers(file string) string {
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return ""
	}
	return fmt.Sprintf("others can read it: its mode is %#o, and 0600 was expected", info.Mode().Perm())
}
