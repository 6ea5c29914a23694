package cert

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync/atomic"
)

// Self is who a process is: its certificate and key. It may be given another certificate of
// the same name while it is in use; connections made from then on use that one. Certificates
// overlap, so that those of both sides are valid at any time. It is safe for concurrent use.
type Self struct {
	id       Identity
	pem, key string // the files, or nothing
	held     atomic.Pointer[tls.Certificate]
}

// NewSelf returns who has a certificate and its key.
func NewSelf(c tls.Certificate) (*Self, error) {
	id, err := ownerOf(&c)
	if err != nil {
		return nil, err
	}
	s := &Self{id: id}
	s.held.Store(&c)
	return s, nil
}

// Identity is who the process is.
func (s *Self) Identity() Identity { return s.id }

// Certificate is the certificate in use.
func (s *Self) Certificate() *x509.Certificate { return s.held.Load().Leaf }

// Set replaces the certificate by another one of the same identity.
func (s *Self) Set(c tls.Certificate) error {
	id, err := ownerOf(&c)
	if err != nil {
		return err
	}
	if id != s.id {
		return fmt.Errorf("the new certificate is that of %s: one of %s was expected", id, s.id)
	}
	s.held.Store(&c)
	return nil
}

// Reload reads the files again that the certificate came from. After an error, as when the
// certificate has been written and its key has not, the one in use stays.
func (s *Self) Reload() error {
	if s.pem == "" {
		return fmt.Errorf("the certificate of %s comes from no file", s.id)
	}
	c, err := readPair(s.pem, s.key)
	if err == nil {
		err = s.Set(c)
	}
	if err != nil {
		return inFile(s.pem, err)
	}
	return nil
}

// ownerOf returns who has a certificate and its key, and parses the certificate where that has not been done.
func ownerOf(c *tls.Certificate) (id Identity, err error) {
	if len(c.Certificate) == 0 || c.PrivateKey == nil {
		return id, refuse(NoCertificate, "a certificate and its key were expected")
	}
	if c.Leaf == nil {
		if c.Leaf, err = x509.ParseCertificate(c.Certificate[0]); err != nil {
			return id, err
		}
	}
	return Parse(c.Leaf)
}
