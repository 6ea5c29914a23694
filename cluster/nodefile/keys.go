package nodefile

import (
	"log/slog"

	"parley/cluster"
	"parley/cluster/api/participant"
	"parley/cluster/cert"
	"parley/faulty"
)

// Readers of the values of single keys.
var (
	readLinks     = word(cluster.ParseLinks, "streams", "datagrams", "calls")
	readAlgorithm = word(cluster.ParseAlgorithm, "eig", "om", "sm", "phaseking", "tetra")
	readProtocol  = word(cluster.ParseCommitProtocol, "two-phase", "majority", "agreed")
	readLevel     = word(cluster.ParseLevel, "total", "reliable", "uniform", "fifo", "causal", "atomic", "byzantine")
	readFormat    = word(func(text string) (bool, error) { return text == "json", nil }, "text", "json")
	readLogLevel  = word(func(text string) (l slog.Level, err error) {
		err = l.UnmarshalText([]byte(text))
		return l, err
	}, "debug", "info", "warn", "error")

	readSigner = parsed(cert.ParseSigner)
	// readParticipant parses the address of the service that does this node's part of transactions.
	readParticipant = parsed(func(text string) (string, error) { return text, participant.CheckAddress(text) })
	// readTraitor parses the faulty behavior of the node.
	readTraitor = parsed(func(text string) (*cluster.FaultInjection, error) {
		b, err := faulty.Parse(text)
		return &cluster.FaultInjection{Traitor: b}, err
	})
)

func readTraceLimit(v value) (int, error) {
	n, err := number(0, 65535, "a whole number from 0 to 65535")(v)
	if err == nil && n == 0 {
		err = v.wrong("0: allowed are 1 to 65535 MiB")
	}
	return n, err
}

// readLab parses that the node is in a test cluster.
func readLab(v value) error {
	yes, err := readBool(v)
	if err == nil && !yes {
		err = v.wrong("false: true was expected, or no such key")
	}
	return err
}
