package snapshot

import (
	"context"
	"time"
)

const (
	// copiedAfter is how much later than its commit says a commit file may be
	// modified. A commit takes as long as it takes, and clocks differ.
	copiedAfter = time.Hour
	// copiedLines are the lines that are searched for what a commit says.
	copiedLines = 1000
)

// checkCopied warns, once, if the times of commits are those of a copy: a plain
// cp, a download or a checkout of git gives all files the time at which it ran,
// and travel by time then leads to none of the versions or to the last one.
func (n *incarnation) checkCopied(ctx context.Context, t *timeline) {
	n.mu.Lock()
	known := n.copyChecked
	n.copyChecked = true
	n.mu.Unlock()
	commits := t.listing.commits.all
	if known || t.from != noInCommit || len(commits) == 0 {
		return
	}
	// A copy that was written to has a newest commit with its own time.
	for _, c := range []commitFile{commits[0], commits[len(commits)-1]} {
		info, err := n.table.commitInfoWithin(ctx, c.version, copiedLines)
		if err != nil || info == nil {
			continue
		}
		said, ok := info.Timestamp()
		if late := time.Duration(c.info.ModTime-said) * time.Millisecond; !ok || late < copiedAfter {
			continue
		}
		n.table.log.Warn("commit files are not of the time of their commits; the table looks copied", "op", "travel",
			"table", n.table.name, "version", c.version, "committed", FormatTime(time.UnixMilli(said)),
			"modified", FormatTime(time.UnixMilli(c.info.ModTime)),
			"hint", "copy with cp -p or rsync -t, or set delta.enableInCommitTimestamps before you copy")
		return
	}
}
