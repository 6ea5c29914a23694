package cluster

import (
	"encoding/hex"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// A node refuses one that is configured differently, by a hash. The hash must not change, or nodes could not be
// upgraded one by one.
func TestDigestStays(t *testing.T) {
	members := []Member{{Name: "a", Signer: []byte("1")}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	full := Config{
		Members: members, M: 1, Round: time.Second, Durable: true, Links: Calls,
		Groups:     []GroupConfig{{Name: "g"}, {Name: "h", Level: Byzantine}},
		Tables:     []TableConfig{{Name: "t"}, {Name: "u", State: "mine", Sessions: 7}},
		Times:      Times{Beat: time.Millisecond, Retry: time.Minute},
		Clocks:     ClockConfig{Error: time.Millisecond, Drift: 200, Period: time.Minute},
		Commit:     CommitConfig{Protocol: Agreed, Votes: time.Minute, Open: 10},
		Agreements: []AgreementConfig{{Algorithm: EIG, M: 1}, {Algorithm: SM, M: 2}},
	}
	for want, c := range map[string]Config{
		"4991f28238a1a248": {Members: members},
		"dff4db456a8060f0": full,
	} {
		sum := c.filled().digest()
		if got := hex.EncodeToString(sum[:8]); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// The options that nodes must share change the digest, and all others do not, whatever their values. A new option
// counts as one of the others until it is named here.
func TestDigestOfEachOption(t *testing.T) {
	t.Parallel()
	alike := strings.Fields(`Members.Name Members.Signer Groups.Name Groups.Level Tables.Name Tables.State Tables.Level
		Tables.Sessions Durable M Round Times.Beat Times.Suspect Times.Flush Times.Retry Clocks.Error Clocks.Drift
		Clocks.Period Commit.Protocol Commit.Open Commit.Remember Links Agreements.Algorithm Agreements.M`)
	base := func() *Config {
		return &Config{
			Members: make([]Member, 1), Groups: make([]GroupConfig, 1), Tables: make([]TableConfig, 1),
			Agreements: make([]AgreementConfig, 1), Commit: CommitConfig{Protocol: Agreed},
		}
	}
	var changed []string
	names := map[[32]byte]string{base().digest(): "no option"}
	c := base()
	var each func(name string, v reflect.Value)
	each = func(name string, v reflect.Value) {
		was := reflect.New(v.Type()).Elem()
		was.Set(v)
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() && f.Type.PkgPath() != "net" {
					each(name+"."+f.Name, v.Field(i))
				}
			}
			return
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int64:
			v.SetInt(v.Int() + 7)
		case reflect.Uint8:
			v.SetUint(1)
		case reflect.String:
			v.SetString("x")
		case reflect.Slice:
			if v.Type().Elem().Kind() == reflect.Struct {
				each(name, v.Index(0))
				return
			}
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case reflect.Func, reflect.Interface, reflect.Pointer, reflect.Chan:
			return // not an option that two nodes could compare
		default:
			t.Errorf("%s is a %v, which this test does not set", name, v.Kind())
		}
		if sum := c.digest(); sum != base().digest() {
			changed = append(changed, strings.TrimPrefix(name, "."))
			if other := names[sum]; other != "" {
				t.Errorf("%s and %s have one digest", name, other)
			}
			names[sum] = name
		}
		v.Set(was)
	}
	each("", reflect.ValueOf(c).Elem())
	slices.Sort(changed)
	slices.Sort(alike)
	if !slices.Equal(changed, alike) {
		t.Errorf("the digest depends on\n%v, want\n%v", changed, alike)
	}
	c.Commit.Open, c.Commit.Remember = 4096, 16384
	if c.digest() != base().digest() {
		t.Error("the defaults, named, have another digest")
	}
}
