package cert_test

import (
	"errors"
	"fmt"
	"time"

	"parley/cluster/cert"
)

// An authority issues a certificate. A process that trusts the authority learns the peer's identity and rights
// from it, until it is revoked.
func Example() {
	authority, err := cert.NewAuthority("bank", time.Hour, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	trust, err := cert.NewTrust(authority.Anchors(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	teller, err := authority.IssueClient("teller", cert.Read|cert.Write, time.Hour/2)
	if err != nil {
		fmt.Println(err)
		return
	}
	who, err := trust.Verify(teller.Self().Certificate())
	fmt.Println(who, err)
	if _, err := authority.Revoke("client/teller"); err != nil {
		fmt.Println(err)
	}
	if err := trust.Set(authority.Anchors()); err != nil {
		fmt.Println(err)
	}
	_, err = trust.Verify(teller.Self().Certificate())
	refusal := new(cert.Refusal)
	if errors.As(err, &refusal) {
		fmt.Println("refused:", refusal.Reason)
	}
	// Output:
	// parley://bank/client/teller?rights=read,write <nil>
	// refused: revoked
}
