package reading

import (
	"iter"
	"math"
	"slices"
	"strings"

	"parley"
	"parley/trace"
)

// counted is the maximum number of rows enumerated to count them. Beyond it the protocol's own measure is used.
const counted = 4096

// each enumerates the rows of a content.
func (r *reader) each(from parley.ID, c content) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, e := range c.events {
			env := parley.Env{From: from, To: c.to[0], Path: e.Path, Round: int(min(e.Msg.Seq, math.MaxInt32))}
			if e.Op == trace.Keep {
				env.To = from
			}
			for row := range r.rowsOf(env, e.Msg) {
				if !yield(row) {
					return
				}
			}
		}
	}
}

// explain describes a content with at most rows of its rows, and with the values in all of them. With rows 0 it only
// determines whether there are any.
func (r *reader) explain(from parley.ID, c content, rows int) Said {
	said := Said{From: from, To: c.to, Spans: c.spans, Fate: c.fate}
	values, known := make(map[string]uint64), true
	for row := range r.each(from, c) {
		if said.Total++; rows == 0 {
			return said
		}
		if len(said.Rows) < rows {
			said.Rows = append(said.Rows, row)
		}
		if v, ok := valueOf(row); ok {
			values[v]++
		} else {
			known = false
		}
		if said.Total >= uint64(rows)+counted && r.p.Size != nil {
			said.Total = max(said.Total, r.size(from, c))
			return said
		}
	}
	for v, n := range values { // order: sorted below
		if known && len(values) <= mostValues {
			said.Values = append(said.Values, Share{v, n})
		}
	}
	slices.SortFunc(said.Values, func(a, b Share) int { return strings.Compare(a.Value, b.Value) })
	return said
}

// mostValues is the maximum number of values distinguished in one message.
const mostValues = 16

func (r *reader) size(from parley.ID, c content) uint64 {
	var sum parley.Traffic
	for _, e := range c.events {
		to := c.to[0]
		if e.Op == trace.Keep {
			to = from
		}
		sum = sum.Plus(r.p.Size(parley.Env{From: from, To: to, Path: e.Path}, e.Msg))
	}
	return sum.Messages
}

// rowsOf returns the rows of a message. If the protocol explains none, its row is its kind and body.
func (r *reader) rowsOf(e parley.Env, m parley.Msg) iter.Seq[string] {
	if r.p.Explain != nil {
		return r.p.Explain(e, m, r.g.Bare)
	}
	row := r.kind(m)
	if len(m.Body) > 0 {
		row += " " + parley.Printable(m.Body)
	}
	return func(yield func(string) bool) { yield(row) }
}

// valueOf returns the value in a row. A row is {v,path}, v:signers, "word v" or v.
func valueOf(row string) (string, bool) {
	if _, inner, braced := strings.Cut(row, "{"); braced && strings.HasSuffix(inner, "}") {
		i := strings.LastIndexByte(inner, ',')
		return inner[:max(i, 0)], i >= 0
	}
	if i := strings.LastIndexByte(row, ' '); i >= 0 {
		return row[i+1:], true
	}
	if i := strings.IndexByte(row, ':'); i > 0 {
		return row[:i], true
	}
	return row, true
}
