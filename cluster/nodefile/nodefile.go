// Package nodefile reads the configuration of a node from a YAML file, strictly. If a key is unknown, missing, or
// duplicate, or if a value is not allowed, the package returns an [Error] with the line.
package nodefile

import (
	"cmp"
	"crypto/ed25519"
	_ "embed"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/cluster"
	"parley/cluster/api/participant"
	"parley/cluster/cert"
	"parley/cluster/host"
	"parley/internal/lists"
	"parley/replica/bank"
	"parley/replica/rsm"
)

// Example is a file with all keys and their meaning.
//
//go:embed example.yaml
var Example string

// File is the contents of a file.
type File struct {
	Path    string // of the file
	Cluster string
	Name    string // of this node
	// Listen is the address for other nodes. API is the address for clients. Metrics is the address for monitoring.
	// API and Metrics may be empty.
	Listen, API, Metrics string
	// Certificates, Data, and Traces are folders, relative to the folder of the file or absolute. Data and Traces
	// may be empty.
	Certificates, Data, Traces string
	Durable                    bool
	DiskLimit                  time.Duration // 0: the default
	Members                    []cluster.Member
	M                          int           // 0: the default
	Round                      time.Duration // 0: the default
	Times                      cluster.Times
	Clocks                     cluster.ClockConfig
	Groups                     []cluster.GroupConfig // without Deliver
	Tables                     []cluster.TableConfig
	// Participant is the address of the service that carries out this node's part of transactions; it may be
	// empty.
	Participant string
	Commit      cluster.CommitConfig // of transactions
	Links       cluster.Links
	Agreements  []cluster.AgreementConfig // nil: the default
	TraceLimit  int                       // MiB of each trace; 0: the default
	LogJSON     bool                      // instead of text
	LogLevel    slog.Level
	Lab         *cluster.FaultInjection
	// Offset and Drift falsify the clock of a node in a test cluster. Offset is how far the clock is ahead,
	// and Drift by how many parts per million it runs faster.
	Offset time.Duration
	Drift  int64

	line               map[string]value // of the top-level keys, for errors
	addresses, signers []value          // of the members, for errors
}

// The limits.
const (
	maxMembers   = 64
	maxByzantine = 13 // members of a Byzantine order
	maxGroups    = 1008
	maxTables    = 1024
	defaultTrace = 1024 // MiB

	mostKept      = 1 << 24 // deliveries of a group
	mostKeptBytes = 1 << 36
)

// Parse parses the text of a file. The argument path is for errors, and for relative folders.
func Parse(path string, b []byte) (*File, error) {
	f := &File{Path: path, line: make(map[string]value)}
	root, err := document(path, b)
	if err != nil {
		return nil, err
	}
	keys := f.keys()
	for i := range keys {
		name, read := keys[i].name, keys[i].read
		keys[i].read = func(v value) error {
			f.line[name] = v
			return read(v)
		}
	}
	if err := root.fields(keys...); err != nil {
		return nil, err
	}
	if f.Listen == "" {
		if i := f.self(); i >= 0 {
			f.Listen = f.Members[i].Address
		}
	}
	if err := f.fits(); err != nil {
		return nil, err
	}
	return f, nil
}

// Keys returns the top-level keys of a configuration, and the required keys among them.
func Keys() (all, required []string) {
	for _, k := range new(File).keys() {
		if all = append(all, k.name); k.needed {
			required = append(required, k.name)
		}
	}
	return all, required
}

