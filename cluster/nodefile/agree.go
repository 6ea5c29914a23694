package nodefile

import "parley/cluster"

// linked reads what nodes are linked by.
func (f *File) linked(v value) error {
	text, err := v.oneOf("streams", "datagrams", "calls")
	if err == nil {
		f.Links, err = cluster.ParseLinks(text)
	}
	return err
}

// agreement reads one kind of agreements.
func (f *File) agreement(v value) error {
	var a cluster.Agreement
	err := v.fields(
		key{"algorithm", true, func(v value) error {
			text, err := v.oneOf("eig", "om", "sm", "phaseking")
			if err == nil {
				a.Algorithm, err = cluster.ParseAlgorithm(text)
			}
			return err
		}},
		key{"m", true, into(&a.M, value.liars)},
	)
	f.Agreements = append(f.Agreements, a)
	return err
}

// fitsLinks tells what does not fit with the members and the links.
func (f *File) fitsLinks() error {
	c := cluster.Config{Members: f.Members, Agreements: f.Agreements}
	if err := c.CheckAgreements(); err != nil {
		return f.at("agreements", err)
	}
	if f.set("commit") && f.Links == cluster.Datagrams {
		return f.line["commit"].wrong("transactions need streams or calls: the links are datagrams")
	}
	c.Links, c.Groups, c.Tables = f.Links, f.Groups, f.Tables
	var err error
	if c.Participant, err = f.participant(); err != nil {
		return f.at("participant", err)
	}
	if err := c.CheckLinks(); err != nil {
		return f.at("links", err)
	}
	return nil
}
