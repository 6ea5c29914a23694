package cuts

import "parley"

// records appends log records, if they are durable, and knows when the log can be shortened.
type records struct {
	durable bool
	most    int  // how many bytes of log are kept in any case
	size    int  // bytes appended since the log was shortened
	due     bool // the log can be shortened
}

func (x *records) append(s *parley.Step, body []byte) {
	if x.durable {
		x.size += len(body)
		s.Append(body)
		x.shorten(x.most)
	}
}

// shorten has the log shortened if it has more bytes than that. So all that is written is at most 1.5 times the log.
func (x *records) shorten(most int) { x.due = x.due || x.durable && x.size > most }

// compact shortens the log if that is due.
func (x *records) compact(s *parley.Step) {
	if x.due {
		x.due, x.size = false, 0
		s.Compact()
	}
}

func (x *records) state(v *parley.Vars) {
	parley.Num(v, "logged", &x.size)
	v.Bool("due", &x.due)
}