func (f *File) keys() []key {
	return []key{
		{"cluster", true, into(&f.Cluster, readName)},
		{"name", true, into(&f.Name, readName)},
		{"listen", false, into(&f.Listen, readListened)},
		{"api", false, into(&f.API, readListened)},
		{"metrics", false, into(&f.Metrics, readListened)},
		{"certificates", true, into(&f.Certificates, readFolder)},
		{"data", false, into(&f.Data, readFolder)},
		{"durable", false, into(&f.Durable, readBool)},
		{"disk_limit", false, into(&f.DiskLimit, readDiskLimit)},
		{"members", true, list(&f.Members, "members", 1, maxMembers, f.member)},
		{"m", false, into(&f.M, readLiars)},
		{"round", false, into(&f.Round, readTime)},
		{"times", false, mapping(
			key{"beat", false, into(&f.Times.Beat, readTime)}, key{"suspect", false, into(&f.Times.Suspect, readTime)},
			key{"flush", false, into(&f.Times.Flush, readTime)}, key{"retry", false, into(&f.Times.Retry, readTime)},
		)},
		{"clocks", false, mapping(
			key{"error", false, into(&f.Clocks.Error, readShort)},
			key{"drift", false, into(&f.Clocks.Drift, drift(1))},
			key{"period", false, into(&f.Clocks.Period, readTime)},
		)},
		{"groups", false, list(&f.Groups, "groups", 0, maxGroups, f.group)},
		{"tables", false, list(&f.Tables, "tables", 0, maxTables, f.table)},
		{"participant", false, into(&f.Participant, readParticipant)},
		{"commit", false, mapping(
			key{"protocol", true, into(&f.Commit.Protocol, readProtocol)},
			key{"votes", false, into(&f.Commit.Votes, readTime)},
			key{"delay", false, into(&f.Commit.Delay, readTime)},
		)},
		{"links", false, into(&f.Links, readLinks)},
		{"agreements", false, f.agreements},
		{"log", false, mapping(
			key{"format", false, into(&f.LogJSON, readFormat)}, key{"level", false, into(&f.LogLevel, readLogLevel)},
		)},
		{"traces", false, into(&f.Traces, readFolder)},
		{"tracelimit", false, into(&f.TraceLimit, readTraceLimit)},
		{"lab", false, readLab},
		{"traitor", false, into(&f.Lab, readTraitor)},
		{"skew", false, mapping(
			key{"offset", false, into(&f.Offset, readOffset)}, key{"drift", false, into(&f.Drift, drift(-maxDrift))},
		)},
	}
}

// member parses a member.
func (f *File) member(v value) (m cluster.Member, err error) {
	err = v.fields(
		key{"name", true, into(&m.Name, unusedName("member", f.Members, func(m cluster.Member) string { return m.Name }))},
		key{"address", true, into(&m.Address, func(v value) (string, error) {
			f.addresses = append(f.addresses, v)
			address, err := readDialed(v)
			if i := slices.IndexFunc(f.Members, func(o cluster.Member) bool { return o.Address == address }); i >= 0 {
				err = v.wrong("%q: this is the address of %s: each member needs its own", address, f.Members[i].Name)
			}
			return address, err
		})},
		key{"signer", true, into(&m.Signer, func(v value) (ed25519.PublicKey, error) {
			f.signers = append(f.signers, v)
			signer, err := readSigner(v)
			if i := slices.IndexFunc(f.Members, func(o cluster.Member) bool { return signer.Equal(o.Signer) }); i >= 0 {
				err = v.wrong("this is the signer of %s: each member needs its own", f.Members[i].Name)
			}
			return signer, err
		})},
	)
	return m, err
}

// group parses a group.
func (f *File) group(v value) (g cluster.GroupConfig, err error) {
	err = v.fields(
		key{"name", true, into(&g.Name, unusedName("group", f.Groups, func(g cluster.GroupConfig) string { return g.Name }))},
		key{"level", true, into(&g.Level, readLevel)},
		key{"keep", false, into(&g.Keep, amount(mostKept))},
		key{"keepbytes", false, into(&g.KeepBytes, amount(mostKeptBytes))},
	)
	return g, err
}

