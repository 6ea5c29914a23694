package cert

import (
	"crypto/ed25519"
	"time"
)

// Whole describes a cluster that is created at once, such as a test cluster: its nodes, and its clients with all
// rights.
type Whole struct {
	Cluster        string
	Nodes, Clients []string
	Hosts          []string      // host names and addresses of the nodes' APIs
	Valid          time.Duration // of the certificates; the authority is valid ten times as long
}

// Create creates an authority in a folder, with all certificates and keys. It returns the public signer keys of
// the nodes, in their order.
func (w Whole) Create(dir string) (signers []ed25519.PublicKey, err error) {
	if _, err := Create(dir, w.Cluster, 10*w.Valid); err != nil {
		return nil, err
	}
	err = Update(dir, func(by *Authority) error {
		for _, name := range w.Nodes {
			issued, err := by.IssueNode(name, w.Hosts, w.Valid)
			if err == nil {
				err = issued.Save(dir, false)
			}
			if err != nil {
				return err
			}
			signers = append(signers, issued.SignerKey())
		}
		for _, name := range w.Clients {
			issued, err := by.IssueClient(name, Read|Write|Admin, w.Valid)
			if err == nil {
				err = issued.Save(dir, false)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return signers, err
}
