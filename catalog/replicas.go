package catalog

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/broadcast/causal"
	"parley/broadcast/diffusion"
	"parley/broadcast/fifo"
	"parley/broadcast/problem"
	"parley/broadcast/timestamp"
	"parley/membership/group"
	"parley/replica/bank"
	"parley/replica/news"
	"parley/replica/rsm"
	"parley/stack"
)

// orderedBroadcast is a broadcast beneath a replicated service.
type orderedBroadcast struct {
	words string // as part of a title
	// layers returns the broadcast for n processes, the lowest layer first.
	layers func(n int) []parley.Protocol
	// property is the promised order.
	property string
	// lacks says why replicas may still differ, or is "" if they cannot. Only then the layers give a state to
	// joiners.
	lacks string
}

var (
	fifoOrder = orderedBroadcast{
		words: "FIFO broadcast", property: problem.FIFOOrder,
		lacks: "FIFO order does not order the commands of two clients",
		layers: func(n int) []parley.Protocol {
			return []parley.Protocol{diffusion.New(diffusion.Config{N: n}), fifo.New(fifo.Config{N: n})}
		},
	}
	causalOrder = orderedBroadcast{
		words: "causal broadcast", property: problem.CausalOrder,
		lacks: "causal order does not order commands that are independent of each other",
		layers: func(n int) []parley.Protocol {
			return append(fifoOrder.layers(n), causal.New(causal.Config{N: n}))
		},
	}
	totalOrder = orderedBroadcast{
		words: "total order", property: timestamp.OneSequence,
		layers: func(n int) []parley.Protocol {
			views := group.Config{N: n, State: true, Return: true}
			return []parley.Protocol{timestamp.New(timestamp.Config{Config: views})}
		},
	}
)

// replicatedService is one replicated service: a state machine on a broadcast.
type replicatedService struct {
	name, title string
	on          orderedBroadcast
	c           rsm.Config
	samples     []string
	more        []parley.Property
	promise     func(a parley.RunConditions, beneath parley.Promise) parley.Promise // of the property in more
}

// bankOver returns the lecture's bank account on a broadcast.
func bankOver(name string, on orderedBroadcast, n int) parley.Protocol {
	return replicatedService{
		name: name, title: "the lecture's bank account, replicated over " + on.words, on: on,
		c:       rsm.Config{N: n, New: func() rsm.Application { return bank.New() }},
		samples: []string{"deposit 150", "interest 8", "withdraw 40", "balance"},
	}.protocol()
}

// understanding is the property of the lecture's news: a response is read after its article.
const understanding = "understanding"

// newsOver returns the lecture's network news on a broadcast.
func newsOver(name string, on orderedBroadcast, n int) parley.Protocol {
	return replicatedService{
		name: name, title: "the lecture's network news, replicated over " + on.words, on: on,
		c:       rsm.Config{N: n, New: func() rsm.Application { return news.New() }},
		samples: []string{"article a", "response c to a", "article b"},
		more: []parley.Property{{
			Name: understanding, Mode: parley.Always,
			Says: "if the author of a response had read an article, no correct process reads the response " +
				"before the article",
			Check: understood, Vacuous: unread,
		}},
		promise: func(a parley.RunConditions, beneath parley.Promise) parley.Promise {
			p := parley.Promise{Property: understanding, Holds: beneath.Holds, Because: beneath.Because}
			switch {
			case on.property == problem.FIFOOrder:
				p.Holds, p.Because = false, "FIFO order does not relate messages of two authors, even if "+
					"one author has read the other's message (lecture)"
			case p.Holds && (a.Processes.Restarted || a.Processes.LostDisk):
				p.Holds, p.Because = false, "a replica that restarts has forgotten what it read"
			case p.Holds:
				p.Because = "the author of a response has read the article, and causal order preserves that (lecture)"
			}
			return p
		},
	}.protocol()
}

// understood checks the misread responses: no process may misread more responses of an author than the author
// wrote without having read the article.
func understood(h *parley.History) error {
	type response struct {
		at, from parley.ID
		text     string
	}
	misread := make(map[response]int)
	for i := range h.Deliveries {
		d := &h.Deliveries[i]
		words := strings.Fields(string(d.Msg.Body)) // "misread r: there is no a yet"
		if len(words) != 7 || words[0] != "misread" || d.Msg.Kind != rsm.Answer || !h.Correct(d.At) {
			continue
		}
		article := words[5]
		r := response{d.At, d.From, fmt.Sprintf("response %s to %s", strings.TrimSuffix(words[1], ":"), article)}
		misread[r]++
		ignorant := 0
		for _, q := range h.Requests {
			if q.At == r.from && string(q.Msg.Body) == r.text && !hadRead(h, q, article) {
				ignorant++
			}
		}
		if misread[r] > ignorant {
			return fmt.Errorf("%s: %s", h.Name(d.At), d.Msg.Body)
		}
	}
	return nil
}

