package parquetchunk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

var (
	errUnpack = errors.New("the page does not unpack to the size that its header says")
	errCodec  = errors.New("unknown compression codec")
)

// unpacker unpacks pages of one codec. Its decoders are made when first needed.
type unpacker struct {
	codec  format.CompressionCodec
	gzip   *gzip.Reader
	zstd   *zstd.Decoder
	brotli *brotli.Reader
}

// densest is how many bytes a byte of each codec can stand for at most, where
// there is a limit.
var densest = map[format.CompressionCodec]int{
	format.Snappy: 64, format.Gzip: 1040, format.Zstd: 128 << 10, format.Lz4Raw: 256, format.Lz4: 256,
}

// supported returns errCodec for what unpack cannot do.
func (u *unpacker) supported() error {
	switch u.codec {
	case format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd, format.Lz4Raw, format.Lz4:
		return nil
	}
	return fmt.Errorf("%w: %v", errCodec, u.codec)
}

// unpack appends to dst what src unpacks to: exactly size bytes, or it is an
// error.
func (u *unpacker) unpack(dst, src []byte, size int) ([]byte, error) {
	if most, ok := densest[u.codec]; ok && size/most > len(src) {
		return nil, errUnpack
	}
	if size == 0 && u.codec != format.Uncompressed {
		// Writers leave out, or do not, what stands for nothing.
		return dst, nil
	}
	have := len(dst)
	if u.codec != format.Brotli {
		dst = grow(dst, size)
	}
	room := dst[have:cap(dst)]
	var err error
	switch u.codec {
	case format.Uncompressed:
		dst = append(dst, src...)
	case format.Snappy:
		if n, _ := snappy.DecodedLen(src); n != size {
			return nil, errUnpack
		}
		_, err = snappy.Decode(room[:size], src)
		dst = dst[:have+size]
	case format.Lz4Raw:
		var n int
		n, err = lz4.UncompressBlock(src, room[:size])
		dst = dst[:have+n]
	case format.Lz4:
		var n int
		if n, err = unpackHadoop(room[:size], src); err != nil || n != size {
			// There are writers that meant LZ4_RAW.
			n, err = lz4.UncompressBlock(src, room[:size])
		}
		dst = dst[:have+n]
	case format.Zstd:
		dst, err = u.unpackZstd(dst, src, size)
	case format.Gzip:
		if err = u.openGzip(src); err == nil {
			dst, err = readAll(dst, u.gzip, size)
		}
	case format.Brotli:
		if u.brotli == nil {
			u.brotli = brotli.NewReader(nil)
		}
		if err = u.brotli.Reset(bytes.NewReader(src)); err == nil {
			dst, err = readAll(dst, u.brotli, size)
		}
	default:
		err = u.supported()
	}
	if err != nil {
		return nil, err
	}
	if len(dst)-have != size {
		return nil, errUnpack
	}
	return dst, nil
}

// unpackHadoop unpacks LZ4 as Hadoop frames it: blocks of a size that precedes
// them, each in parts whose packed size precedes them, both big-endian.
func unpackHadoop(dst, src []byte) (n int, err error) {
	var block int
	for len(src) > 0 {
		if len(src) < 4 {
			return 0, errUnpack
		}
		size := binary.BigEndian.Uint32(src)
		src = src[4:]
		if block == 0 {
			if uint64(size) > uint64(len(dst)-n) {
				return 0, errUnpack
			}
			block = int(size)
			continue
		}
		if uint64(size) > uint64(len(src)) {
			return 0, errUnpack
		}
		part, err := lz4.UncompressBlock(src[:size], dst[n:n+block])
		if err != nil {
			return 0, err
		}
		src, n, block = src[size:], n+part, block-part
	}
	return n, nil
}

func (u *unpacker) unpackZstd(dst, src []byte, size int) (_ []byte, err error) {
	if u.zstd == nil {
		u.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return nil, err
		}
	}
	have := len(dst)
	return u.zstd.DecodeAll(src, dst[:have:have+size])
}

func (u *unpacker) openGzip(src []byte) (err error) {
	if u.gzip == nil {
		u.gzip, err = gzip.NewReader(bytes.NewReader(src))
		return err
	}
	return u.gzip.Reset(bytes.NewReader(src))
}

func (u *unpacker) close() {
	if u.zstd != nil {
		u.zstd.Close()
	}
}

// readAll appends size bytes of r to dst, taking memory as they come.
func readAll(dst []byte, r io.Reader, size int) ([]byte, error) {
	end := len(dst) + size
	for len(dst) < end {
		if len(dst) == cap(dst) {
			dst = grow(dst, min(end-len(dst), max(len(dst), 64<<10)))
		}
		n, err := r.Read(dst[len(dst):min(end, cap(dst))])
		dst = dst[:len(dst)+n]
		if err == io.EOF && len(dst) < end {
			return nil, errUnpack
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
	}
	var more [1]byte
	if n, err := r.Read(more[:]); n > 0 {
		return nil, errUnpack
	} else if err != nil && err != io.EOF {
		return nil, err
	}
	return dst, nil
}

// grow makes room for n bytes more.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	g := make([]byte, len(b), len(b)+n+n/8)
	copy(g, b)
	return g
}
