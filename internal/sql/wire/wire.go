// Package wire is how the two processes of the SQL engine speak: frames over a
// stream socket, some with open files.
package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// Kind is what a frame says.
type Kind byte

// The kinds of frames.
const (
	// From who asks.
	Query Kind = 'Q' // JSON: sql.Query
	File  Kind = 'F' // JSON: sql.File, with the file
	Last  Kind = 'L' // there are no more files

	// From the engine.
	Data Kind = 'D' // part of the result
	Next Kind = 'N' // a file has been read
	End  Kind = 'E' // the result is complete
	Fail Kind = 'X' // JSON: Failure; nothing follows
)

// Failure is why a query gave up.
type Failure struct {
	File   string `json:"file,omitempty"`
	Column string `json:"column,omitempty"`
	Reason string `json:"reason"`
}

// maxFrame bounds a frame: a broken peer must not take all memory.
const maxFrame = 64 << 20

const headerSize = 5

// Conn is one end of a conversation. One goroutine may read while another one
// writes.
type Conn struct {
	c *net.UnixConn
	// files came with the frames read so far.
	files []int
}

// NewConn takes a stream socket over.
func NewConn(socket *os.File) (*Conn, error) {
	defer socket.Close()
	c, err := net.FileConn(socket)
	if err != nil {
		return nil, err
	}
	unix, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errors.New("not a Unix socket")
	}
	return &Conn{c: unix}, nil
}

// Pair makes two connected sockets.
func Pair() (a, b *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket"), nil
}

// Close ends the conversation for both.
func (c *Conn) Close() error {
	for _, fd := range c.files {
		syscall.Close(fd)
	}
	c.files = nil
	return c.c.Close()
}

// Abort makes a read or write under way, and every later one, fail.
func (c *Conn) Abort() { c.c.Close() }

// Write writes a frame.
func (c *Conn) Write(kind Kind, body []byte, files ...*os.File) error {
	frame := make([]byte, headerSize, headerSize+len(body))
	PutHeader(frame, kind, len(body))
	return c.WriteFrame(append(frame, body...), files...)
}

// WriteJSON writes a frame whose body is v.
func (c *Conn) WriteJSON(kind Kind, v any, files ...*os.File) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.Write(kind, body, files...)
}

// HeaderSize is how many bytes PutHeader fills.
const HeaderSize = headerSize

// PutHeader fills in the header of a frame, so that a body need not be copied
// behind it.
func PutHeader(frame []byte, kind Kind, body int) {
	frame[0] = byte(kind)
	binary.LittleEndian.PutUint32(frame[1:], uint32(body))
}

// WriteFrame writes a frame that has its header already.
func (c *Conn) WriteFrame(frame []byte, files ...*os.File) error {
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		n, _, err := c.c.WriteMsgUnix(frame, syscall.UnixRights(fds...), nil)
		if err != nil {
			return err
		}
		frame = frame[n:]
	}
	_, err := c.c.Write(frame)
	return err
}

// ReadHeader reads what a frame is and how long its body is, which must be read
// next. io.EOF at the end of the conversation.
func (c *Conn) ReadHeader() (Kind, int, error) {
	var head [headerSize]byte
	oob := make([]byte, syscall.CmsgSpace(4))
	for n := 0; n < headerSize; {
		m, oobn, _, _, err := c.c.ReadMsgUnix(head[n:], oob)
		if oobn > 0 {
			c.keep(oob[:oobn])
		}
		switch {
		case err != nil && n > 0 && errors.Is(err, io.EOF):
			return 0, 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, 0, err
		}
		n += m
	}
	size := binary.LittleEndian.Uint32(head[1:])
	if size > maxFrame {
		return 0, 0, fmt.Errorf("a frame of %d bytes", size)
	}
	return Kind(head[0]), int(size), nil
}

func (c *Conn) keep(oob []byte) {
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return
	}
	for i := range messages {
		if fds, err := syscall.ParseUnixRights(&messages[i]); err == nil {
			c.files = append(c.files, fds...)
		}
	}
}

// ReadBody reads the next part of a body.
func (c *Conn) ReadBody(p []byte) (int, error) {
	n, err := c.c.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Read reads a whole frame.
func (c *Conn) Read() (Kind, []byte, error) {
	kind, size, err := c.ReadHeader()
	if err != nil {
		return 0, nil, err
	}
	body := make([]byte, size)
	for n := 0; n < size; {
		m, err := c.ReadBody(body[n:])
		if err != nil {
			return 0, nil, err
		}
		n += m
	}
	return kind, body, nil
}

// TakeFile returns the file that came with the frame read last.
func (c *Conn) TakeFile() (*os.File, error) {
	if len(c.files) == 0 {
		return nil, errors.New("no file came with the frame")
	}
	fd := c.files[0]
	c.files = c.files[1:]
	return os.NewFile(uintptr(fd), "passed"), nil
}