// table parses a table.
func (f *File) table(v value) (t cluster.TableConfig, err error) {
	err = v.fields(
		key{"name", true, into(&t.Name, unusedName("table", f.Tables, func(t cluster.TableConfig) string { return t.Name }))},
		key{"state", true, func(v value) error {
			text, err := v.oneOf("keyvalue", "bank")
			if text == "bank" {
				t.New, t.State = func() rsm.Application { return bank.New() }, text
			}
			return err
		}},
		key{"level", false, func(v value) error {
			text, err := v.oneOf(cluster.Total.String(), cluster.Byzantine.String())
			if err == nil {
				t.Level, err = cluster.ParseLevel(text)
			}
			return err
		}},
	)
	return t, err
}

// agreements parses the kinds of agreement.
func (f *File) agreements(v value) error {
	err := list(&f.Agreements, "agreements", 1, math.MaxInt, func(v value) (a cluster.AgreementConfig, err error) {
		err = v.fields(key{"algorithm", true, into(&a.Algorithm, readAlgorithm)}, key{"m", true, into(&a.M, readLiars)})
		return a, err
	})(v)
	if err == nil && len(f.Agreements) == 0 {
		err = v.wrong("an empty list: at least one was expected, or no such key, which stands for all that there are")
	}
	return err
}

// listens returns the addresses that the node listens on, by key.
func (f *File) listens() []struct{ key, address string } {
	return []struct{ key, address string }{{"listen", f.Listen}, {"api", f.API}, {"metrics", f.Metrics}}
}

// self returns the index of this node in Members, -1 if it is not a member.
func (f *File) self() int {
	return slices.IndexFunc(f.Members, func(m cluster.Member) bool { return m.Name == f.Name })
}

// fits returns an error for a key that is inconsistent with others.
func (f *File) fits() error {
	t := f.Times.WithDefaults()
	n, most := len(f.Members), max(0, (len(f.Members)-1)/3)
	switch {
	case n == 0:
		return f.line["members"].wrong("an empty list: allowed are 1 to %d members", maxMembers)
	case f.self() < 0:
		names := lists.Of(f.Members, func(m cluster.Member) string { return m.Name })
		return f.line["name"].wrong("%q is none of the members: allowed are %s", f.Name, strings.Join(names, ", "))
	case f.set("m") && (f.M > most || f.M < min(1, most)):
		allowed := fmt.Sprintf("allowed are 1 to %d", most)
		if most < 2 {
			allowed = fmt.Sprintf("allowed is %d", most)
		}
		return f.line["m"].wrong("%d faulty nodes of %d: %s, because n > 3m", f.M, n, allowed)
	case f.Durable && f.Data == "":
		return f.line["durable"].wrong("true: the key data is missing, which names the folder for it")
	case t.Suspect <= t.Beat:
		return f.line["times"].wrong("suspect is %v: more than beat was expected, which is %v", t.Suspect, t.Beat)
	case t.Retry <= t.Flush:
		return f.line["times"].wrong("retry is %v: more than flush was expected, which is %v", t.Retry, t.Flush)
	case f.set("tracelimit") && !f.set("traces"):
		return f.line["tracelimit"].wrong("there is no key traces, whose files it is a limit for")
	case f.set("clocks"):
		c := cluster.Config{Members: f.Members, M: f.M, Round: f.Round, Clocks: f.Clocks}
		if err := c.CheckClocks(); err != nil {
			return f.line["clocks"].wrong("%v", err)
		}
	}
	for _, key := range []string{"traitor", "skew"} {
		if f.set(key) && !f.set("lab") {
			return f.line[key].wrong("the key is for laboratories: it is refused without \"lab: true\"")
		}
	}
	listens := f.listens()
	for i, l := range listens {
		for _, o := range listens[:i] {
			if clash(l.address, o.address) {
				return f.line[l.key].wrong("%q: the port also belongs to %s, %q: each needs its own", l.address, o.key, o.address)
			}
		}
	}
	byzantine := slices.ContainsFunc(f.Groups, func(g cluster.GroupConfig) bool { return g.Level == cluster.Byzantine })
	if byzantine && (n < 4 || n > maxByzantine) {
		return f.line["groups"].wrong("level byzantine among %d members: allowed are 4 to %d", n, maxByzantine)
	}
	byzantine = slices.ContainsFunc(f.Tables, func(t cluster.TableConfig) bool { return t.Level == cluster.Byzantine })
	if byzantine && (n < 4 || n > maxByzantine) {
		return f.line["tables"].wrong("level byzantine among %d members: allowed are 4 to %d", n, maxByzantine)
	}
	if f.Commit.Protocol == cluster.Agreed && (n < 4 || n > maxByzantine) {
		return f.line["commit"].wrong("protocol agreed among %d members: allowed are 4 to %d", n, maxByzantine)
	}
	return f.fitsLinks()
}

