package service

import "parley"

// txJournal writes the log of a process.
type txJournal struct {
	most    int // Config.Compact
	records int // since the log was compacted
}

func (j *txJournal) record(s *parley.Step, path parley.Path, record []byte) {
	s.At(path, 0, func() { s.Append(record) })
	j.records++
}

// keep makes the spec of t durable. A process that has it in its log without a yes does not vote yes after a
// crash.
func (j *txJournal) keep(s *parley.Step, t *transaction) {
	if t.logged {
		return
	}
	t.logged = true
	head := []byte{specRecord, 0}
	if t.yes {
		head[1] = 1
	}
	j.record(s, t.path, append(head, t.spec.Encode()...))
}

// compact has the state replace the log records when there are many.
func (j *txJournal) compact(s *parley.Step, live int) {
	if j.records >= j.most && j.records >= 2*live {
		j.records = 0
		s.Compact()
	}
}
