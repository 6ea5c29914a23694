package conform

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"parley/internal/conform/form"
	"parley/replica/bank"
)

// accountCase is a bank account to which operations come in one order or another.
type accountCase struct {
	kinded
	Initial *int64               `json:"initial"`
	Ops     map[string]operation `json:"ops"`
}

// operation adds an amount, or a percentage of what is there.
type operation struct {
	Add     *int64 `json:"add"`
	Percent *int64 `json:"percent"`
}

type accountExpect struct {
	Balance map[string]string `json:"balance"` // by order: the names with commas between
}

func account(raw []byte, report reporter) error {
	var c accountCase
	var want accountExpect
	if err := read(raw, &c, &want); err != nil {
		return err
	}
	if c.Initial == nil {
		return errors.New("initial: a whole number was expected")
	}
	names := form.Keys(c.Ops)
	for _, name := range names {
		if op := c.Ops[name]; (op.Add == nil) == (op.Percent == nil) {
			return fmt.Errorf("ops: %s: it adds an amount or a percentage", name)
		}
		if strings.Contains(name, ",") {
			return fmt.Errorf("ops: %q: names are without commas", name)
		}
	}
	if len(names) > maxOps {
		return fmt.Errorf("ops: %d: allowed are %d", len(names), maxOps)
	}
	for _, order := range form.Keys(want.Balance) {
		list := strings.Split(order, ",")
		if !slices.Equal(slices.Sorted(slices.Values(list)), names) {
			return fmt.Errorf("expect: balance: %q is no order of %s", order, strings.Join(names, ", "))
		}
		number, ok := new(big.Rat).SetString(want.Balance[order])
		if !ok || strings.ContainsAny(want.Balance[order], ".eEpPxX_") {
			return errors.New("expect: balance: a whole number or a fraction was expected")
		}
		balance, err := c.balance(list)
		if err != nil {
			return err
		}
		report("balance."+order, number.RatString(), balance.RatString())
	}
	return nil
}

// maxOps is the most operations on an account.
const maxOps = 100

// balance is what is in the account after the operations in an order: that of the
// replicated one.
func (c accountCase) balance(order []string) (*big.Rat, error) {
	account := bank.Open(*c.Initial)
	if account == nil {
		return nil, fmt.Errorf("initial: %d: an account has from 0 to 2 million million dollars", *c.Initial)
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
			return nil, fmt.Errorf("ops: %s: %s", name, answer)
		}
	}
	balance, _ := new(big.Rat).SetString(account.String())
	return balance, nil
}
