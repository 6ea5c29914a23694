package nodefile

import (
	"context"

	"parley/cluster"
	"parley/cluster/api/participant"
)

// served reads where the service is that does this node's part of transactions.
func (f *File) served(v value) error {
	text, err := v.text()
	if err != nil {
		return err
	}
	if err := participant.CheckAddress(text); err != nil {
		return v.wrong("%v", err)
	}
	f.Participant = text
	return nil
}

// commit reads how nodes agree on whether to commit.
func (f *File) commit(v value) error {
	return v.fields(
		key{"protocol", true, func(v value) error {
			text, err := v.oneOf("two-phase", "majority", "agreed")
			if err == nil {
				f.Commit.Protocol, err = cluster.ParseCommitProtocol(text)
			}
			return err
		}},
		key{"votes", false, into(&f.Commit.Votes, value.time)},
		key{"delay", false, into(&f.Commit.Delay, value.time)},
	)
}

// participant is who does this node's part of transactions, nil if the file names nobody.
func (f *File) participant() (cluster.Participant, error) {
	if f.Participant == "" {
		return nil, nil
	}
	return participant.New(f.Name, f.Participant)
}

// checkParticipant looks whether the service is there. It may come later.
func (f *File) checkParticipant(ctx context.Context) Finding {
	client, err := participant.New(f.Name, f.Participant)
	if err != nil {
		return Finding{"participant", err.Error(), true}
	}
	if err := client.Reach(ctx); err != nil {
		text := f.Participant + " is not there yet, and until it is the node votes no: " + err.Error()
		return Finding{Key: "participant", Text: text}
	}
	return Finding{Key: "participant", Text: f.Participant + " is there"}
}
