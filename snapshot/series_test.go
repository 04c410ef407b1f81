package snapshot

import (
	"fmt"
	"slices"
	"testing"
)

func TestSeriesIsImmutable(t *testing.T) {
	one := newSeries([]int{1, 2})
	two := one.with(3)
	three := two.with(4, 5)
	other := one.with(6) // the memory behind one is taken
	more := other.with(7)
	var none series[int]
	some := none.with(8)
	for i, c := range []struct {
		got  series[int]
		want []int
	}{
		{one, []int{1, 2}}, {two, []int{1, 2, 3}}, {three, []int{1, 2, 3, 4, 5}},
		{other, []int{1, 2, 6}}, {more, []int{1, 2, 6, 7}}, {some, []int{8}}, {none, nil},
	} {
		if !slices.Equal(c.got.all, c.want) {
			t.Errorf("%d: %v, want %v", i, c.got.all, c.want)
		}
	}
	for name, ok := range map[string]bool{
		"itself": one.beginsWith(one), "next": two.beginsWith(one), "after": three.beginsWith(one),
		"other": other.beginsWith(other), "more": more.beginsWith(other),
	} {
		if !ok {
			t.Errorf("%s does not begin with what it extends", name)
		}
	}
	for name, ok := range map[string]bool{
		"shorter": one.beginsWith(two), "other": other.beginsWith(one), "none": one.beginsWith(none), "new": none.beginsWith(none),
	} {
		if ok {
			t.Errorf("%s passes for an extension", name)
		}
	}
}

func TestSeriesGrowsInPlace(t *testing.T) {
	s := newSeries[string](nil)
	moved := 0
	for i := range 10_000 {
		next := s.with(fmt.Sprint(i))
		if i > 0 && &next.all[0] != &s.all[0] {
			moved++
		}
		s = next
	}
	if moved > 40 {
		t.Errorf("copied %d times", moved)
	}
	for i, e := range s.all {
		if e != fmt.Sprint(i) {
			t.Fatalf("element %d is %s", i, e)
		}
	}
}
