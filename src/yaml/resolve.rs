//! The type of a plain scalar, as YAML 1.1 and PyYAML decide it from the text.
//!
//! Source: <https://yaml.org/type/>, with PyYAML's departures: `y` and `n` are text, a float needs a
//! point and a signed exponent.

use num_bigint::BigInt;
use num_traits::Num;

use crate::value::Value;

/// The type that a plain scalar has by its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Str,
    Null,
    Bool(bool),
    Int,
    Float,
    Timestamp,
    /// `<<`, the merge key.
    Merge,
    /// `=`, the default value; only allowed as a key.
    Default,
}

/// The type of plain `text`.
pub(super) fn kind(text: &str) -> Kind {
    let Some(first) = text.bytes().next() else { return Kind::Null };
    match first {
        b'~' | b'n' | b'N' | b'y' | b'Y' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' => word(text),
        b'<' if text == "<<" => Kind::Merge,
        b'=' if text == "=" => Kind::Default,
        b'0'..=b'9' | b'-' | b'+' | b'.' if is_float(text) => Kind::Float,
        b'0'..=b'9' | b'-' | b'+' if is_int(text) => Kind::Int,
        b'0'..=b'9' if timestamp(text).is_some() => Kind::Timestamp,
        _ => Kind::Str,
    }
}

fn word(text: &str) -> Kind {
    match text {
        "~" | "null" | "Null" | "NULL" => Kind::Null,
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Kind::Bool(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Kind::Bool(false),
        _ => Kind::Str,
    }
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['-', '+']).unwrap_or(text)
}

fn all(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    text.bytes().all(|byte| byte == b'_' || allowed(byte))
}

fn is_int(text: &str) -> bool {
    let digits = unsigned(text);
    let octal = |byte: u8| matches!(byte, b'0'..=b'7');
    if let Some(binary) = digits.strip_prefix("0b") {
        return !binary.is_empty() && all(binary, |byte| matches!(byte, b'0' | b'1'));
    }
    if let Some(hexadecimal) = digits.strip_prefix("0x") {
        return !hexadecimal.is_empty() && all(hexadecimal, |byte| byte.is_ascii_hexdigit());
    }
    if let Some(rest) = digits.strip_prefix('0') {
        return all(rest, octal);
    }
    match digits.split_once(':') {
        None => starts_with_digit(digits) && all(digits, |byte| byte.is_ascii_digit()),
        Some((first, rest)) => {
            starts_with_digit(first)
                && all(first, |byte| byte.is_ascii_digit())
                && rest.split(':').all(is_sexagesimal_digit)
        }
    }
}

fn starts_with_digit(text: &str) -> bool {
    text.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
}

