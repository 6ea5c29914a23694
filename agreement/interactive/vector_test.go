package interactive_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/interactive"
	"parley/agreement/problem"
)

func TestVectorText(t *testing.T) {
	for _, test := range []struct {
		vector []string
		text   string
	}{
		{[]string{"0", "1", "1", "1", "0"}, `{0,1,1,1,0}`},
		{[]string{""}, `{}`},
		{[]string{"", ""}, `{,}`},
		{[]string{"a b~", "{,}\\"}, `{a b~,\7b\2c\7d\5c}`},
		{[]string{"\x00\x1f\x7f\xff", "é"}, `{\00\1f\7f\ff,\c3\a9}`},
	} {
		var vector [][]byte
		for _, v := range test.vector {
			vector = append(vector, []byte(v))
		}
		if got := string(interactive.EncodeVector(vector)); got != test.text {
			t.Errorf("%q is written %s, want %s", test.vector, got, test.text)
		}
		got, err := interactive.DecodeVector([]byte(test.text))
		if err != nil || !slices.EqualFunc(got, vector, bytes.Equal) {
			t.Errorf("%s is read as %q, %v", test.text, got, err)
		}
	}
}

func TestVectorRefused(t *testing.T) {
	large := strings.Repeat("x", problem.MaxValue)
	for _, test := range []struct {
		text string
		want error
	}{
		{``, interactive.ErrBraces}, {`{`, interactive.ErrBraces}, {`}`, interactive.ErrBraces},
		{`0,1`, interactive.ErrBraces}, {`{0,1`, interactive.ErrBraces}, {`{0} `, interactive.ErrBraces},
		{`{0}}`, interactive.ErrByte}, {`{{0}`, interactive.ErrByte}, {"{\n}", interactive.ErrByte},
		{`{\}`, interactive.ErrByte}, {`{\7}`, interactive.ErrByte}, {`{\7b\}`, interactive.ErrByte},
		{`{\7B}`, interactive.ErrByte}, {`{\30}`, interactive.ErrByte}, {`{\x0}`, interactive.ErrByte},
		{"{" + large + "}", nil}, {"{" + large + "x}", interactive.ErrRange},
		{"{" + strings.Repeat(",", parley.MaxProcesses-1) + "}", nil},
		{"{" + strings.Repeat(",", parley.MaxProcesses) + "}", interactive.ErrRange},
	} {
		if _, err := interactive.DecodeVector([]byte(test.text)); !errors.Is(err, test.want) {
			t.Errorf("%.40q: %v, want %v", test.text, err, test.want)
		}
	}
}

// A text that can be decoded is encoded in the same way again: for all texts of up to five
// significant bytes.
func TestVectorHasOneForm(t *testing.T) {
	const alphabet = "{},\\5c0\x00"
	texts, vectors := 0, 0
	var extend func(text []byte)
	extend = func(text []byte) {
		texts++
		if vector, err := interactive.DecodeVector(text); err == nil {
			vectors++
			if again := interactive.EncodeVector(vector); !bytes.Equal(again, text) {
				t.Errorf("%q is read as %q and written as %q", text, vector, again)
			}
		}
		for i := range alphabet {
			if len(text) < 5 {
				extend(append(text[:len(text):len(text)], alphabet[i]))
			}
		}
	}
	extend(nil)
	// In between the braces: up to 3 of the four bytes ",5c0", or a backslash and
	// two digits but 55 and 50, which are letters.
	if texts != 37449 || vectors != 1+4+16+64+7 {
		t.Errorf("%d of %d texts are vectors, want 92 of 37449", vectors, texts)
	}
}

func FuzzVector(f *testing.F) {
	f.Add([]byte(`{0,1,\ff}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		vector, err := interactive.DecodeVector(text)
		if err != nil {
			return
		}
		if again := interactive.EncodeVector(vector); !bytes.Equal(again, text) {
			t.Errorf("%q is read as %q and written as %q", text, vector, again)
		}
	})
}
