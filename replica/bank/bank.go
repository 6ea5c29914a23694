// Package bank implements a bank account as a replicated state machine, an example of the lecture
// (docs/explanation/sources.md). It shows why replicas need one order. For example, an account holds 1000 dollars.
// One replica first adds a deposit of 150 dollars, and then 8 percent of interest. It then holds 1242 dollars.
// Another replica first adds the interest, and then the deposit. It then holds 1230 dollars.
package bank

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Opening is the lecture's first balance, in cents.
const Opening = 100_000

// Account is the state machine: one account in cents. Its commands are "deposit DOLLARS", "withdraw DOLLARS",
// "interest PERCENT" and "balance". The answer is the new balance, or an error text if the command was refused.
// Interest is rounded down to a cent.
type Account struct{ cents int64 }

// New returns an account with the lecture's first balance.
func New() *Account { return &Account{cents: Opening} }

// Open returns an account with a balance in whole dollars, or nil if the balance is out of range.
func Open(dollars int64) *Account {
	if dollars < 0 || dollars > most/100 {
		return nil
	}
	return &Account{cents: 100 * dollars}
}

// most is the largest balance in cents. It keeps every product within 64 bits.
const most = 1 << 48

// Reads reports whether a command changes nothing, whatever the account holds.
func (a *Account) Reads(command []byte) bool { return strings.TrimSpace(string(command)) == "balance" }

// Refuses reports whether an answer is an error text: a balance is a number without a sign.
func (a *Account) Refuses(answer []byte) bool {
	return len(answer) == 0 || answer[0] < '0' || answer[0] > '9'
}

// Apply applies a command, and returns the answer.
func (a *Account) Apply(command []byte) []byte {
	words := strings.Fields(string(command))
	amount := int64(0)
	if len(words) == 2 && words[0] != "balance" {
		n, err := strconv.ParseInt(words[1], 10, 40)
		if err != nil || n < 0 {
			return []byte("a whole number was expected")
		}
		amount = n
	} else if len(words) != 1 || words[0] != "balance" {
		return []byte("no such command")
	}
	after := a.cents
	switch words[0] {
	case "balance":
	case "deposit":
		after += 100 * amount
	case "withdraw":
		after -= 100 * amount
	case "interest":
		if amount > 1000 {
			return []byte("too much interest")
		}
		after += a.cents * amount / 100
	default:
		return []byte("no such command")
	}
	if after < 0 {
		return []byte("not enough on the account")
	}
	if after > most {
		return []byte("too much for the account")
	}
	a.cents = after
	return []byte(a.String())
}

// String returns the balance in dollars.
func (a *Account) String() string {
	if a.cents%100 == 0 {
		return strconv.FormatInt(a.cents/100, 10)
	}
	return fmt.Sprintf("%d.%02d", a.cents/100, a.cents%100)
}

// Snapshot returns the state.
func (a *Account) Snapshot() []byte { return binary.AppendVarint(nil, a.cents) }

// Restore replaces the state with a snapshot, and reports whether b is a snapshot.
func (a *Account) Restore(b []byte) bool {
	cents, n := binary.Varint(b)
	if n <= 0 || cents < 0 || cents > most || !bytes.Equal(binary.AppendVarint(nil, cents), b) {
		return false
	}
	a.cents = cents
	return true
}
