package main

import (
	"slices"
	"time"
)

// contender is one of the ways that are compared.
type contender struct {
	name string
	// once measures once.
	once func() (float64, error)
}

// alternately measures the contenders in turn, run by run, each run beginning
// with another one, and returns their medians.
func alternately(runs int, contenders ...contender) ([]float64, error) {
	all := make([][]float64, len(contenders))
	for run := range runs {
		for turn := range contenders {
			i := (run + turn) % len(contenders)
			v, err := contenders[i].once()
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], v)
		}
	}
	out := make([]float64, len(contenders))
	for i, values := range all {
		out[i] = median(values)
	}
	return out, nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func inMilliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}

// took measures fn in milliseconds.
func took(fn func() error) (float64, error) {
	start := time.Now()
	err := fn()
	return inMilliseconds(time.Since(start)), err
}
