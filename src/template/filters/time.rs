//! Filters about dates and times.

use super::Filter;
use crate::template::call::{Call, entry};
use crate::template::datetime;
use crate::template::error::{Result, TemplateError};
use crate::value::Value;

pub static FILTERS: &[Filter] = &[
    entry(&["to_datetime"], &["value", "format"], "a moment read from a text", |call| {
        let layout = call.text_or(1, "%Y-%m-%d %H:%M:%S")?;
        datetime::parse(&call.text()?, &layout).map(datetime::Time::value)
    }),
    entry(&["strftime"], &["value", "second", "utc"], "a time in this format: now, or an epoch", strftime),
];

fn strftime(call: &Call<'_>) -> Result<Value> {
    let epoch = match call.given(1) {
        None => None,
        Some(Value::Float(number)) => Some(*number),
        Some(Value::Str(text)) => Some(
            text.as_str()
                .trim()
                .parse()
                .map_err(|_| TemplateError::failed(format!("Invalid value for epoch value ({})", text.as_str())))?,
        ),
        Some(_) => Some(call.required_int(1)? as f64),
    };
    datetime::format_epoch(&call.text()?, epoch, call.flag(2, false)?).map(Value::from)
}
