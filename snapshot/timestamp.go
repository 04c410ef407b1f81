package snapshot

import (
	"errors"
	"strings"
	"time"

	"github.com/deltafs/deltafs/internal/fault"
)

// ErrTimestamp: the text is no spelling of a timestamp.
var ErrTimestamp = errors.New("not a timestamp")

// maxOffset is the largest zone offset that java.time, and so Spark, accepts.
const maxOffset = 18 * time.Hour

// FormatTime is the listed spelling: UTC, milliseconds, no colons, because
// Hadoop paths and SMB shares cannot hold any.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15-04-05.000Z") }

// ParseTime parses every spelling of a timestamp that may follow "@" in a
// directory name; a spelling without a zone is taken in loc:
//
//	2024-05-01                      midnight in loc
//	2024-05-01 10:11[:12[.345]]     with T, t or a blank, 1 to 9 digits of fraction
//	2024-05-01T10-11-12.345         the same without colons
//	2024-05-01T10:11:12+02:00       with Z, z, +02:00, +0200, +02, -02-00
//	20240501101112345               Spark's 17 digits yyyyMMddHHmmssSSS
//	GMT-2024.05.01-10.11.12         Windows shadow copies, always UTC
func ParseTime(text string, loc *time.Location) (time.Time, error) {
	t, _, err := parseTime(text, loc)
	return t, err
}

// parseTime also says whether the text names its zone.
func parseTime(text string, loc *time.Location) (t time.Time, zoned bool, err error) {
	s := timeScanner{rest: text}
	c, ok := s.clock(loc)
	if !ok || s.rest != "" {
		return time.Time{}, false, fault.New(ErrTimestamp, "%q is not a timestamp", text).
			WithHint("write 2024-05-01, 2024-05-01T10:11:12 or 2024-05-01T10-11-12.345Z")
	}
	t = time.Date(c.year, time.Month(c.month), c.day, c.hour, c.minute, c.second, c.nanos, c.loc)
	return t, c.zoned, nil
}

// clock holds what a spelling says.
type clock struct {
	year, month, day, hour, minute, second, nanos int

	loc   *time.Location
	zoned bool
}

// valid checks the ranges; time.Date would roll 30 February over silently.
func (c *clock) valid() bool {
	if c.month < 1 || c.month > 12 || c.day < 1 || c.hour > 23 || c.minute > 59 || c.second > 59 {
		return false
	}
	return c.day <= time.Date(c.year, time.Month(c.month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// timeScanner eats a timestamp from the left.
type timeScanner struct{ rest string }

func (s *timeScanner) clock(loc *time.Location) (clock, bool) {
	c := clock{loc: loc}
	var ok bool
	switch {
	case isDigits(s.rest) && len(s.rest) == len("yyyyMMddHHmmssSSS"):
		ok = s.compact(&c)
	case s.eat("GMT-"):
		c.loc, c.zoned = time.UTC, true
		ok = s.date(&c, ".") && s.eat("-") && s.hms(&c, ".")
	default:
		if ok = s.date(&c, "-"); ok && s.rest != "" {
			ok = s.timeOfDay(&c)
		}
	}
	return c, ok && c.valid()
}

func (s *timeScanner) compact(c *clock) bool {
	var millis int
	ok := s.number(4, &c.year) && s.number(2, &c.month) && s.number(2, &c.day) &&
		s.number(2, &c.hour) && s.number(2, &c.minute) && s.number(2, &c.second) && s.number(3, &millis)
	c.nanos = millis * int(time.Millisecond)
	return ok
}

func (s *timeScanner) date(c *clock, sep string) bool {
	return s.number(4, &c.year) && s.eat(sep) && s.number(2, &c.month) && s.eat(sep) && s.number(2, &c.day)
}

func (s *timeScanner) hms(c *clock, sep string) bool {
	return s.number(2, &c.hour) && s.eat(sep) && s.number(2, &c.minute) && s.eat(sep) && s.number(2, &c.second)
}

func (s *timeScanner) timeOfDay(c *clock) bool {
	if !s.eat("T") && !s.eat("t") && !s.eat(" ") {
		return false
	}
	if !s.number(2, &c.hour) || s.rest == "" {
		return false
	}
	sep := s.rest[:1]
	if (sep != ":" && sep != "-") || !s.eat(sep) || !s.number(2, &c.minute) {
		return false
	}
	if strings.HasPrefix(s.rest, sep) {
		if !s.eat(sep) || !s.number(2, &c.second) || !s.fraction(c) {
			return false
		}
	}
	return s.rest == "" || s.zone(c, sep)
}

func (s *timeScanner) fraction(c *clock) bool {
	if !s.eat(".") && !s.eat(",") {
		return true
	}
	digits := 0
	for scale := int(100 * time.Millisecond); s.rest != "" && s.rest[0] >= '0' && s.rest[0] <= '9'; scale /= 10 {
		c.nanos += int(s.rest[0]-'0') * scale
		s.rest = s.rest[1:]
		digits++
	}
	return digits >= 1 && digits <= 9
}

// zone eats a zone. sep is what separated hours and minutes: where it was a
// dash, an offset of hours alone after a minus could be seconds, and is
// refused.
func (s *timeScanner) zone(c *clock, sep string) bool {
	c.zoned = true
	if s.eat("Z") || s.eat("z") {
		c.loc = time.UTC
		return true
	}
	sign := 1
	if s.eat("-") {
		sign = -1
	} else if !s.eat("+") {
		return false
	}
	var hours, minutes int
	if !s.number(2, &hours) {
		return false
	}
	if s.rest != "" {
		if !s.eat(":") {
			s.eat("-")
		}
		if !s.number(2, &minutes) {
			return false
		}
	} else if sign < 0 && sep == "-" {
		return false
	}
	offset := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if minutes > 59 || offset > maxOffset {
		return false
	}
	c.loc = time.FixedZone("", sign*int(offset/time.Second))
	return true
}

func (s *timeScanner) eat(text string) bool {
	rest, ok := strings.CutPrefix(s.rest, text)
	s.rest = rest
	return ok
}

// number eats exactly n digits.
func (s *timeScanner) number(n int, out *int) bool {
	if len(s.rest) < n || !isDigits(s.rest[:n]) {
		return false
	}
	*out = 0
	for i := range n {
		*out = *out*10 + int(s.rest[i]-'0')
	}
	s.rest = s.rest[n:]
	return true
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
