package snapshot

import (
	"errors"
	"testing"
	"time"
	_ "time/tzdata" // for machines without zone files
)

func TestParseTimeSpellings(t *testing.T) {
	berlin := time.FixedZone("CEST", 2*60*60)
	for text, want := range map[string]string{
		"2024-05-01":                          "2024-04-30T22:00:00Z",
		"2024-02-29":                          "2024-02-28T22:00:00Z",
		"2024-05-01 10:11:12":                 "2024-05-01T08:11:12Z",
		"2024-05-01T10:11":                    "2024-05-01T08:11:00Z",
		"2024-05-01t10:11:12z":                "2024-05-01T10:11:12Z",
		"2024-05-01T10:11:12Z":                "2024-05-01T10:11:12Z",
		"2024-05-01T10-11-12":                 "2024-05-01T08:11:12Z",
		"2024-05-01T10-11":                    "2024-05-01T08:11:00Z",
		"2024-05-01T10-11-12.345Z":            "2024-05-01T10:11:12.345Z",
		"2024-05-01T10:11:12.3":               "2024-05-01T08:11:12.3Z",
		"2024-05-01T10:11:12,345678901Z":      "2024-05-01T10:11:12.345678901Z",
		"2024-05-01T10:11:12+02:00":           "2024-05-01T08:11:12Z",
		"2024-05-01T10:11:12+0200":            "2024-05-01T08:11:12Z",
		"2024-05-01T10:11:12+02":              "2024-05-01T08:11:12Z",
		"2024-05-01T10:11:12-07":              "2024-05-01T17:11:12Z",
		"2024-05-01T10:11-0230":               "2024-05-01T12:41:00Z",
		"2024-05-01T10-11-12-02-00":           "2024-05-01T12:11:12Z",
		"2024-05-01T10-11-12.5-0200":          "2024-05-01T12:11:12.5Z",
		"2024-05-01T10-11-12+02-30":           "2024-05-01T07:41:12Z",
		"2024-05-01 10:11:12.000001 ":         "",
		"20240501101112345":                   "2024-05-01T08:11:12.345Z",
		"GMT-2024.01.31-12.00.00":             "2024-01-31T12:00:00Z",
		"0001-01-01T00:00:00Z":                "0001-01-01T00:00:00Z",
		"":                                    "",
		"v7":                                  "",
		"2024":                                "",
		"2024-5-1":                            "",
		"2023-02-29":                          "",
		"2024-13-01":                          "",
		"2024-00-10":                          "",
		"2024-05-01T":                         "",
		"2024-05-01T10":                       "",
		"2024-05-01T24:00:00":                 "",
		"2024-05-01T10:60:00":                 "",
		"2024-05-01T10:11:60":                 "",
		"2024-05-01T10:11-12":                 "2024-05-01T22:11:00Z",
		"2024-05-01T10-11:12":                 "",
		"2024-05-01T10:11:12.":                "",
		"2024-05-01T10:11:12.1234567890":      "",
		"2024-05-01T10:11:12+19:00":           "",
		"2024-05-01T10:11:12+02:60":           "",
		"2024-05-01T10-11-12-02":              "",
		"2024-05-01T10:11:12Zx":               "",
		"2024050110111234":                    "",
		"202405011011123456":                  "",
		"GMT-2024.01.31-12.00":                "",
		"2024-05-01T10:11:12+02:00 [Etc/UTC]": "",
		"2024-05-01T10:11:1２":                 "",
	} {
		got, err := ParseTime(text, berlin)
		if want == "" {
			if !errors.Is(err, ErrTimestamp) {
				t.Errorf("%q parsed to %v, %v", text, got, err)
			}
			continue
		}
		if err != nil || got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%q is %v (%v), want %s", text, got.UTC().Format(time.RFC3339Nano), err, want)
		}
	}
}

func TestParseTimeTakesTheLocationsRules(t *testing.T) {
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	winter, _ := ParseTime("2024-01-15", paris)
	summer, _ := ParseTime("2024-07-15", paris)
	if winter.UTC().Hour() != 23 || summer.UTC().Hour() != 22 {
		t.Errorf("midnights are %v and %v", winter.UTC(), summer.UTC())
	}
}

func TestFormatTimeIsParsedBack(t *testing.T) {
	at := time.Date(2024, 5, 1, 12, 11, 12, 345_999_999, time.FixedZone("", 7200))
	text := FormatTime(at)
	if text != "2024-05-01T10-11-12.345Z" {
		t.Fatalf("formatted as %s", text)
	}
	back, err := ParseTime(text, time.FixedZone("", -3600))
	if err != nil || !back.Equal(at.Truncate(time.Millisecond)) {
		t.Errorf("parsed back as %v, %v", back, err)
	}
}
