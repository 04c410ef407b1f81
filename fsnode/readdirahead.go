package fsnode

import "slices"

// aheads are the listings of a mount that are ahead.
type aheads struct {
	slots chan struct{}
	// start runs something in the background.
	start func(func())
}

func newAheads(start func(func())) *aheads { return &aheads{make(chan struct{}, maxAheads), start} }

const (
	// maxAhead is how many names of a directory are listed ahead at most: about
	// as many as the kernel asks for at once.
	maxAhead = 8 << 10
	// maxAheads is how many listings are ahead at a time, as one that nobody goes
	// on with keeps a megabyte.
	maxAheads = 16
)

// dirAhead is what of a listing was made before the kernel asked for it, while
// it took in what came before, which takes it longer. The dirHandle's lock
// guards it, but not what it makes.
type dirAhead struct {
	*aheads
	// holds says that this one is among them.
	holds bool
	// ready comes next, and then what coming will be.
	ready  []child
	coming <-chan []child
}

// stop drops what was made.
func (a *dirAhead) stop() {
	a.ready, a.coming = nil, nil
	if a.holds {
		a.holds = false
		<-a.slots
	}
}

// next returns what comes next, if it was made.
func (a *dirAhead) next() (child, bool) {
	if a.coming != nil {
		a.ready, a.coming = <-a.coming, nil
	}
	if len(a.ready) == 0 {
		return child{}, false
	}
	return a.ready[0], true
}

// delivered notes that what comes next was.
func (a *dirAhead) delivered() {
	if len(a.ready) > 0 {
		a.ready = a.ready[1:]
	}
}

// lookAhead lists as much again as was delivered last.
func (h *dirHandle) lookAhead(delivered int) {
	d, ok := h.dir.(resumable)
	a := &h.ahead
	if !ok || a.aheads == nil || a.coming != nil || len(a.ready) >= delivered || !d.settled() {
		return
	}
	if !a.holds {
		select {
		case a.slots <- struct{}{}:
			a.holds = true
		default:
			return
		}
	}
	name := h.name
	if n := len(a.ready); n > 0 {
		name = a.ready[n-1].name
	}
	before := slices.Clip(a.ready)
	made := make(chan []child, 1)
	a.ready, a.coming = nil, made
	// Names differ in length, so that it may be some more.
	n := min(delivered+delivered/8+1, maxAhead)
	a.start(func() {
		defer close(made) // without anything after a panic
		made <- append(before, h.listSome(d, name, n)...)
	})
}

// listSome returns what comes after a name, or less: what fails is left to who
// is asked for it.
func (h *dirHandle) listSome(d resumable, name string, n int) (out []child) {
	files := make([]dataFile, 0, n)
	out = make([]child, 0, n)
	for c, err := range d.listAfter(h.ctx, name) {
		if err != nil || len(out) == n {
			break
		}
		if f, ok := c.node.(*dataFile); ok { // valid until the next step
			files = append(files, *f)
			c.node = &files[len(files)-1]
		}
		out = append(out, c)
	}
	if h.asksForSizes() && len(files) > 0 {
		files[0].readSizes(h.ctx, files)
	}
	return out
}
