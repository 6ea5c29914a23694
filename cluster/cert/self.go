package cert

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync/atomic"
)

// Self is the identity of a process: its certificate and key. The certificate can be replaced by another
// certificate of the same name while it is in use. Later connections use the new certificate. The old and the
// new certificate must overlap in time, so that there is always a valid one. Self is safe for concurrent use.
type Self struct {
	id       Identity
	pem, key string // file names, or empty
	held     atomic.Pointer[tls.Certificate]
}

// NewSelf returns the identity of a certificate with its key.
func NewSelf(c tls.Certificate) (*Self, error) {
	id, err := ownerOf(&c)
	if err != nil {
		return nil, err
	}
	s := &Self{id: id}
	s.held.Store(&c)
	return s, nil
}

// Identity returns the identity of the process.
func (s *Self) Identity() Identity { return s.id }

// Certificate returns the certificate in use.
func (s *Self) Certificate() *x509.Certificate { return s.held.Load().Leaf }

// Set replaces the certificate by one of the same identity.
func (s *Self) Set(c tls.Certificate) error {
	id, err := ownerOf(&c)
	if err != nil {
		return err
	}
	if id != s.id {
		return fmt.Errorf("the new certificate belongs to %s: one of %s was expected", id, s.id)
	}
	s.held.Store(&c)
	return nil
}

// Reload reads the certificate's files again. After an error the old certificate stays in use, for example if
// a new certificate is written but its key is not written yet.
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

// ownerOf returns the identity of a certificate with its key, and parses the certificate if necessary.
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
