//! The host's clock and time zone.

use jiff::{Timestamp, tz};

use crate::value::{Map, object};

use super::{Group, Sections, set};

pub const GROUP: Group = Group { name: "date_time", parts_of: &["min"], needs: &[], script: SCRIPT, parse };

// the last line of a zone's file (tzfile(5)) is a rule such as CET-1CEST,M3.5.0,M10.5.0/3: it has both names
const SCRIPT: &str = r#"
section date_time
date '+now=%s %N %z %Z'
trimtab_zone=/etc/localtime
case ${TZ-} in
    "") ;;
    :/* | /*) trimtab_zone=${TZ#:} ;;
    *) [ ! -f "/usr/share/zoneinfo/${TZ#:}" ] || trimtab_zone=/usr/share/zoneinfo/${TZ#:}; printf 'rule=%s\n' "$TZ" ;;
esac
if [ -r "$trimtab_zone" ]; then
    while IFS= read -r trimtab_line; do :; done <"$trimtab_zone"
    while IFS= read -r trimtab_line || [ -n "$trimtab_line" ]; do trimtab_rule=$trimtab_line; done <"$trimtab_zone"
    printf 'rule=%s\n' "$trimtab_rule"
fi
"#;

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    let words: Vec<&str> = sections.value("date_time", "now").unwrap_or_default().split(' ').collect();
    let &[seconds, nanoseconds, offset, zone] = &words[..] else { return };
    let Ok(epoch) = seconds.parse::<i64>() else { return };
    // a small date(1) knows no nanoseconds
    let nanoseconds = nanoseconds.parse::<i32>().unwrap_or(0);
    let (Some(offset_seconds), Ok(time)) = (offset_seconds(offset), Timestamp::new(epoch, nanoseconds)) else { return };
    let Ok(fixed) = tz::Offset::from_seconds(offset_seconds) else { return };
    let local = time.to_zoned_datetime(fixed.to_time_zone());
    let utc = time.to_zoned_datetime(tz::TimeZone::UTC);
    let of_local = |format: &str| crate::value::Value::from(local.strftime(format).to_string());
    let of_utc = |format: &str| crate::value::Value::from(utc.strftime(format).to_string());
    let rule = sections.text("date_time").lines().filter_map(|line| line.strip_prefix("rule=")).next_back();
    let summer = rule.and_then(summer_name).unwrap_or(zone);
    set(
        facts,
        "date_time",
        object([
            ("year", of_local("%Y")),
            ("month", of_local("%m")),
            ("weekday", of_local("%A")),
            ("weekday_number", of_local("%w")),
            ("weeknumber", of_local("%W")),
            ("day", of_local("%d")),
            ("hour", of_local("%H")),
            ("minute", of_local("%M")),
            ("second", of_local("%S")),
            ("epoch", epoch.to_string().into()),
            ("epoch_int", epoch.to_string().into()),
            ("date", of_local("%Y-%m-%d")),
            ("time", of_local("%H:%M:%S")),
            ("iso8601_micro", of_utc("%Y-%m-%dT%H:%M:%S%.6fZ")),
            ("iso8601", of_utc("%Y-%m-%dT%H:%M:%SZ")),
            ("iso8601_basic", of_local("%Y%m%dT%H%M%S%6f")),
            ("iso8601_basic_short", of_local("%Y%m%dT%H%M%S")),
            ("tz", zone.into()),
            ("tz_dst", summer.into()),
            ("tz_offset", offset.into()),
        ]),
    );
}

/// Seconds east of Greenwich in `+0530`.
fn offset_seconds(text: &str) -> Option<i32> {
    let sign = match text.chars().next()? {
        '-' => -1,
        _ => 1,
    };
    let digits: i32 = text.trim_start_matches(['+', '-']).parse().ok()?;
    Some(sign * (digits / 100 * 3600 + digits % 100 * 60))
}

/// The name of the summer time in a rule (`CET-1CEST,…`); the name of the zone if it has none (`CST-8`).
fn summer_name(rule: &str) -> Option<&str> {
    let (standard, rest) = leading_name(rule)?;
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || "+-:".contains(c));
    Some(leading_name(rest).map_or(standard, |(summer, _)| summer))
}

fn leading_name(rule: &str) -> Option<(&str, &str)> {
    if let Some(rest) = rule.strip_prefix('<') {
        return rest.split_once('>');
    }
    let end = rule.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rule.len());
    (end >= 3).then(|| rule.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_shown_in_local_and_universal_time() {
        let output = "\u{1e}date_time\nnow=1700000000 250000000 +0800 CST\nrule=CST-8\n";
        let mut facts = Map::new();
        parse(&Sections::new(output), &mut facts);
        let time = facts["ansible_date_time"].clone();
        let of = |name: &str| time.get(name).unwrap().to_string();
        let shown =
            ["date", "time", "weekday", "weekday_number", "weeknumber", "iso8601_micro", "iso8601_basic", "tz_dst"];
        assert_eq!(
            shown.map(of),
            [
                "2023-11-15",
                "06:13:20",
                "Wednesday",
                "3",
                "46",
                "2023-11-14T22:13:20.250000Z",
                "20231115T061320250000",
                "CST"
            ]
        );
    }

    #[test]
    fn rules_name_the_summer_time() {
        let cases = [
            ("CST-8", "CST"),
            ("CET-1CEST,M3.5.0,M10.5.0/3", "CEST"),
            ("EST5EDT,M3.2.0,M11.1.0", "EDT"),
            ("<+0530>-5:30", "+0530"),
            ("<-03>3<-02>,M3.5.0/-2,M10.5.0/-1", "-02"),
        ];
        for (rule, name) in cases {
            assert_eq!(summer_name(rule), Some(name), "{rule}");
        }
        assert_eq!(summer_name("\u{fffd}"), None);
        assert_eq!(offset_seconds("-0330"), Some(-12_600));
    }
}
