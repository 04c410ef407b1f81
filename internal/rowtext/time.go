package rowtext

const (
	microsPerSecond = 1_000_000
	microsPerDay    = 86_400 * microsPerSecond
)

// AppendDate appends the date that is so many days after 1970-01-01.
func AppendDate(dst []byte, days int64) []byte {
	year, month, day := civil(days)
	switch {
	case year < 0:
		dst = appendPadded(append(dst, '-'), uint64(-year), 4)
	case year > 9999:
		dst = appendPadded(append(dst, '+'), uint64(year), 4)
	default:
		dst = appendTwo(appendTwo(dst, year/100), year%100)
	}
	dst = appendTwo(append(dst, '-'), month)
	return appendTwo(append(dst, '-'), day)
}

// AppendTimestamp appends the time that is so many microseconds after
// 1970-01-01T00:00:00; utc puts the Z behind it.
func AppendTimestamp(dst []byte, micros int64, utc bool) []byte {
	days, rest := micros/microsPerDay, micros%microsPerDay
	if rest < 0 {
		days, rest = days-1, rest+microsPerDay
	}
	dst = append(AppendDate(dst, days), 'T')
	seconds := rest / microsPerSecond
	dst = append(appendTwo(dst, seconds/3600), ':')
	dst = append(appendTwo(dst, seconds/60%60), ':')
	dst = append(appendTwo(dst, seconds%60), '.')
	micros = rest % microsPerSecond
	dst = appendTwo(appendTwo(appendTwo(dst, micros/10_000), micros/100%100), micros%100)
	if utc {
		dst = append(dst, 'Z')
	}
	return dst
}

func appendTwo(dst []byte, v int64) []byte { return append(dst, byte('0'+v/10), byte('0'+v%10)) }

// civil is the date of a day in the proleptic Gregorian calendar, by years that
// begin in March (Howard Hinnant, chrono-compatible low-level date algorithms).
func civil(days int64) (year, month, day int64) {
	const daysPerEra, toEpoch = 146_097, 719_468
	days += toEpoch
	era := days / daysPerEra
	if days < 0 {
		era = (days - daysPerEra + 1) / daysPerEra
	}
	ofEra := days - era*daysPerEra
	yearOfEra := (ofEra - ofEra/1460 + ofEra/36_524 - ofEra/146_096) / 365
	ofYear := ofEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	shifted := (5*ofYear + 2) / 153
	day = ofYear - (153*shifted+2)/5 + 1
	month = shifted + 3
	year = yearOfEra + era*400
	if month > 12 {
		month, year = month-12, year+1
	}
	return year, month, day
}
