package writer

import (
	"context"
	"errors"

	"github.com/deltafs/deltafs/snapshot"
)

// maxWinners is how many commits are kept.
const maxWinners = 32

// winners keeps the newest commits of a table, for the members of a group are
// all rebased on the same ones, and most of those are this mount's own.
type winners struct {
	life      any
	byVersion map[int64]*winner
}

// keep adds a commit of an incarnation, and drops what is older.
func (k *winners) keep(life any, w *winner) {
	if k.byVersion == nil || k.life != life {
		k.life, k.byVersion = life, map[int64]*winner{}
	}
	k.byVersion[w.version] = w
	if len(k.byVersion) > maxWinners {
		for v := range k.byVersion {
			if v <= w.version-maxWinners {
				delete(k.byVersion, v)
			}
		}
	}
}

func (k *winners) find(life any, v int64) *winner {
	if k.life != life {
		return nil
	}
	return k.byVersion[v]
}

// winner is the commit that has a version.
func (c *committer) winner(ctx context.Context, v int64) (*winner, error) {
	life := c.log.Incarnation()
	if w := c.winners.find(life, v); w != nil {
		return w, nil
	}
	for n := 1; ; n++ {
		actions, err := c.log.ReadCommit(ctx, v)
		if err == nil {
			w := newWinner(v, actions, c.log.Store().Root())
			c.winners.keep(life, w)
			return w, nil
		}
		if n == maxReads || !errors.Is(err, snapshot.ErrCorrupt) {
			return nil, err
		}
		if err := c.wait(ctx, n); err != nil {
			return nil, err
		}
	}
}
