package deletionvector

import (
	"encoding/binary"
	"math"
	"strings"
)

// alphabet is that of Z85 (rfc.zeromq.org/spec/32): a digit's value is its
// place.
const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

// decodeZ85 turns each five digits of base 85 into four bytes, the most
// significant first.
func decodeZ85(text string) ([]byte, error) {
	if len(text)%5 != 0 {
		return nil, broken("%d characters are no Z85 text", len(text))
	}
	out := make([]byte, 0, len(text)/5*4)
	for len(text) > 0 {
		var word uint64
		for i := range 5 {
			digit := strings.IndexByte(alphabet, text[i])
			if digit < 0 {
				return nil, broken("the Z85 text holds a character that is no digit")
			}
			word = word*85 + uint64(digit)
		}
		if word > math.MaxUint32 {
			return nil, broken("the Z85 text holds a number that is too large")
		}
		out = binary.BigEndian.AppendUint32(out, uint32(word))
		text = text[5:]
	}
	return out, nil
}