/// One place of a base-60 number: 0 to 59, in one or two digits.
fn is_sexagesimal_digit(text: &str) -> bool {
    matches!(text.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9'])
}

fn is_float(text: &str) -> bool {
    let digits = unsigned(text);
    if matches!(digits, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let Some((whole, fraction)) = digits.split_once('.') else { return false };
    if whole.is_empty() {
        // PyYAML allows no sign before a leading point
        return digits.len() == text.len() && starts_with_digit(fraction) && is_fraction(fraction);
    }
    if let Some((first, rest)) = whole.split_once(':') {
        return starts_with_digit(first)
            && all(first, |byte| byte.is_ascii_digit())
            && rest.split(':').all(is_sexagesimal_digit)
            && all(fraction, |byte| byte.is_ascii_digit());
    }
    starts_with_digit(whole) && all(whole, |byte| byte.is_ascii_digit()) && is_fraction(fraction)
}

/// Digits, then perhaps an exponent, which must have a sign.
fn is_fraction(text: &str) -> bool {
    let (digits, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    all(digits, |byte| byte.is_ascii_digit())
        && exponent.is_none_or(|exponent| {
            let number = unsigned(exponent);
            number.len() < exponent.len() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
}

/// The number that an integer's text means; `Err` says why it means none.
pub(super) fn int(text: &str) -> Result<Value, String> {
    let plain = text.replace('_', "");
    let (negative, digits) = match plain.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, unsigned(&plain)),
    };
    let number = if let Some(binary) = digits.strip_prefix("0b") {
        BigInt::from_str_radix(binary, 2).ok()
    } else if let Some(hexadecimal) = digits.strip_prefix("0x") {
        BigInt::from_str_radix(hexadecimal, 16).ok()
    } else if digits.len() > 1 && digits.starts_with('0') {
        BigInt::from_str_radix(digits, 8).ok()
    } else {
        digits.split(':').try_fold(BigInt::ZERO, |sum, part| {
            let part = BigInt::from_str_radix(part, 10).ok().filter(|_| starts_with_digit(part))?;
            Some(sum * 60 + part)
        })
    };
    let number = number.ok_or_else(|| format!("`{text}` is no integer"))?;
    Ok(Value::big(if negative { -number } else { number }))
}

/// The number that a float's text means; `Err` says why it means none.
pub(super) fn float(text: &str) -> Result<Value, String> {
    let plain = text.replace('_', "").to_ascii_lowercase();
    let (sign, digits) = match plain.strip_prefix('-') {
        Some(digits) => (-1.0, digits),
        None => (1.0, unsigned(&plain)),
    };
    let number = match digits {
        ".inf" => Some(f64::INFINITY),
        ".nan" => Some(f64::NAN),
        _ => digits.split(':').try_fold(0.0, |sum: f64, part| {
            let part =
                part.parse::<f64>().ok().filter(|_| part.starts_with(|c: char| c.is_ascii_digit() || c == '.'))?;
            Some(sum * 60.0 + part)
        }),
    };
    number.map(|number| Value::Float(sign * number)).ok_or_else(|| format!("`{text}` is no number"))
}

/// The fields of a timestamp's text.
struct Timestamp<'a> {
    year: &'a str,
    month: &'a str,
    day: &'a str,
    time: Option<Time<'a>>,
}

struct Time<'a> {
    hour: &'a str,
    minute: &'a str,
    second: &'a str,
    fraction: &'a str,
    /// `Z`, or sign with hours and minutes.
    zone: Option<&'a str>,
}

/// Takes `least` to `most` digits from the front.
fn digits<'a>(text: &mut &'a str, least: usize, most: usize) -> Option<&'a str> {
    let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    if count < least {
        return None;
    }
    let (front, rest) = text.split_at(count);
    *text = rest;
    Some(front)
}

fn literal(text: &mut &str, expected: char) -> Option<()> {
    *text = text.strip_prefix(expected)?;
    Some(())
}

fn timestamp(text: &str) -> Option<Timestamp<'_>> {
    let mut rest = text;
    let year = digits(&mut rest, 4, 4)?;
    literal(&mut rest, '-')?;
    let month = digits(&mut rest, 1, 2)?;
    literal(&mut rest, '-')?;
    let day = digits(&mut rest, 1, 2)?;
    if rest.is_empty() {
        // a date alone needs two digits each
        return (month.len() == 2 && day.len() == 2).then_some(Timestamp { year, month, day, time: None });
    }
    let after = rest.strip_prefix(['T', 't']).unwrap_or_else(|| rest.trim_start_matches([' ', '\t']));
    if after.len() == rest.len() {
        return None;
    }
    rest = after;
    let hour = digits(&mut rest, 1, 2)?;
    literal(&mut rest, ':')?;
    let minute = digits(&mut rest, 2, 2)?;
    literal(&mut rest, ':')?;
    let second = digits(&mut rest, 2, 2)?;
    let mut fraction = "";
    if literal(&mut rest, '.').is_some() {
        fraction = digits(&mut rest, 0, usize::MAX)?;
    }
    let zone = rest.trim_start_matches([' ', '\t']);
    if zone.is_empty() {
        return rest.is_empty().then_some(Timestamp {
            year,
            month,
            day,
            time: Some(Time { hour, minute, second, fraction, zone: None }),
        });
    }
    if zone != "Z" {
        let mut offset = zone.strip_prefix(['-', '+'])?;
        digits(&mut offset, 1, 2)?;
        if literal(&mut offset, ':').is_some() {
            digits(&mut offset, 2, 2)?;
        }
        if !offset.is_empty() {
            return None;
        }
    }
    let time = Time { hour, minute, second, fraction, zone: Some(zone) };
    Some(Timestamp { year, month, day, time: Some(time) })
}

