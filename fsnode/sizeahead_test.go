package fsnode

import "testing"

func TestSizesAreReadAheadOfWhoAsksInOrder(t *testing.T) {
	var a sizeAhead
	ask := func(name string, want int) {
		t.Helper()
		if n := a.asked(name); n != want {
			t.Errorf("%d files behind %s, want %d", n, name, want)
		}
	}
	ask("m", 0)
	ask("c", 0) // in no order
	ask("d", sizedFirst)
	ask("e", 0) // they are being read
	a.ended("t")
	ask("u", 2*sizedFirst)
	a.ended("w")
	ask("x", 4*sizedFirst)
	a.ended("y")
	ask("b", 0) // from the beginning
	ask("c", sizedFirst)
	a.ended("d")
	for name := byte('e'); name < 'z'; name++ {
		a.asked(string(name))
		a.ended(string(name))
	}
	ask("z", sizedMost)
}
