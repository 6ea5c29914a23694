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
	leaf, err := leafOf(&c)
	if err != nil {
		return nil, err
	}
	id, err := Parse(leaf)
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
	leaf, err := leafOf(&c)
	if err != nil {
		return err
	}
	id, err := Parse(leaf)
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

func leafOf(c *tls.Certificate) (*x509.Certificate, error) {
	if len(c.Certificate) == 0 || c.PrivateKey == nil {
		return nil, refuse(NoCertificate, "a certificate and its key were expected")
	}
	if c.Leaf == nil {
		leaf, err := x509.ParseCertificate(c.Certificate[0])
		if err != nil {
			return nil, err
		}
		c.Leaf = leaf
	}
	return c.Leaf, nil
}

func (s *Self) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.held.Load(), nil }

// clientCertificate answers whatever authorities the server asks for: it is for him to refuse.
func (s *Self) clientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return s.held.Load(), nil
}