// unread returns why no response can be misread, or "": no response is read whose author had read the article.
func unread(h *parley.History) string {
	for _, d := range h.Deliveries {
		words := strings.Fields(string(d.Msg.Body)) // "understood r", or "misread r: there is no a yet"
		if d.Msg.Kind != rsm.Answer || len(words) < 2 || !h.Correct(d.At) ||
			words[0] != "understood" && words[0] != "misread" {
			continue
		}
		response := "response " + strings.TrimSuffix(words[1], ":") + " to "
		for _, q := range h.Requests {
			article, is := strings.CutPrefix(string(q.Msg.Body), response)
			if is && q.At == d.From && hadRead(h, q, article) {
				return ""
			}
		}
	}
	return "no response is read whose author had read the article"
}

// hadRead reports whether a process had read an article when it got a request.
func hadRead(h *parley.History, asked parley.ExternalEvent, article string) bool {
	return slices.ContainsFunc(h.Deliveries, func(d parley.ExternalEvent) bool {
		words := strings.Fields(string(d.Msg.Body))
		return d.At == asked.At && d.Order < asked.Order && d.Msg.Kind == rsm.Answer && len(words) > 1 &&
			strings.TrimSuffix(words[1], ":") == article
	})
}

// protocol returns the service with the broadcast below.
func (r replicatedService) protocol() parley.Protocol {
	beneath := r.on.layers(r.c.N)
	promised := stack.New(beneath...).Promises
	r.c.Order, r.c.Transfer = []string{timestamp.OneSequence}, r.on.lacks == ""
	r.c.Beneath = func(a parley.RunConditions) []parley.Promise {
		out := promised(a)
		if r.on.lacks != "" {
			out = append(out, parley.Promise{Property: timestamp.OneSequence, Because: r.on.lacks})
		}
		return out
	}
	p := stack.New(append(beneath, rsm.New(r.c))...)
	p.Name, p.Title, p.Paper = r.name, r.title, "lecture, replication; Schneider 1990"
	p.Samples, p.Properties = r.samples, append(p.Properties, r.more...)
	if r.promise != nil {
		layer := p.Promises
		p.Promises = func(a parley.RunConditions) []parley.Promise { return append(layer(a), r.promises(a, promised(a))...) }
	}
	if r.c.Transfer {
		p.Span, p.Relies.FIFO = 20_000, true
	}
	p.Flags = parley.Flags(r.c, flags, func(c rsm.Config) parley.Protocol {
		own := r
		own.c = c
		return own.protocol()
	})
	return worded(p, ofService)
}

// flags declares the flags of a replicated service.
func flags(fs *flag.FlagSet, c *rsm.Config) func(*rsm.Config, parley.Naming) error {
	fs.IntVar(&c.N, "n", c.N, "number of `processes`")
	fs.Uint64Var(&c.Every, "every", c.Every, "`number` of commands after which the replicas compare their "+
		"states (0: never)")
	active := fs.String("active", "", "`replicas` that answer, as in 1,2; the others are spares (default: all)")
	tolerate := fs.Int("wrong", 0, "maximum `number` of active replicas that may have a wrong state")
	checked := fs.Bool("checked", false, "answer a command only after --wrong + 1 replicas have the same "+
		"state")
	return func(c *rsm.Config, naming parley.Naming) error {
		if err := parley.CheckN(c.N, 1); err != nil {
			return err
		}
		all, err := processes("active", *active, naming)
		if err != nil {
			return err
		}
		switch {
		case all == parley.Set{}:
			all = parley.Everyone(c.N)
		case all.Minus(parley.Everyone(c.N)) != parley.Set{}:
			return parley.FlagErrorf("active", "%s: there are %d copies", *active, c.N)
		}
		c.Setup = rsm.Setup{Active: all, M: *tolerate, Checked: *checked}
		if c.Setup.M < 0 || c.Setup.M >= all.Len() {
			return parley.FlagErrorf("wrong", "%d copies: allowed are 0 to %d, one less than are active", c.Setup.M, all.Len()-1)
		}
		return nil
	}
}

// promises returns the promises of the properties in more, derived from those of the order beneath.
func (r replicatedService) promises(a parley.RunConditions, beneath []parley.Promise) (out []parley.Promise) {
	for _, p := range beneath {
		if p.Property == r.on.property {
			out = append(out, r.promise(a, p))
		}
	}
	return out
}
