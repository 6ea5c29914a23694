package group

import (
	"slices"

	"parley"
	"parley/agreement/ballot"
)

// Which view may follow another one, as far as every voter can know.

// roster is the members of a view, and the disks whose votes on its end count.
type roster struct {
	view  View
	lives []uint64 // by process: the incarnations of the members
	disks []uint64 // by process: the disk whose votes count; 0: none was admitted yet
}

// majority returns the smallest number of processes that is more than half of all. No view has fewer members.
func (r *roster) majority() int { return len(r.disks)/2 + 1 }

// at returns the incarnation and the disk that the view has of a process.
func (r *roster) at(id parley.ID) joinCandidate { return joinCandidate{id, r.disks[id], r.lives[id]} }

// has reports whether a process in that incarnation is a member.
func (r *roster) has(c joinCandidate) bool { return r.view.Members.Has(c.id) && r.at(c.id) == c }

// reports decodes the reports of members of the view, from the reports of all that voted.
func (r *roster) reports(voted []ballot.Report, layers, liars int) (all []report) {
	for _, said := range voted {
		x, ok := readReport(said.Body, len(r.disks), layers)
		x.from = said.From
		if !ok || !r.plausible(x, liars) {
			continue // not in the view, or not a valid report
		}
		all = append(all, x)
	}
	return all
}

// next := {r in S: not leaving} and the learners named in the reports. A reporter is alive, suspected or not.
// Leaving members, and members that others want excluded, are removed as long as a majority of all processes
// remains. To exclude one takes more than liars reports, or this process.
func (r *roster) next(reports []report, out parley.Set, liars int) decision {
	n := len(r.disks)
	next := roster{View{Number: r.view.Number + 1}, make([]uint64, n), slices.Clone(r.disks)}
	var leaving, exclude parley.Set
	wanted := make([]int, n) // by process: how many reports want it excluded
	for _, x := range reports {
		next.view.Members.Add(x.from)
		next.lives[x.from] = x.life
		if x.leaving {
			leaving.Add(x.from)
		}
		for id := range x.exclude.All() {
			wanted[id]++
		}
	}
	for id, times := range wanted {
		if times > liars || times > 0 && out.Has(parley.ID(id)) {
			exclude.Add(parley.ID(id))
		}
	}
	for _, x := range reports {
		for _, c := range x.learners {
			if !next.view.Members.Has(c.id) || c.after(next.at(c.id)) {
				next.view.Members.Add(c.id)
				next.lives[c.id], next.disks[c.id] = c.life, c.disk
				leaving.Remove(c.id)
			}
		}
	}
	for _, set := range []parley.Set{leaving, exclude} {
		for id := range set.All() {
			if next.view.Members.Has(id) && next.view.Members.Len() > r.majority() {
				next.view.Members.Remove(id)
				next.lives[id] = 0
				if liars > 0 {
					next.disks[id] = r.disks[id] // a process that is not admitted keeps its old disk
				}
			}
		}
	}
	return decision{next: next, excluded: exclude.Minus(next.view.Members)}
}

// maxBelievable returns the greatest number of an incarnation or a disk that is believed after the known one.
func maxBelievable(known uint64, liars int) uint64 {
	if liars == 0 {
		return maxIncarnation
	}
	return min(max(likelyIncarnation, known)+incarnationMargin, maxIncarnation)
}

// believable reports whether a process may have become what it claims to be.
func (r *roster) believable(c joinCandidate, liars int) bool {
	return c.disk <= maxBelievable(r.disks[c.id], liars) && c.life <= maxBelievable(r.lives[c.id], liars)
}

// plausible reports whether a member of the view could give report x: in the incarnation that it has there,
// about processes that can have joined.
func (r *roster) plausible(x report, liars int) bool {
	if liars == 0 {
		return true
	}
	for _, c := range x.learners {
		if !c.after(r.at(c.id)) || !r.believable(c, liars) {
			return false
		}
	}
	return r.view.Members.Has(x.from) && x.life == r.lives[x.from] && x.exclude.Minus(r.view.Members) == parley.Set{}
}

// sane reports whether a correct process could have chosen a view. The view has a majority of all processes,
// and each of its members was in the previous view or has joined.
func (r *roster) sane(d *decision, liars int) bool {
	if liars == 0 {
		return true
	}
	if d.next.view.Members.Len() < r.majority() || d.excluded.Minus(d.next.view.Members) != d.excluded ||
		d.excluded.Minus(r.view.Members) != (parley.Set{}) {
		return false
	}
	for id := range parley.ID(len(r.disks)) {
		now, then := r.at(id), d.next.at(id)
		joins := r.believable(then, liars) && then.after(now)
		switch member := d.next.view.Members.Has(id); {
		case !member && then.disk != now.disk, member && r.view.Members.Has(id) && then != now && !joins,
			member && !r.view.Members.Has(id) && !joins:
			return false
		}
	}
	return true
}

// visit visits every variable.
func (r *roster) visit(v *parley.Vars) {
	parley.Num(v, "view", &r.view.Number)
	v.Set("members", &r.view.Members)
	parley.PerProcess(v, "lives", r.lives, func(_ parley.ID, life *uint64) { parley.Num(v, "incarnation", life) })
	parley.PerProcess(v, "disks", r.disks, func(_ parley.ID, disk *uint64) { parley.Num(v, "disk", disk) })
}
