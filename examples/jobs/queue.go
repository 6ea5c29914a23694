package main

import (
	"slices"
	"strings"
)

// queue is one node's replica of the queue. Only deliveries of the group change it, and all nodes deliver the
// same messages in the same order. So all replicas are equal, and only one node takes each job.
type queue struct {
	waiting []string
	taken   map[string]string // job: the node that does it
	done    []string
}

func newQueue() *queue { return &queue{taken: make(map[string]string)} }

// apply executes a command that a node has broadcast: "add JOB", "take", "done JOB" or "lost NODE".
func (q *queue) apply(from, command string) {
	verb, what, _ := strings.Cut(command, " ")
	switch verb {
	case "add":
		q.waiting = append(q.waiting, what)
	case "take":
		if len(q.waiting) > 0 {
			q.taken[q.waiting[0]] = from
			q.waiting = q.waiting[1:]
		}
	case "done":
		if q.taken[what] == from { // not if it was given to another node meanwhile
			delete(q.taken, what)
			q.done = append(q.done, what)
		}
	case "lost":
		var back []string
		for job, node := range q.taken {
			if node == what {
				back = append(back, job)
			}
		}
		slices.Sort(back) // the same order on all nodes
		for _, job := range back {
			delete(q.taken, job)
		}
		q.waiting = append(back, q.waiting...)
	}
}

// of returns the jobs that a node has taken, in alphabetical order.
func (q *queue) of(node string) (jobs []string) {
	for job, by := range q.taken {
		if by == node {
			jobs = append(jobs, job)
		}
	}
	slices.Sort(jobs)
	return jobs
}
