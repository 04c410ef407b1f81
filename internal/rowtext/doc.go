// Package rowtext writes values as text: fields of CSV (RFC 4180) and values
// of JSON. It is the one place that decides how a value is spelled.
//
//   - Numbers are exact: integers and decimals with all their digits, floats as
//     the shortest decimal that reads back as the same number, with a point or
//     an exponent in it. What JSON has no number for is a string there: "NaN",
//     "Infinity", "-Infinity".
//   - Dates and timestamps follow ISO 8601 in the proleptic Gregorian calendar,
//     always with six digits of fraction; a timestamp ends in Z, one without a
//     time zone does not. Years have at least four digits; those before 0000
//     have a minus, those after 9999 a plus in front.
//   - Binary is base64 (RFC 4648, padded).
//
// Functions append to a slice and return it, as those of strconv do.
package rowtext
