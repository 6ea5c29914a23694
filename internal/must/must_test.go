package must

import (
	"errors"
	"testing"
)

var errA, errB = errors.New("a"), errors.New("b")

// tried returns the outcome of work in which something fails, and of the cleanup after it.
func tried(work, clean error) (done int, err error) {
	defer Return(&err)
	defer func() { err = errors.Join(err, clean) }()
	Do(nil)
	done = Get(1, nil)
	v, w := Get2(1, 2, work)
	return done + v + w, nil
}

func TestReturn(t *testing.T) {
	for _, c := range []struct {
		work, clean error
		done        int
		says        string
	}{{nil, nil, 4, ""}, {errA, nil, 1, "a"}, {nil, errB, 4, "b"}, {errA, errB, 1, "a\nb"}} {
		done, err := tried(c.work, c.clean)
		if done != c.done || (err == nil) != (c.says == "") || err != nil && err.Error() != c.says {
			t.Errorf("%v, %v: got %d and %v", c.work, c.clean, done, err)
		}
		if c.work != nil && !errors.Is(err, c.work) {
			t.Errorf("%v is not in %v", c.work, err)
		}
	}
}

// An error that already is the result is not joined a second time.
func TestReturnOnce(t *testing.T) {
	err := func() (err error) {
		defer Return(&err)
		err = errA
		Do(err)
		return nil
	}()
	if err != errA { //nolint:errorlint // it is to be the same
		t.Errorf("got %v", err)
	}
}

// Return does not recover a panic that is no error of the work.
func TestOtherPanicsGoOn(t *testing.T) {
	defer func() {
		if why := recover(); why != "other" {
			t.Errorf("got %v", why)
		}
	}()
	var err error
	defer Return(&err)
	panic("other")
}

// All calls are made, even if some fail.
func TestEach(t *testing.T) {
	var done [3]int
	err := func() (err error) {
		defer Return(&err)
		Each(3, func(i int) error {
			done[i]++
			return []error{nil, errA, errB}[i]
		})
		return nil
	}()
	if done != [3]int{1, 1, 1} || !errors.Is(err, errA) || !errors.Is(err, errB) {
		t.Errorf("got %v and %v", done, err)
	}
}

func TestFailf(t *testing.T) {
	err := func() (err error) {
		defer Return(&err)
		Failf("%w and more", errA)
		return nil
	}()
	if !errors.Is(err, errA) || err.Error() != "a and more" {
		t.Errorf("got %v", err)
	}
}
