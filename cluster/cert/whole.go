package cert

import (
	"crypto/ed25519"
	"time"
)

// Whole is all of a cluster that is made at once, as for a laboratory: its nodes, and the
// clients with all rights.
type Whole struct {
	Cluster        string
	Nodes, Clients []string
	Hosts          []string      // whose addresses the nodes' APIs have
	Valid          time.Duration // the certificates; the authority ten times as long
}

// Create makes an authority in a folder, and all certificates and keys beside it. It returns
// the keys that the nodes sign with, in their order.
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
