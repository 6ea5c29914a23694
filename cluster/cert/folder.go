package cert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The files of an authority's folder. Nodes need copies of the first two, and their own node-NAME.pem,
// node-NAME.key, and signer-NAME.key; clients need the first two and their own.
const (
	authorityFile = "ca.pem"     // the authority's certificate
	listFile      = "crl.pem"    // its revocation list
	keyFile       = "ca.key"     // its key: do not copy it to nodes
	indexFile     = "index.json" // its issued certificates, []Record
	lockFile      = "lock"       // exists while a command writes
)

// The types of PEM blocks.
const (
	pemCertificate = "CERTIFICATE"
	pemList        = "X509 CRL"
	pemKey         = "PRIVATE KEY" // PKCS #8
)

// Files returns the file names of a certificate and its key in a folder.
func Files(dir string, kind Kind, name string) (certificate, key string) {
	base := filepath.Join(dir, kind.String()+"-"+name)
	return base + ".pem", base + ".key"
}

// SignerFiles returns the file names of a node's signer: the key, and its public half as a line of text in the
// format of FormatSigner.
func SignerFiles(dir, name string) (key, public string) {
	base := filepath.Join(dir, "signer-"+name)
	return base + ".key", base + ".pub"
}

// Create creates an authority and its folder. It never overwrites files of another authority.
func Create(dir, cluster string, valid time.Duration) (*Authority, error) {
	a, err := NewAuthority(cluster, valid, nil)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for _, f := range []string{keyFile, authorityFile, listFile, indexFile} {
		if _, err := os.Lstat(filepath.Join(dir, f)); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is there already: a folder without an authority was expected", filepath.Join(dir, f))
		}
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	// Of two concurrent calls only one can create the key's file.
	if err := writeKey(writeNew, filepath.Join(dir, keyFile), a.key); err != nil {
		return nil, err
	}
	if err := writeNew(filepath.Join(dir, authorityFile), encode(pemCertificate, a.cert.Raw), 0o644); err != nil {
		return nil, err
	}
	err = a.save(dir)
	return a, err
}

// Open reads an authority from its folder.
func Open(dir string) (*Authority, error) {
	a := &Authority{now: time.Now}
	held, err := readAnchors(dir)
	if err != nil {
		return nil, err
	}
	if len(held.Authorities) != 1 || len(held.Lists) != 1 {
		return nil, fmt.Errorf("%s: one authority and one list were expected in the folder of an authority", dir)
	}
	checked, err := held.check()
	if err != nil {
		return nil, inFile(dir, err)
	}
	a.cert, a.list, a.cluster = held.Authorities[0], held.Lists[0], checked.cluster
	name := filepath.Join(dir, keyFile)
	key, err := readKey(name)
	if err != nil {
		return nil, err
	}
	own, ok := key.(*ecdsa.PrivateKey)
	if !ok || !own.PublicKey.Equal(a.cert.PublicKey) {
		return nil, fmt.Errorf("%s: the key does not belong to %s", name, authorityFile)
	}
	a.key = own
	name = filepath.Join(dir, indexFile)
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &a.records); err != nil {
		return nil, inFile(name, err)
	}
	for _, r := range a.records {
		if !isSerial(r.Serial) || r.Kind == 0 || CheckName(r.Name) != nil {
			return nil, fmt.Errorf("%s: %s %s: the serial, kind and name of a certificate were expected",
				name, quoted(r.Serial), quoted(r.Name))
		}
	}
	return a, nil
}

// Update calls do with the authority in a folder, and then writes its state. It writes the records first, so
// that every certificate that is given away can be revoked.
func Update(dir string, do func(*Authority) error) error {
	if _, err := os.Stat(filepath.Join(dir, authorityFile)); err != nil {
		return err // rather than about the lock
	}
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	a, err := Open(dir)
	if err != nil {
		return err
	}
	if err := do(a); err != nil {
		return err
	}
	return a.save(dir)
}

func (a *Authority) save(dir string) error {
	b, err := json.MarshalIndent(append([]Record{}, a.records...), "", "  ")
	if err != nil {
		return err
	}
	if err := replace(filepath.Join(dir, indexFile), append(b, '\n'), 0o644); err != nil {
		return err
	}
	return replace(filepath.Join(dir, listFile), encode(pemList, a.list.Raw), 0o644)
}

// Save writes a certificate and its keys into a folder. Keys are readable by the owner only. With renew it
// replaces a certificate and its key, and leaves the signer unchanged.
func (i *Issued) Save(dir string, renew bool) error {
	write := writer(writeNew)
	if renew {
		write = replace
	}
	certFile, keyFile := Files(dir, i.Kind, i.Name)
	if i.Signer != nil && !renew {
		if err := i.saveSigner(dir); err != nil {
			return err
		}
	}
	if err := writeKey(write, keyFile, i.TLS.PrivateKey); err != nil {
		return err
	}
	return write(certFile, encode(pemCertificate, i.TLS.Certificate...), 0o644)
}

