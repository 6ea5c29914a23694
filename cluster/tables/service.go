package tables

import (
	"fmt"

	"parley/cluster/kernel"
)

// Service is a node's copies of all tables.
type Service struct {
	k      *kernel.Kernel
	list   []Config
	limits Limits
	tables map[string]*Table
}

// New returns a service of which no table is open.
func New(k *kernel.Kernel, list []Config, limits Limits) *Service {
	return &Service{k: k, list: list, limits: limits, tables: make(map[string]*Table)}
}

// Open opens all tables.
func (s *Service) Open() error {
	for i, c := range s.list {
		if s.tables[c.Name] != nil {
			return fmt.Errorf("cluster: two tables are named %q", c.Name)
		}
		t, err := s.open(c.WithDefaults(), kernel.FirstTable+uint32(i))
		if err != nil {
			return fmt.Errorf("cluster: %w", err)
		}
		s.tables[c.Name] = t
	}
	return nil
}

// machine names the machine of a table.
func machine(table string) string { return "table/" + table }

// Table returns this node's copy of a state machine. One of a name that is not configured fails with ErrNotConfigured
// whatever it is asked.
func (s *Service) Table(name string) *Table {
	if t := s.tables[name]; t != nil {
		return t
	}
	t := &Table{
		c: Config{Name: name}.WithDefaults(), k: s.k, slots: make(chan struct{}, 1), joined: make(chan struct{}),
		closed: kernel.NotConfigured("table", name, s.tables),
	}
	close(t.joined)
	return t
}

// Busy tells whether a command waits for its answer.
func (s *Service) Busy() bool {
	for _, t := range s.tables {
		if len(t.slots) > 0 {
			return true
		}
	}
	return false
}

// Close ends all that waits.
func (s *Service) Close(why error) {
	for _, t := range s.tables {
		t.close(why)
	}
}

// Expel ends all tables, as this node is expelled from them.
func (s *Service) Expel() {
	for _, t := range s.tables {
		t.close(kernel.ErrExpelled)
		t.process.Close()
	}
}

// Status returns the status of all tables, given what is known of the views of each machine.
func (s *Service) Status(viewed func(machine string) kernel.ViewStatus) []Status {
	list := []Status{}
	for _, c := range s.list {
		list = append(list, s.tables[c.Name].status(viewed(machine(c.Name))))
	}
	return list
}
