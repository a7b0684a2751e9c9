//! Python's `datetime` and `timedelta` as values of a template.

use std::any::Any;
use std::cmp::Ordering;
use std::sync::Arc;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Unit};

use super::call::text_of;
use super::error::{Result, TemplateError};
use crate::value::{Interruption, Object, Value};

const MICROSECONDS_A_DAY: i64 = 86_400_000_000;

/// A moment of the calendar without a time zone, or a length of time in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Time {
    Moment(DateTime),
    Length(i64),
}

/// The time in a value, if it is one.
pub fn of(value: &Value) -> Option<&Time> {
    match value {
        Value::Object(object) => object.as_any()?.downcast_ref::<Time>(),
        _ => None,
    }
}

impl Time {
    pub fn value(self) -> Value {
        Value::Object(Arc::new(self))
    }

    pub fn compare(&self, other: &Time) -> Option<Ordering> {
        match (self, other) {
            (Time::Moment(one), Time::Moment(other)) => Some(one.cmp(other)),
            (Time::Length(one), Time::Length(other)) => Some(one.cmp(other)),
            _ => None,
        }
    }

    pub fn add(&self, other: &Time) -> Option<Value> {
        match (self, other) {
            (Time::Moment(moment), Time::Length(length)) | (Time::Length(length), Time::Moment(moment)) => {
                shift(*moment, *length).map(Time::value)
            }
            (Time::Length(one), Time::Length(other)) => one.checked_add(*other).map(|sum| Time::Length(sum).value()),
            _ => None,
        }
    }

    pub fn subtract(&self, other: &Time) -> Option<Value> {
        match (self, other) {
            (Time::Moment(one), Time::Moment(other)) => {
                let span = one.since((Unit::Microsecond, *other)).ok()?;
                Some(Time::Length(span.get_microseconds()).value())
            }
            (Time::Moment(moment), Time::Length(length)) => shift(*moment, length.checked_neg()?).map(Time::value),
            (Time::Length(one), Time::Length(other)) => {
                one.checked_sub(*other).map(|difference| Time::Length(difference).value())
            }
            _ => None,
        }
    }

    pub fn scale(&self, factor: f64) -> Option<Value> {
        match self {
            Time::Length(length) => Some(Time::Length((*length as f64 * factor).round() as i64).value()),
            Time::Moment(_) => None,
        }
    }
}

fn shift(moment: DateTime, microseconds: i64) -> Option<Time> {
    moment.checked_add(Span::new().try_microseconds(microseconds).ok()?).ok().map(Time::Moment)
}

impl Object for Time {
    fn get(&self, key: &Value) -> Result<Option<Value>, Interruption> {
        let Some(name) = key.as_str() else { return Ok(None) };
        Ok(match self {
            Time::Moment(moment) => Some(match name {
                "year" => i64::from(moment.year()),
                "month" => i64::from(moment.month()),
                "day" => i64::from(moment.day()),
                "hour" => i64::from(moment.hour()),
                "minute" => i64::from(moment.minute()),
                "second" => i64::from(moment.second()),
                "microsecond" => i64::from(moment.subsec_nanosecond() / 1000),
                _ => return Ok(None),
            }),
            Time::Length(length) => Some(match name {
                "days" => length.div_euclid(MICROSECONDS_A_DAY),
                "seconds" => length.rem_euclid(MICROSECONDS_A_DAY) / 1_000_000,
                "microseconds" => length.rem_euclid(1_000_000),
                _ => return Ok(None),
            }),
        }
        .map(Value::Int))
    }