func (i *Issued) saveSigner(dir string) error {
	file, public := SignerFiles(dir, i.Name)
	if err := writeKey(writeNew, file, i.Signer); err != nil {
		return err
	}
	return writeNew(public, []byte(FormatSigner(i.SignerKey())+"\n"), 0o644)
}

// LoadNode reads the identity and the signer of a node.
func LoadNode(dir, name string) (*Self, ed25519.PrivateKey, error) {
	self, err := load(dir, Node, name)
	if err != nil {
		return nil, nil, err
	}
	signer, err := LoadSigner(dir, name)
	return self, signer, err
}

// LoadClient reads the identity of a client.
func LoadClient(dir, name string) (*Self, error) { return load(dir, Client, name) }

func load(dir string, kind Kind, name string) (*Self, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	file, key := Files(dir, kind, name)
	c, err := readPair(file, key)
	if err != nil {
		return nil, err
	}
	s, err := NewSelf(c)
	if err != nil {
		return nil, inFile(file, err)
	}
	if s.id.Kind != kind || s.id.Name != name {
		return nil, fmt.Errorf("%s: the certificate belongs to %s: one of %s %s was expected", file, s.id, kind, name)
	}
	s.pem, s.key = file, key
	return s, nil
}

// LoadSigner reads the signer of a node.
func LoadSigner(dir, name string) (ed25519.PrivateKey, error) {
	file, _ := SignerFiles(dir, name)
	key, err := readKey(file)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: a key of another kind: one of Ed25519 was expected", file)
	}
	return signer, nil
}

const signerPrefix = "ed25519:"

// FormatSigner returns the public half of a signer in the format of configurations.
func FormatSigner(key ed25519.PublicKey) string {
	return signerPrefix + base64.StdEncoding.EncodeToString(key)
}

// ParseSigner parses the result of FormatSigner.
func ParseSigner(text string) (ed25519.PublicKey, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(text, signerPrefix))
	if err != nil || len(b) != ed25519.PublicKeySize || FormatSigner(b) != text {
		return nil, fmt.Errorf("%s is no signer: %s and 44 characters of base64 were expected, as in signer-NAME.pub",
			quoted(text), signerPrefix)
	}
	return b, nil
}

// LoadTrust reads trust from ca.pem and crl.pem in a folder. now is the wall clock; nil means the system's.
func LoadTrust(dir string, now func() time.Time) (*Trust, error) {
	a, err := readAnchors(dir)
	if err != nil {
		return nil, err
	}
	t, err := NewTrust(a, now)
	if err != nil {
		return nil, inFile(dir, err)
	}
	t.dir = dir
	return t, nil
}

// Reload reads the files of LoadTrust again, and sets their contents. After an error nothing has changed.
func (t *Trust) Reload() error {
	if t.dir == "" {
		return errors.New("trust comes from no folder")
	}
	a, err := readAnchors(t.dir)
	if err != nil {
		return err
	}
	if err := t.Set(a); err != nil {
		return inFile(t.dir, err)
	}
	return nil
}

func readAnchors(dir string) (Anchors, error) {
	var out Anchors
	err := readBlocks(filepath.Join(dir, authorityFile), pemCertificate, func(der []byte) error {
		c, err := x509.ParseCertificate(der)
		out.Authorities = append(out.Authorities, c)
		return err
	})
	if err != nil {
		return out, err
	}
	err = readBlocks(filepath.Join(dir, listFile), pemList, func(der []byte) error {
		list, err := x509.ParseRevocationList(der)
		out.Lists = append(out.Lists, list)
		return err
	})
	return out, err
}

// readBlocks reads a file of one or more PEM blocks of one type.
func readBlocks(file, kind string, take func(der []byte) error) error {
	rest, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		switch {
		case block == nil && n > 1 && len(bytes.TrimSpace(rest)) == 0:
			return nil
		case block == nil || block.Type != kind:
			return fmt.Errorf("%s: block %d: a PEM block %q was expected", file, n, kind)
		}
		if err := take(block.Bytes); err != nil {
			return fmt.Errorf("%s: block %d: %w", file, n, err)
		}
	}
}

// readPair reads a certificate and its key.
func readPair(file, key string) (tls.Certificate, error) {
	var c tls.Certificate
	err := readBlocks(file, pemCertificate, func(der []byte) error {
		c.Certificate = append(c.Certificate, der)
		return nil
	})
	if err != nil {
		return c, err
	}
	if c.Leaf, err = x509.ParseCertificate(c.Certificate[0]); err != nil {
		return c, inFile(file, err)
	}
	if c.PrivateKey, err = readKey(key); err != nil {
		return c, err
	}
	public, ok := c.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !public.PublicKey.Equal(c.Leaf.PublicKey) {
		return c, fmt.Errorf("%s: the key does not belong to the certificate in %s", key, filepath.Base(file))
	}
	return c, nil
}

func readKey(file string) (out any, err error) {
	n := 0
	err = readBlocks(file, pemKey, func(der []byte) error {
		if n++; n > 1 {
			return errors.New("one key was expected")
		}
		out, err = x509.ParsePKCS8PrivateKey(der)
		return err
	})
	return out, err
}