// fitsLinks returns an error for a key that is inconsistent with the members or the links.
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

// set reports whether the file has a key.
func (f *File) set(key string) bool { return f.line[key].node != nil }

// at returns an error on the line of a key.
func (f *File) at(key string, err error) error { return f.line[key].wrong("%v", err) }

// Folder resolves the name of a folder in the file.
func (f *File) Folder(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(f.Path), name)
}

// identity reads the identity of the node, and its trust.
func (f *File) identity() (c cluster.Config, err error) {
	dir := f.Folder(f.Certificates)
	if c.Trust, err = cert.LoadTrust(dir, nil); err != nil {
		return c, f.at("certificates", err)
	}
	if found := c.Trust.Cluster(); found != f.Cluster {
		return c, f.at("cluster", fmt.Errorf("%q: the authority in %s belongs to cluster %s", f.Cluster, dir, found))
	}
	if c.Self, c.SignerKey, err = cert.LoadNode(dir, f.Name); err != nil {
		return c, f.at("certificates", err)
	}
	if _, err := c.Trust.Verify(c.Self.Certificate()); err != nil {
		return c, f.at("certificates", err)
	}
	if pinned := f.Members[f.self()].Signer; !pinned.Equal(c.SignerKey.Public()) {
		file, _ := cert.SignerFiles(dir, f.Name)
		return c, f.signers[f.self()].wrong("%s is not the one that %s has, which is %s",
			cert.FormatSigner(pinned), file, cert.FormatSigner(c.SignerKey.Public().(ed25519.PublicKey)))
	}
	return c, nil
}

// participant returns the client of the node's participant, nil if the file names none.
func (f *File) participant() (cluster.Participant, error) {
	if f.Participant == "" {
		return nil, nil
	}
	return participant.New(f.Name, f.Participant)
}

// Config returns the configuration for [cluster.Join], except for what a file cannot contain: the receivers of
// deliveries, the listener, and the log. It reads the certificates, and fails with an [Error] if they are not
// valid for this node now.
func (f *File) Config() (cluster.Config, error) {
	c, err := f.identity()
	if err != nil {
		return cluster.Config{}, err
	}
	c.Name, c.Members, c.Dir, c.Durable = f.Name, f.Members, f.Folder(f.Data), f.Durable
	c.DiskLimit = f.DiskLimit
	c.Groups, c.Tables, c.M, c.Round, c.Times = slices.Clone(f.Groups), f.Tables, f.M, f.Round, f.Times
	c.FaultInjection = f.Lab
	c.Clocks, c.Links, c.Agreements, c.Commit = f.Clocks, f.Links, f.Agreements, f.Commit
	if c.Participant, err = f.participant(); err != nil {
		return cluster.Config{}, f.at("participant", err)
	}
	if f.Traces != "" {
		limit := cmp.Or(f.TraceLimit, defaultTrace)
		c.Trace = &cluster.Tracing{Open: cluster.TraceFolder(f.Folder(f.Traces)), Limit: int64(limit) << 20}
	}
	if f.Offset != 0 || f.Drift != 0 {
		c.Clock = host.Skewed{Clock: host.NewSystem(), Offset: parley.Tick(f.Offset), Drift: f.Drift}
	}
	return c, nil
}