    fn keys(&self) -> Vec<Value> {
        Vec::new()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn describe(&self) -> Option<String> {
        Some(match self {
            Time::Moment(moment) => moment_text(moment, ' '),
            Time::Length(length) => length_text(*length),
        })
    }
}

fn moment_text(moment: &DateTime, separator: char) -> String {
    let micros = moment.subsec_nanosecond() / 1000;
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    format!(
        "{:04}-{:02}-{:02}{separator}{:02}:{:02}:{:02}{fraction}",
        moment.year(),
        moment.month(),
        moment.day(),
        moment.hour(),
        moment.minute(),
        moment.second()
    )
}

fn length_text(length: i64) -> String {
    let days = length.div_euclid(MICROSECONDS_A_DAY);
    let rest = length.rem_euclid(MICROSECONDS_A_DAY);
    let (seconds, micros) = (rest / 1_000_000, rest % 1_000_000);
    let prefix = match days {
        0 => String::new(),
        1 | -1 => format!("{days} day, "),
        _ => format!("{days} days, "),
    };
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    format!("{prefix}{}:{:02}:{:02}{fraction}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// The methods of `datetime` and `timedelta`.
pub fn method(value: &Value, name: &str, arguments: &[Value]) -> Result<Value> {
    let no_method = || TemplateError::failed(format!("a time has no method `{name}`"));
    let Some(time) = of(value) else { return Err(no_method()) };
    match (time, name) {
        (Time::Moment(_), "strftime") => {
            let layout = arguments.first().ok_or_else(|| TemplateError::failed("`strftime` needs a format"))?;
            format(time, &text_of(layout)?).map(Value::from)
        }
        (Time::Moment(moment), "isoformat") => Ok(Value::from(moment_text(moment, 'T'))),
        (Time::Moment(moment), "timestamp") => {
            let zoned = moment
                .to_zoned_datetime(TimeZone::system())
                .map_err(|error| TemplateError::failed(error.to_string()))?;
            Ok(Value::Float(zoned.timestamp().as_microsecond() as f64 / 1e6))
        }
        (Time::Moment(moment), "weekday") => Ok(Value::Int(i64::from(moment.weekday().to_monday_zero_offset()))),
        (Time::Moment(moment), "isoweekday") => Ok(Value::Int(i64::from(moment.weekday().to_monday_one_offset()))),
        (Time::Moment(moment), "date") => {
            Ok(Value::from(format!("{:04}-{:02}-{:02}", moment.year(), moment.month(), moment.day())))
        }
        (Time::Length(length), "total_seconds") => Ok(Value::Float(*length as f64 / 1e6)),
        _ => Err(no_method()),
    }
}

/// The present moment, of the controller's zone or UTC.
pub fn now(utc: bool) -> Time {
    let zone = if utc { TimeZone::UTC } else { TimeZone::system() };
    Time::Moment(Timestamp::now().to_zoned_datetime(zone).datetime())
}

/// Python's `strftime` of a moment.
pub fn format(time: &Time, layout: &str) -> Result<String> {
    match time {
        Time::Moment(moment) => {
            let layout = pythons_layout(layout, Some(moment))?;
            jiff::fmt::strtime::format(&layout, *moment)
                .map_err(|error| TemplateError::failed(format!("the format `{layout}` is wrong: {error}")))
        }
        Time::Length(_) => Err(TemplateError::failed("a length of time has no `strftime`")),
    }
}

/// The layout with the directives replaced that are other ones in Python: `%f` has six digits, and of a moment without a
/// zone `%z` and `%Z` are empty, and `%s` takes it for one of the controller's zone.
fn pythons_layout(layout: &str, naive: Option<&DateTime>) -> Result<String> {
    let mut text = String::new();
    let mut characters = layout.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            text.push(character);
            continue;
        }
        match (characters.next(), naive) {
            (Some('f'), _) => text.push_str("%6f"),
            (Some('z' | 'Z'), Some(_)) => {}
            (Some('s'), Some(moment)) => {
                let there = TimeZone::system().to_timestamp(*moment).map_err(|error| {
                    TemplateError::failed(format!("`{moment}` is out of the range of `%s`: {error}"))
                })?;
                text.push_str(&there.as_second().to_string());
            }
            (directive, _) => {
                text.push('%');
                text.extend(directive);
            }
        }
    }
    Ok(text)
}

/// `to_datetime`: reads a text by a strptime format.
pub fn parse(text: &str, layout: &str) -> Result<Time> {
    let refuse = |error: jiff::Error| {
        TemplateError::failed(format!("time data '{text}' does not match format '{layout}': {error}"))
    };
    let parts = jiff::fmt::strtime::parse(layout, text).map_err(refuse)?;
    match parts.to_datetime() {
        Ok(moment) => Ok(Time::Moment(moment)),
        // Python's default for a missing time is midnight
        Err(_) => {
            parts.to_date().map(|date| Time::Moment(date.to_datetime(jiff::civil::Time::midnight()))).map_err(refuse)
        }
    }
}

/// `strftime` of an epoch (now if none), in the controller's zone or UTC.
pub fn format_epoch(layout: &str, epoch: Option<f64>, utc: bool) -> Result<String> {
    let zone = if utc { TimeZone::UTC } else { TimeZone::system() };
    let timestamp = match epoch {
        Some(seconds) => Timestamp::from_microsecond((seconds * 1e6) as i64)
            .map_err(|error| TemplateError::failed(format!("Invalid value for epoch value ({seconds}): {error}")))?,
        None => Timestamp::now(),
    };
    // what C's library calls it
    let zoned =
        if utc { layout.replace("%%", "%%\0").replace("%Z", "GMT").replace("%%\0", "%%") } else { layout.to_owned() };
    jiff::fmt::strtime::format(&pythons_layout(&zoned, None)?, &timestamp.to_zoned_datetime(zone))
        .map_err(|error| TemplateError::failed(format!("the format `{layout}` is wrong: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_pythons() {
        let one = parse("2026-01-02 00:00:00", "%Y-%m-%d %H:%M:%S").expect("moment");
        let other = parse("2026-01-01", "%Y-%m-%d").expect("date");
        assert_eq!(one.subtract(&other).map(|length| length.to_text().into_owned()).as_deref(), Some("1 day, 0:00:00"));
        assert_eq!(one.value().to_text(), "2026-01-02 00:00:00");
        assert_eq!(
            other.subtract(&one).map(|length| length.to_text().into_owned()).as_deref(),
            Some("-1 day, 0:00:00")
        );
        assert_eq!(format_epoch("%Y-%m-%dT%H:%M:%SZ", Some(0.0), true).expect("epoch"), "1970-01-01T00:00:00Z");
        assert_eq!(format(&one, "%d %b %Y").expect("format"), "02 Jan 2026");
        assert!(parse("x", "%Y").is_err());
        assert_eq!(format(&one, "%H.%f %%f%z").expect("format"), "00.000000 %f");
        let seconds: i64 = format(&now(false), "%s").expect("format").parse().expect("seconds");
        assert!((seconds - Timestamp::now().as_second()).abs() < 5, "{seconds}");
    }
}
