package rowtext

import "encoding/base64"

// AppendCSV appends a field of CSV. The empty text is quoted, so that it is not
// taken for null, which is nothing at all.
func AppendCSV[T string | []byte](dst []byte, text T) []byte {
	if !needsQuotes(text) {
		return append(dst, text...)
	}
	dst = append(dst, '"')
	from := 0
	for i := range len(text) {
		if text[i] == '"' {
			dst = append(append(dst, text[from:i]...), '"')
			from = i
		}
	}
	return append(append(dst, text[from:]...), '"')
}

func needsQuotes[T string | []byte](text T) bool {
	for i := range len(text) {
		switch text[i] {
		case ',', '"', '\r', '\n':
			return true
		}
	}
	return len(text) == 0
}

// AppendJSON appends a JSON string of text that is UTF-8.
func AppendJSON[T string | []byte](dst []byte, text T) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := range len(text) {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(dst, text[from:]...), '"')
}

// AppendBase64 appends binary data.
func AppendBase64(dst, data []byte) []byte { return base64.StdEncoding.AppendEncode(dst, data) }
