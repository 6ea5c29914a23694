package main

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley/internal/form"
	"parley/internal/input"
	"parley/internal/scenario"
)

// The kinds of values in a scenario.
var (
	scalar = schema{"type": []string{"string", "number", "boolean"}}
	whole  = schema{"type": "integer", "minimum": 0}
	yes    = schema{"type": "boolean"}
	chance = schema{"type": "number", "minimum": 0, "maximum": 1}

	process   = described("a name, such as P1, or its number", schema{"type": []string{"string", "integer"}})
	processes = described("a process, or a list", schema{
		"anyOf": []schema{process, {"type": "array", "items": process}},
	})
	moment = described("a number of ticks, or a duration such as 5ms", schema{"type": []string{"integer", "string"}})
	delay  = described("a time, or a range such as 1..900", schema{"type": []string{"integer", "string"}})
	graph  = schema{"type": "object", "additionalProperties": processes}
)

// planSchema has the keys of a scenario that make its plan.
var planSchema = schema{
	"delay": delay, "fifo": yes, "loss": chance, "twice": chance, "graph": graph,
	"requests": listOf(schema{
		"at": process, "when": moment, "broadcast": scalar, "propose": scalar, "command": scalar,
		"leave": schema{"const": true},
		"setup": object(schema{"active": processes, "wrong": whole, "checked": yes}, "active"),
		"to":    processes, "client": whole, "number": whole,
	}, "at"),
	"workload": object(schema{"broadcasts": whole, "from": processes, "named": yes, "within": moment}),
	"links": listOf(schema{
		"from": processes, "to": processes, "since": moment, "until": moment, "loss": chance, "twice": chance, "delay": delay,
	}),
	"partitions": listOf(schema{
		"since": moment, "until": moment, "groups": schema{"type": "array", "items": processes, "minItems": 2},
	}, "groups"),
	"crashes": listOf(schema{
		"process": process, "step": whole, "when": moment, "effects": whole, "back": moment,
		"disk": schema{"enum": []string{"kept", "lost"}},
	}, "process"),
	"pauses": listOf(schema{"process": process, "since": moment, "for": moment}, "process", "for"),
	"clocks": listOf(schema{
		"process": process, "offset": moment, "drift": schema{"type": "number"},
	}, "process"),
	"suspicions": listOf(schema{"process": process, "suspects": process, "when": moment}, "process", "suspects"),
	"detect":     moment,
	"random": object(schema{
		"crashes": whole, "restarts": whole, "lost-disks": whole, "partitions": whole, "one-way": whole, "slow": whole,
		"lossy": whole, "pauses": whole, "suspicions": whole, "drift": whole, "within": moment, "last": moment,
		"spared": processes,
	}),
	"heal": moment, "until": moment, "steps": whole,
	"promised": object(schema{"delay": moment, "offset": moment, "drift": schema{"type": "number"}}),
}

func described(text string, s schema) schema {
	s["description"] = text
	return s
}

// listOf returns the schema of a list of mappings with these keys.
func listOf(keys schema, needed ...string) schema {
	return schema{"type": "array", "items": object(keys, needed...)}
}

// scenarioSchema is the schema of a scenario file: the protocol, and the flags of all protocols that a file may set.
func scenarioSchema(root *cobra.Command) schema {
	properties := schema{}
	var names []string
	parent, _, err := root.Find([]string{"run"})
	if err != nil {
		panic(err) // there is such a command
	}
	for _, cmd := range parent.Commands() {
		names = append(names, cmd.Name())
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			switch {
			case !form.FileMaySet(f.Name):
			case slices.Contains(scenario.Keys, f.Name) && planSchema[f.Name] != nil && f.Value.Type() == "string":
				properties[f.Name] = planSchema[f.Name]
			default:
				properties[f.Name] = flagSchema(f, properties[f.Name])
			}
		})
	}
	properties["protocol"] = schema{"enum": names}
	return object(properties, "protocol")
}

// flagSchema is the schema of a flag's value in a file. other is the schema of the same flag of another protocol.
func flagSchema(f *pflag.Flag, other any) schema {
	var s schema
	values := input.Values(f)
	switch kind := f.Value.Type(); {
	case f.Name == "faulty":
		behaviors := schema{"type": "object", "additionalProperties": schema{"type": "string"}}
		s = schema{"anyOf": []schema{{"type": "string"}, behaviors}}
	case form.TakesList(f.Name):
		s = schema{"anyOf": []schema{scalar, {"type": "array", "items": scalar}}}
	case kind == "bool":
		s = yes
	case kind == "int" || kind == "uint64":
		s = schema{"type": "integer"}
	case values != nil:
		if old, ok := other.(schema); ok {
			if known, ok := old["enum"].([]string); ok {
				values = append(slices.Clone(known), values...)
			}
		}
		slices.Sort(values)
		s = schema{"enum": slices.Compact(values)}
	default:
		s = scalar
	}
	if old, ok := other.(schema); ok && (old["enum"] == nil) != (s["enum"] == nil) {
		return scalar // the flag means something else to each protocol
	}
	return s
}
