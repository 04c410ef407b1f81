package snapshot

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// copyBlock is how much of a served file is held while it is copied.
const copyBlock = 1 << 20

// WriteContent writes what r serves to an empty local file. Ranges that lie on
// the disk are copied there, and share their blocks where the file system can do
// that; zeros become holes.
func WriteContent(ctx context.Context, r Reader, out *os.File) error {
	size := r.Content().Size
	if err := out.Truncate(size); err != nil {
		return err
	}
	c := contentCopy{ctx: ctx, r: r, out: out}
	var off int64
	for _, s := range r.Content().Segments {
		if err := c.segment(off, s); err != nil {
			return err
		}
		off += s.Length
	}
	return nil
}

// contentCopy is a copy being made.
type contentCopy struct {
	ctx   context.Context
	r     Reader
	out   *os.File
	block []byte
}

// segment copies a segment that begins at off.
func (c *contentCopy) segment(off int64, s Segment) error {
	done := int64(0)
	if s.Raw {
		done = c.onDisk(off, s.Length)
	}
	if c.block == nil && done < s.Length {
		c.block = make([]byte, copyBlock)
	}
	for done < s.Length {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		block := c.block[:min(copyBlock, s.Length-done)]
		n, err := c.r.ReadAtContext(c.ctx, block, off+done)
		if n < len(block) && (err == nil || errors.Is(err, io.EOF)) {
			err = io.ErrUnexpectedEOF
		}
		if n < len(block) {
			return err
		}
		if !isZero(block) {
			if _, err := c.out.WriteAt(block, off+done); err != nil {
				return err
			}
		}
		done += int64(n)
	}
	return nil
}

// onDisk copies a raw range without reading it, as far as that goes.
func (c *contentCopy) onDisk(off, length int64) int64 {
	from, at := c.r.RawRange(off, length)
	if from == nil {
		return 0
	}
	done := int64(0)
	for done < length && c.ctx.Err() == nil {
		in, to := at+done, off+done
		// A call that cannot be interrupted should not take long.
		const most = 64 << 20
		n, err := unix.CopyFileRange(int(from.Fd()), &in, int(c.out.Fd()), &to, int(min(most, length-done)), 0)
		if err != nil || n <= 0 {
			break
		}
		done += int64(n)
	}
	return done
}

// isZero reports whether all bytes are zero.
func isZero(b []byte) bool {
	return len(b) > 0 && b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1])
}

// duplicate opens a file again under a descriptor of its own.
func duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
