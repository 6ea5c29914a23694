package link

import (
	"reflect"
	"strings"
	"testing"
)

func place(at uint64) *uint64 { return &at }

func TestRunLinks(t *testing.T) {
	for want, r := range map[string]Run{
		"#/run?s=eig&n=7&m=2&f=1:twofaced,5:crash@r2:3&v=1&default=0&seed=42&at=206&sel=P2/1.5&tree=P4&h=3ec91ee9&lab=1": {
			Protocol: "eig", Hash: "3ec91ee90976", At: place(206), Selected: "P2/1.5", Tree: "P4",
			Flags: map[string]string{
				"n": "7", "m": "2", "faulty": "1=twofaced,5=crash@r2:3", "values": "1", "seed": "42", "default": "0",
			},
		},
		"#/run?g=article&at=0&lab=1": {Gallery: "article", At: place(0)},
		"#/run?t=0123abcd&lab=1":     {Trace: "0123abcd"},
		"#/run?s=om&lab=1":           {Protocol: "om"},
		"#/run?s=fifo&crashes=%5B%7Bprocess:%202,%20when:%201000%7D%5D&names=%28a%29&lab=1": {
			Protocol: "fifo", Flags: map[string]string{"crashes": "[{process: 2, when: 1000}]", "names": "(a)"},
		},
		"#/run?s=om&v=a%26b%3D%23%25%20%E2%82%AC%EF%BF%BD%22%3Cb%3E&lab=1": {
			Protocol: "om", Flags: map[string]string{"values": "a&b=#% €\xff\"<b>"},
		},
	} {
		if got := r.Fragment(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestRunLinksRead(t *testing.T) {
	all := []Run{
		{Gallery: "article", At: place(3), Selected: "r1/P5/P2"},
		{Trace: "0123abcd", Hash: "0123abcd", Tree: "P3"},
		{Packed: Pack("protocol: eig\n# any text, ü 日本\nfaulty: {2: flip}\n")},
		{Packed: Pack("protocol: om\n"), Flags: map[string]string{"seed": "7"}},
		{Protocol: "eig", Flags: map[string]string{"faulty": "1=moves:0.1,3=crash@r1:2", "values": "0,1"}},
	}
	for _, want := range all {
		got, err := Read(want.Fragment())
		if len(got.Flags) == 0 {
			got.Flags = nil
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", want.Fragment(), got, err, want)
		}
	}
}

// Links that were written before brackets were encoded lead to the same runs.
func TestOldRunLinksRead(t *testing.T) {
	const old = "#/run?s=fifo&crashes=[{process:%202,%20when:%201000}]&names=(a)&lab=1"
	got, err := Read(old)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Read(got.Fragment())
	if err != nil || !reflect.DeepEqual(got, want) || got.Flags["crashes"] != "[{process: 2, when: 1000}]" ||
		got.Fragment() == old {
		t.Errorf("%s is read as %+v, and %s as %+v, %v", old, got, got.Fragment(), want, err)
	}
}

func TestBadRunLinks(t *testing.T) {
	bomb := Run{Packed: Pack(strings.Repeat("#", longestText+1))}.Fragment()
	for fragment, want := range map[string]string{
		"#/gallery":                    "it leads to no run",
		"#/run?lab=1":                  "it names 0 runs",
		"#/run?s=om&g=article":         "it names 2 runs",
		"#/run?s=om&v=%E2%82&lab=1":    "a part of it is missing",
		"#/run?s=om&v=%":               "a part of it is missing",
		"#/run?y=text":                 "its scenario is not packed",
		"#/run?y=~!":                   "its scenario is damaged",
		"#/run?y=~S0k":                 "its scenario is damaged",
		"#/run?s=om&lab=2":             "a newer version of the lab wrote it",
		"#/run?s=om&v=1&values=0":      "it gives a setting twice",
		bomb:                           "its scenario is too long",
		strings.Repeat("x", longest+1): "it is too long",
	} {
		if _, err := Read(fragment); err == nil || err.Error() != want {
			t.Errorf("%.80s: got %v, want %s", fragment, err, want)
		}
	}
}

func TestSearchLinks(t *testing.T) {
	got := Search("om", map[string]string{"n": "3", "beyond-bound": "true", "goal": "P2 decides 0"})
	if want := "#/explore?s=om&beyond-bound=true&goal=P2%20decides%200&n=3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPackedScenarios(t *testing.T) {
	const text = "protocol: eig\n# any text, ü 日本\nfaulty: {2: flip}\n"
	if got, err := Unpack(Pack(text)); got != text || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
