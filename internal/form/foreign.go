package form

import (
	"errors"
	"strings"

	"parley"
	"parley/internal/envelope"
)

// foreign returns the protocol with programs as processes, if the flags name a program.
func (f *Flags) foreign(p parley.Protocol, r *Run) (parley.Protocol, error) {
	if !f.fs.Changed("node") {
		return p, nil
	}
	var err error
	if r.Node, err = words(f.node); err == nil {
		err = envelope.Suits(p)
	}
	if err == nil && f.host.host == onCluster {
		err = errors.New("the simulator runs programs: omit --host")
	}
	if err != nil {
		return p, &parley.FlagError{Flag: "node", Err: err}
	}
	r.Settings = make(map[string]string)
	for _, name := range f.own {
		r.Settings[name] = f.fs.Lookup(name).Value.String()
	}
	return envelope.Of(p), nil
}

// words splits a command at spaces that are not in quotes. No shell is involved.
func words(command string) (all []string, err error) {
	var word strings.Builder
	quote, inWord := rune(0), false
	for _, r := range command {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, inWord = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if inWord {
				all = append(all, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if inWord {
		all = append(all, word.String())
	}
	switch {
	case quote != 0:
		return nil, errors.New("a quote is not closed: write two of them around a word that has spaces")
	case len(all) == 0 || all[0] == "":
		return nil, errors.New("the command is missing: write one, such as \"python3 node.py\"")
	}
	return all, nil
}
