package conform

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"parley/internal/conform/form"
	"parley/replica/bank"
)

// accountCase is a bank account that receives operations in several orders.
type accountCase struct {
	kinded
	Initial *int64               `json:"initial"`
	Ops     map[string]operation `json:"ops"`
}

// operation adds an amount, or a percentage of the balance.
type operation struct {
	Add     *int64 `json:"add"`
	Percent *int64 `json:"percent"`
}

type accountExpect struct {
	Balance map[string]string `json:"balance"` // by order: the names, separated by commas
}

func account(c accountCase, want accountExpect, report reporter) {
	if c.Initial == nil {
		fail("initial: a whole number was expected")
	}
	names := form.Keys(c.Ops)
	for _, name := range names {
		if op := c.Ops[name]; (op.Add == nil) == (op.Percent == nil) {
			fail("ops: %s: it adds an amount or a percentage", name)
		}
		if strings.Contains(name, ",") {
			fail("ops: %q: names are without commas", name)
		}
	}
	if len(names) > maxOps {
		fail("ops: %d: allowed are %d", len(names), maxOps)
	}
	for _, order := range form.Keys(want.Balance) {
		list := strings.Split(order, ",")
		if !slices.Equal(slices.Sorted(slices.Values(list)), names) {
			fail("expect: balance: %q is no order of %s", order, strings.Join(names, ", "))
		}
		number, ok := new(big.Rat).SetString(want.Balance[order])
		if !ok || strings.ContainsAny(want.Balance[order], ".eEpPxX_") {
			fail("expect: balance: a whole number or a fraction was expected")
		}
		report("balance."+order, number.RatString(), c.balance(list).RatString())
	}
}

// maxOps is the maximum number of operations on an account.
const maxOps = 100

// balance returns the balance of the replicated account after the operations in the given order.
func (c accountCase) balance(order []string) *big.Rat {
	account := bank.Open(*c.Initial)
	if account == nil {
		fail("initial: %d: an account has from 0 to 2 million million dollars", *c.Initial)
	}
	for _, name := range order {
		var command string
		switch op := c.Ops[name]; {
		case op.Percent != nil:
			command = fmt.Sprintf("interest %d", *op.Percent)
		case *op.Add < 0:
			command = fmt.Sprintf("withdraw %d", -*op.Add)
		default:
			command = fmt.Sprintf("deposit %d", *op.Add)
		}
		if answer := account.Apply([]byte(command)); string(answer) != account.String() {
			fail("ops: %s: %s", name, answer)
		}
	}
	balance, _ := new(big.Rat).SetString(account.String())
	return balance
}
