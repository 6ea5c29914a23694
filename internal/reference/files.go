package main

import (
	"reflect"

	"parley/cli/console"
	"parley/internal/conform"
	"parley/trace"
)

// failure is what commands print for an error.
var failure = console.Printed{Schema: "error", Value: console.ErrorOutput{}}

// schemas returns the schemas of all formats, by name.
func (r *reference) schemas() map[string][]byte {
	out := map[string][]byte{
		"error":    document("What commands print on the standard error with --json", r.outputSchema(failure)),
		"scenario": document("A scenario file, as YAML", scenarioSchema(r.commands)),
		"trace":    document("A line of a trace file", r.traceSchema()),
		"vectors":  document("A file of worked cases", r.conformSchema()),
	}
	for _, cmd := range everyCommand(r.commands) {
		for _, p := range console.Forms(cmd.Flags()) {
			out[p.Schema] = document("The output of \""+p.Schema+"\" with --json", r.outputSchema(p))
		}
	}
	return out
}

// omittable makes every key of the objects within a schema one that may be left out.
func omittable(s schema) {
	delete(s, "required")
	for _, v := range s { // order: each is changed by itself
		switch v := v.(type) {
		case schema:
			omittable(v)
		case []schema:
			for _, one := range v {
				omittable(one)
			}
		}
	}
}

// traceSchema is the schema of one line of a trace file.
func (r *reference) traceSchema() schema {
	var kinds []schema
	for _, line := range trace.Lines() {
		kinds = append(kinds, r.typeSchema(reflect.TypeOf(line)))
	}
	return schema{"oneOf": kinds}
}

// conformSchema is the schema of a file of worked cases.
func (r *reference) conformSchema() schema {
	kinds := make(map[string][]schema)
	var families []schema
	for _, f := range conform.Forms() {
		properties := schema{}
		r.addFields(properties, f.Case)
		expected := schema{}
		r.addFields(expected, f.Expect)
		properties["expect"] = object(expected)
		for _, s := range properties { // order: each is changed by itself
			omittable(s.(schema))
		}
		if f.Kind != "" {
			properties["kind"] = schema{"const": f.Kind}
		}
		kinds[f.Family] = append(kinds[f.Family], object(properties, "id", "expect"))
		if len(kinds[f.Family]) == 1 {
			families = append(families, schema{"const": f.Family})
		}
	}
	for i, family := range families {
		name := family["const"].(string)
		cases := schema{"type": "array", "minItems": 1, "items": schema{"oneOf": kinds[name]}}
		if len(kinds[name]) == 1 {
			cases["items"] = kinds[name][0]
		}
		families[i] = object(schema{"family": family, "cases": cases}, "family", "cases")
	}
	return schema{"oneOf": families}
}
