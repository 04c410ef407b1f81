package fsnode

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestInterruptEndsOnlyWhatLasts(t *testing.T) {
	interrupted := make(chan struct{})
	close(interrupted)
	quick := &request{Context: context.Background(), interrupt: interrupted, grace: time.Hour}
	if err := quick.Err(); err != nil {
		t.Errorf("a request just interrupted ends with %v", err)
	}
	select {
	case <-quick.Done():
		t.Error("it is done")
	default:
	}
	quick.end()

	slow := &request{Context: context.Background(), interrupt: interrupted}
	<-slow.Done()
	if err := slow.Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("a request interrupted long ago goes on: %v", err)
	}
	slow.end()
}

func TestRequestEndsWithTheMount(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &request{Context: ctx, interrupt: make(chan struct{}), grace: time.Hour}
	defer r.end()
	done := r.Done()
	cancel()
	<-done
	if err := r.Err(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestInterruptOfTheNextRequestDoesNotReachAnOldOne(t *testing.T) {
	interrupt := make(chan struct{}) // go-fuse uses it for one request after the other
	old := &request{Context: context.Background(), interrupt: interrupt}
	done := old.Done()
	old.end()
	close(interrupt)
	if err := old.Err(); err != nil {
		t.Errorf("the old request: %v", err)
	}
	next := &request{Context: context.Background(), interrupt: interrupt}
	<-next.Done() // the watcher of the old one had its chance too
	select {
	case <-done:
		t.Error("the old request is done")
	default:
	}
	next.end()
}
