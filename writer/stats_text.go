package writer

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/deltafs/deltafs/internal/parquetfile"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	defaultStringPrefix = 32
	// legacyDays and legacyMicros are where the calendars part: before
	// 1582-10-15 the hybrid calendar of older Spark versions counts other days,
	// and before 1900 it may count other seconds.
	legacyDays   = -141427
	legacyMicros = -2208988800 * 1_000_000
)

// stringPrefix is delta.dataSkippingStringPrefixLength.
func stringPrefix(config map[string]string) int {
	if text, ok := property(config, "delta.dataSkippingStringPrefixLength"); ok {
		if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n > 0 {
			return n
		}
	}
	return defaultStringPrefix
}

// boundTexts are the bounds as JSON, "" for one that cannot be given.
func (w *statsWriter) boundTexts(p *snapshot.Primitive, s parquetfile.ColumnStats) (lo, hi string) {
	if s.Min == nil || s.Max == nil {
		return "", ""
	}
	switch p.Name {
	case "byte", "short", "integer", "long":
		return intText(s.Min), intText(s.Max)
	case "float":
		return floatText(s.Min, 32), floatText(s.Max, 32)
	case "double":
		return floatText(s.Min, 64), floatText(s.Max, 64)
	case "decimal":
		return decimalBound(s.Min, p.Scale), decimalBound(s.Max, p.Scale)
	case "string":
		return minString(s.Min, w.prefix), maxString(s.Max, w.prefix)
	case "date":
		if lo, ok := s.Min.(int64); ok && lo < legacyDays && w.hybridCalendar() {
			return "", ""
		}
		return dateText(s.Min), dateText(s.Max)
	case "timestamp", "timestamp_ntz":
		if lo, ok := s.Min.(int64); ok && lo < legacyMicros && w.hybridCalendar() {
			return "", ""
		}
		zone := ""
		if p.Name == "timestamp" {
			zone = "Z"
		}
		return timestampText(s.Min, false, zone), timestampText(s.Max, true, zone)
	}
	return "", ""
}

// hybridCalendar reports whether old dates in the file may be of the hybrid
// calendar: Spark and Hive wrote them so through parquet-mr, and not every
// version left a note.
func (w *statsWriter) hybridCalendar() bool {
	return strings.HasPrefix(w.file.CreatedBy, "parquet-mr")
}

func intText(v any) string {
	if n, ok := v.(int64); ok {
		return strconv.FormatInt(n, 10)
	}
	return ""
}

// floatText leaves out what JSON has no number for.
func floatText(v any, bits int) string {
	f, ok := v.(float64)
	if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
		return ""
	}
	text := strconv.FormatFloat(f, 'g', -1, bits)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

func decimalBound(v any, scale int) string {
	switch v := v.(type) {
	case int64:
		return decimalText(big.NewInt(v), scale)
	case *big.Int:
		return decimalText(v, scale)
	}
	return ""
}

// decimalText writes all digits of the scale, without an exponent.
func decimalText(unscaled *big.Int, scale int) string {
	digits := new(big.Int).Abs(unscaled).String()
	if scale > 0 {
		if missing := scale + 1 - len(digits); missing > 0 {
			digits = strings.Repeat("0", missing) + digits
		}
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if unscaled.Sign() < 0 {
		return "-" + digits
	}
	return digits
}

// dateText leaves out years that do not have four digits.
func dateText(v any) string {
	days, ok := v.(int64)
	if !ok {
		return ""
	}
	d := time.Unix(days*86400, 0).UTC()
	if d.Year() < 1 || d.Year() > 9999 {
		return ""
	}
	return quote(d.Format(time.DateOnly))
}

// timestampText writes milliseconds, as Spark does. It rounds a maximum up:
// Spark and the kernels allow for a maximum that was cut off, other readers do
// not, and for all of them a later one is safe.
func timestampText(v any, up bool, zone string) string {
	micros, ok := v.(int64)
	if !ok || micros > math.MaxInt64-1000 {
		return ""
	}
	if up {
		micros += 999
	}
	ms := micros / 1000
	if micros%1000 < 0 {
		ms--
	}
	d := time.UnixMilli(ms).UTC()
	if d.Year() < 1 || d.Year() > 9999 {
		return ""
	}
	return quote(d.Format("2006-01-02T15:04:05.000") + zone)
}

// minString is a prefix of the least string: at most limit UTF-16 units, with
// no surrogate pair split, and valid UTF-8.
func minString(v any, limit int) string {
	b, ok := v.([]byte)
	if !ok {
		return ""
	}
	return quote(string(b[:cut(b, limit)]))
}

// maxString is the greatest string or, if it is longer than limit UTF-16
// units, a prefix with a character behind it that is greater than what was cut
// off. There is none if the prefix grew to twice the limit, or if what counts
// is not valid UTF-8.
func maxString(v any, limit int) string {
	b, ok := v.([]byte)
	if !ok {
		return ""
	}
	n := cut(b, limit)
	if n == len(b) {
		return quote(string(b))
	}
	for units := limit; units <= 2*limit; units += 2 {
		next, size := utf8.DecodeRune(b[n:])
		switch {
		case next == utf8.RuneError && size <= 1:
			return ""
		case next < 0x7f:
			return quote(string(b[:n]) + "\x7f")
		case next < utf8.MaxRune:
			return quote(string(b[:n]) + string(utf8.MaxRune))
		}
		if n += size; n == len(b) {
			return quote(string(b))
		}
	}
	return ""
}

// cut returns how many bytes of b are its first limit UTF-16 units, at most;
// it stops at bytes that are not UTF-8.
func cut(b []byte, limit int) int {
	n, units := 0, 0
	for n < len(b) {
		r, size := utf8.DecodeRune(b[n:])
		if r == utf8.RuneError && size <= 1 {
			return n
		}
		if units++; r > 0xffff {
			units++
		}
		if units > limit {
			return n
		}
		n += size
	}
	return n
}

func quote(s string) string {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return ""
	}
	return string(b)
}