/// The text that Python prints for a timestamp; `Err` says why it is none.
pub(super) fn timestamp_text(text: &str) -> Result<String, String> {
    let stamp = timestamp(text).ok_or_else(|| format!("`{text}` is no date"))?;
    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
    let (year, month, day) = (number(stamp.year), number(stamp.month), number(stamp.day));
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if year == 0 || !(1..=12).contains(&month) || !(1..=days).contains(&day) {
        return Err(format!("there is no date `{text}`"));
    }
    let mut out = format!("{year:04}-{month:02}-{day:02}");
    let Some(time) = stamp.time else { return Ok(out) };
    let (hour, minute, second) = (number(time.hour), number(time.minute), number(time.second));
    if hour > 23 || minute > 59 || second > 59 {
        return Err(format!("there is no time of day `{text}`"));
    }
    out.push_str(&format!(" {hour:02}:{minute:02}:{second:02}"));
    let micros = format!("{:0<6.6}", time.fraction);
    if micros != "000000" {
        out.push('.');
        out.push_str(&micros);
    }
    match time.zone {
        None => {}
        Some("Z") => out.push_str("+00:00"),
        Some(zone) => {
            let (sign, offset) = zone.split_at(1);
            let (hours, minutes) = offset.split_once(':').unwrap_or((offset, "0"));
            let minutes = number(hours) * 60 + number(minutes);
            if minutes >= 24 * 60 {
                return Err(format!("there is no time zone `{zone}`"));
            }
            let sign = if minutes == 0 { "+" } else { sign };
            out.push_str(&format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_has_the_type_that_pyyaml_gives_it() {
        let cases: &[(&str, Kind)] = &[
            ("", Kind::Null),
            ("~", Kind::Null),
            ("nULL", Kind::Str),
            ("y", Kind::Str),
            ("yes", Kind::Bool(true)),
            ("OFF", Kind::Bool(false)),
            ("yEs", Kind::Str),
            ("0", Kind::Int),
            ("-0", Kind::Int),
            ("0644", Kind::Int),
            ("0o644", Kind::Str),
            ("09", Kind::Str),
            ("0x1F", Kind::Int),
            ("0xG", Kind::Str),
            ("0b101", Kind::Int),
            ("1_000", Kind::Int),
            ("_1", Kind::Str),
            ("12:30:45", Kind::Int),
            ("-1:30", Kind::Int),
            ("0:30", Kind::Str),
            ("1:60", Kind::Str),
            ("1.", Kind::Float),
            (".5", Kind::Float),
            ("-.5", Kind::Str),
            ("1e3", Kind::Str),
            ("1.5e3", Kind::Str),
            ("1.5e+3", Kind::Float),
            ("190:20:30.15", Kind::Float),
            ("-.inf", Kind::Float),
            ("-.nan", Kind::Str),
            (".", Kind::Str),
            ("-", Kind::Str),
            ("1.2.3", Kind::Str),
            ("2026-01-02", Kind::Timestamp),
            ("2026-1-2", Kind::Str),
            ("2001-12-14t21:59:43.10-05:00", Kind::Timestamp),
            ("2001-12-14 21:59", Kind::Str),
            ("<<", Kind::Merge),
            ("=", Kind::Default),
            ("==", Kind::Str),
        ];
        for (text, expected) in cases {
            assert_eq!(kind(text), *expected, "{text}");
        }
    }

    #[test]
    fn numbers_mean_what_pyyaml_says() {
        let ints: &[(&str, i64)] =
            &[("0644", 420), ("-0b11", -3), ("0x_ff", 255), ("12:30:45", 45045), ("-1:30", -90), ("0_7", 7), ("0_", 0)];
        for (text, number) in ints {
            assert_eq!(int(text), Ok(Value::Int(*number)), "{text}");
        }
        assert_eq!(
            int("99999999999999999999").map(|value| value.to_text().into_owned()).as_deref(),
            Ok("99999999999999999999")
        );
        assert!(int("0b_").is_err());
        let floats: &[(&str, f64)] = &[
            ("1.", 1.0),
            (".5", 0.5),
            ("190:20:30.15", 685230.15),
            ("685_230.15e+03", 685230150.0),
            ("-.INF", f64::NEG_INFINITY),
        ];
        for (text, number) in floats {
            assert_eq!(float(text), Ok(Value::Float(*number)), "{text}");
        }
    }

    #[test]
    fn timestamps_print_as_in_python() {
        let cases = [
            ("2026-01-02", Ok("2026-01-02")),
            ("2001-12-14t21:59:43.10-05:00", Ok("2001-12-14 21:59:43.100000-05:00")),
            ("2001-12-14 1:59:43Z", Ok("2001-12-14 01:59:43+00:00")),
            ("2001-12-14 21:59:43.0 +5", Ok("2001-12-14 21:59:43+05:00")),
            ("2001-99-01", Err(())),
            ("2001-02-29", Err(())),
            ("2001-02-28 25:00:00", Err(())),
        ];
        for (text, expected) in cases {
            assert_eq!(timestamp_text(text).map_err(|_| ()), expected.map(str::to_owned), "{text}");
        }
    }
}
