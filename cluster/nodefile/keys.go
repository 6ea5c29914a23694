package nodefile

import (
	"log/slog"

	"parley/cluster"
	"parley/cluster/api/participant"
	"parley/faulty"
)

// links reads what nodes are linked by.
func links(v value) (l cluster.Links, err error) {
	text, err := v.oneOf("streams", "datagrams", "calls")
	if err == nil {
		l, err = cluster.ParseLinks(text)
	}
	return l, err
}

func algorithm(v value) (a cluster.Algorithm, err error) {
	text, err := v.oneOf("eig", "om", "sm", "phaseking")
	if err == nil {
		a, err = cluster.ParseAlgorithm(text)
	}
	return a, err
}

// agreement reads one kind of agreements.
func agreement(v value) (a cluster.Agreement, err error) {
	err = v.fields(key{"algorithm", true, into(&a.Algorithm, algorithm)}, key{"m", true, into(&a.M, value.liars)})
	return a, err
}

// commit reads how nodes agree on whether to commit.
func commit(v value) (c cluster.CommitConfig, err error) {
	err = v.fields(
		key{"protocol", true, into(&c.Protocol, func(v value) (p cluster.CommitProtocol, err error) {
			text, err := v.oneOf("two-phase", "majority", "agreed")
			if err == nil {
				p, err = cluster.ParseCommitProtocol(text)
			}
			return p, err
		})},
		key{"votes", false, into(&c.Votes, value.time)},
		key{"delay", false, into(&c.Delay, value.time)},
	)
	return c, err
}

// served reads where the service is that does this node's part of transactions.
func served(v value) (address string, err error) {
	address, err = v.text()
	if err == nil {
		if err := participant.CheckAddress(address); err != nil {
			return "", v.wrong("%v", err)
		}
	}
	return address, err
}

// clocks reads what the clocks go by.
func clocks(v value) (c cluster.ClockConfig, err error) {
	err = v.fields(
		key{"error", false, into(&c.Error, value.short)},
		key{"drift", false, into(&c.Drift, func(v value) (int64, error) { return v.parts(1) })},
		key{"period", false, into(&c.Period, value.time)},
	)
	return c, err
}

func inJSON(v value) (bool, error) {
	text, err := v.oneOf("text", "json")
	return text == "json", err
}

func logLevel(v value) (l slog.Level, err error) {
	text, err := v.oneOf("debug", "info", "warn", "error")
	if err == nil {
		err = l.UnmarshalText([]byte(text))
	}
	return l, err
}

// laboratory reads that the node is in one.
func laboratory(v value) error {
	yes, err := v.yes()
	if err == nil && !yes {
		err = v.wrong("false: true was expected, or no such key")
	}
	return err
}

// traitor reads how the node lies.
func traitor(v value) (*cluster.Lab, error) {
	text, err := v.text()
	if err != nil {
		return nil, err
	}
	b, err := faulty.Parse(text)
	if err != nil {
		return nil, v.wrong("%v", err)
	}
	return &cluster.Lab{Traitor: b}, nil
}
