package lab

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/cli/console"
)

// place is where the page is served.
type place struct {
	address, host string
	secure        *tls.Config // or nil
	names         []string    // the hosts of the certificate, if there is one
}

// place returns where the page is to be served. Other computers must not reach it without TLS.
func (l *lab) place() (place, error) {
	at := place{address: l.listen}
	host, port, err := net.SplitHostPort(l.listen)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || strconv.FormatUint(n, 10) != port {
		return at, parley.FlagErrorf("listen", "%.200q is no address: write HOST:PORT, as in %s", l.listen, usual)
	}
	ip, err := netip.ParseAddr(host)
	if err != nil && host != "localhost" && host != "" {
		return at, parley.FlagErrorf("listen", "%.200q: localhost or an IP address of this computer was expected", host)
	}
	at.host = host
	if err == nil {
		at.host = ip.String()
	}
	local := isLocal(host)
	switch {
	case l.certificate != "" && l.key == "":
		return at, parley.FlagErrorf("key", "the key of the certificate is missing: give both --certificate and --key")
	case l.certificate == "" && l.key != "":
		return at, parley.FlagErrorf("certificate",
			"the certificate of the key is missing: give both --certificate and --key")
	case l.certificate == "" && !local:
		return at, parley.FlagErrorf("listen", "other computers reach %s: give --certificate and --key of a node, as "+
			"\"parley cert issue\" creates them, or listen at %s", l.listen, usual)
	case l.certificate == "":
		return at, nil
	}
	if err := at.load(l.certificate, l.key); err != nil {
		return at, err
	}
	return at, at.covered(local)
}

// load reads the certificate.
func (p *place) load(certificate, key string) error {
	chain, err := os.ReadFile(certificate)
	if err != nil {
		return parley.FlagErrorf("certificate", "%w", console.PathError(err))
	}
	secret, err := os.ReadFile(key)
	if err != nil {
		return parley.FlagErrorf("key", "%w", console.PathError(err))
	}
	pair, err := tls.X509KeyPair(chain, secret)
	if err != nil {
		return parley.FlagErrorf("certificate", "%s and %s are not a certificate and its key: give the two files of a node, "+
			"as \"parley cert issue\" creates them", certificate, key)
	}
	p.names = hostsOf(pair.Leaf)
	if len(p.names) == 0 {
		return parley.FlagErrorf("certificate", "%s names no host, so no browser accepts it: issue one with --hosts",
			certificate)
	}
	p.secure = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}}
	return nil
}

// hostsOf returns the hosts that a certificate names, those of other computers first.
func hostsOf(c *x509.Certificate) []string {
	out := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		out = append(out, ip.String())
	}
	slices.SortStableFunc(out, func(a, b string) int {
		return strings.Compare(strconv.FormatBool(isLocal(a)), strconv.FormatBool(isLocal(b)))
	})
	return out
}

func isLocal(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// covered demands that the certificate names a host by which a browser reaches the address, and puts the one that was
// given first.
func (p *place) covered(local bool) error {
	names := strings.Join(p.names, ", ")
	if i := slices.Index(p.names, p.host); i >= 0 {
		p.names = slices.Insert(slices.Delete(p.names, i, i+1), 0, p.host)
		return nil
	}
	if local {
		return parley.FlagErrorf("certificate", "the certificate is for %s, and not for %s: issue one with --hosts %s",
			names, p.host, p.host)
	}
	if isLocal(p.names[0]) {
		return parley.FlagErrorf("certificate", "the certificate is for %s, by which other computers do not reach this one: "+
			"issue one with --hosts and the name of this computer", names)
	}
	return nil
}

func (p *place) scheme() string {
	if p.secure != nil {
		return "https"
	}
	return "http"
}

// hosts returns the names by which browsers call the server that listens at an address. The first one is for the user.
func (p *place) hosts(listens net.Addr) (out []string) {
	host, port, _ := net.SplitHostPort(listens.String()) // of TCP
	names := p.names
	if p.secure == nil {
		names = []string{host, "localhost"}
	}
	for _, name := range names {
		out = append(out, net.JoinHostPort(name, port))
	}
	if port == map[string]string{"http": "80", "https": "443"}[p.scheme()] { // which browsers omit
		for _, name := range names {
			out = append(out, strings.TrimSuffix(net.JoinHostPort(name, port), ":"+port))
		}
	}
	return out
}
