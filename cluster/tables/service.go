package tables

import (
	"fmt"

	"parley/cluster/kernel"
)

// Service is a node's replicas of all tables.
type Service struct {
	k      *kernel.Kernel
	list   []Config
	limits Limits
	tables map[string]*Table
}

// New returns a service without open tables.
func New(k *kernel.Kernel, list []Config, limits Limits) *Service {
	return &Service{k: k, list: list, limits: limits, tables: make(map[string]*Table)}
}

// Open opens all tables.
func (s *Service) Open() error {
	for i, c := range s.list {
		if s.tables[c.Name] != nil {
			return fmt.Errorf("cluster: two tables are named %q", c.Name)
		}
		t, err := s.open(c.WithDefaults(), uint32(i))
		if err != nil {
			return fmt.Errorf("cluster: %w", err)
		}
		s.tables[c.Name] = t
	}
	return nil
}

// machine returns the name of a table's machine.
func machine(table string) string { return "table/" + table }

// Table returns this node's replica of a state machine. If the name is not configured, all methods of the result
// fail with ErrNotConfigured.
func (s *Service) Table(name string) *Table {
	if t := s.tables[name]; t != nil {
		return t
	}
	t := &Table{
		c: Config{Name: name}.WithDefaults(), k: s.k, slots: make(chan struct{}, 1),
		standing: standing{joined: make(chan struct{}), closed: kernel.NotConfigured("table", name, s.tables)},
	}
	close(t.joined)
	return t
}

// Busy reports whether a command waits for its answer.
func (s *Service) Busy() bool {
	for _, t := range s.tables {
		if len(t.slots) > 0 {
			return true
		}
	}
	return false
}

// Close ends all waiting calls with an error.
func (s *Service) Close(why error) {
	for _, t := range s.tables {
		t.close(why)
		if t.order != nil {
			t.order.close()
		}
	}
}

// Expel closes the tables from which this node is expelled: all tables, or only the tables that tolerate only crashes.
func (s *Service) Expel(all bool) {
	for _, t := range s.tables {
		if !all && t.order != nil {
			continue
		}
		t.close(kernel.ErrExpelled)
		t.process.Close()
		if t.order != nil {
			t.order.close()
		}
	}
}

// AgainstLiars reports whether a channel belongs to a table that tolerates Byzantine faults.
func (s *Service) AgainstLiars(channel uint32) bool {
	i := int64(channel) - kernel.FirstTable
	return channel >= kernel.FirstTableOrder && channel <= kernel.LastTableOrder ||
		i >= 0 && i < int64(len(s.list)) && s.list[i].Level == kernel.Byzantine
}

// sameLevel returns an error if the records of a table are of another level.
func (s *Service) sameLevel(c Config) error {
	others, was := []string{byzantineMachine(c.Name), "group/" + orderOf(c.Name)}, kernel.Byzantine
	if c.Level == kernel.Byzantine {
		others, was = []string{machine(c.Name)}, kernel.Total
	}
	for _, name := range others {
		if s.k.Store == nil {
			break
		}
		_, state, records, err := s.k.Store.Open(name)
		if err != nil {
			return err
		}
		if state != nil || len(records) > 0 {
			return fmt.Errorf("level %v: its records are of level %v: give the table another name to begin again, or start "+
				"all nodes with empty data folders", c.Level, was)
		}
	}
	return nil
}

// Status returns the status of all tables, given the view of each machine.
func (s *Service) Status(viewed func(machine string) kernel.ViewStatus) []Status {
	list := []Status{}
	for _, c := range s.list {
		list = append(list, s.tables[c.Name].status(viewed(machine(c.Name))))
	}
	return list
}
