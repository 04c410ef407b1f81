package snapshot

// Incarnation identifies the table that is at the path now: the result is
// equal, by ==, as long as the table was not deleted or made again, and nil
// while there is none. It tells those who do not call Refresh themselves what
// [Event.Recreated] tells its caller.
func (t *Table) Incarnation() any {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.life == nil {
		return nil
	}
	return t.life
}

// Incarnation identifies the table that the snapshot is of, as
// [Table.Incarnation] does.
func (s *Snapshot) Incarnation() any { return s.life }
