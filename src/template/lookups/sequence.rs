//! The lookup `sequence`.

use super::{Lookup, split_words, terms};
use crate::template::call::{Call, entry, text_of};
use crate::template::error::{Result, TemplateError};
use crate::template::filters::parse_int;
use crate::template::python::percent_format;
use crate::value::Value;

pub static LOOKUPS: &[Lookup] = &[entry(
    &["sequence"],
    &["_terms", "start", "end", "count", "stride", "format"],
    "numbers from start to end, in a format",
    sequence,
)];

/// A longer sequence is a mistake.
const LIMIT: i64 = 10_000_000;

#[derive(Default)]
struct Range {
    start: Option<i64>,
    end: Option<i64>,
    count: Option<i64>,
    stride: Option<i64>,
    format: Option<String>,
}

fn number(name: &str, text: &str) -> Result<i64> {
    parse_int(text, 0)
        .and_then(|number| i64::try_from(number).ok())
        .ok_or_else(|| TemplateError::failed(format!("Invalid type for {name}: `{text}` is no integer")))
}

impl Range {
    fn set(&mut self, name: &str, text: &str) -> Result<()> {
        match name {
            "start" => self.start = Some(number(name, text)?),
            "end" => self.end = Some(number(name, text)?),
            "count" => self.count = Some(number(name, text)?),
            "stride" => self.stride = Some(number(name, text)?),
            "format" => self.format = Some(text.to_owned()),
            other => {
                return Err(TemplateError::failed(format!("unrecognized arguments to with_sequence: ['{other}']")));
            }
        }
        Ok(())
    }

    /// Reads `start=1 end=3 format=eth%d` or the short form `[start-]end[/stride][:format]`.
    fn parse(&mut self, term: &str) -> Result<()> {
        let term = term.trim();
        if term.is_empty() {
            return Ok(());
        }
        if term.contains('=') && !term.starts_with(|letter: char| letter.is_ascii_digit() || letter == '-') {
            for word in split_words(term)? {
                let (name, value) = word
                    .split_once('=')
                    .ok_or_else(|| TemplateError::failed(format!("expected name=value, found `{word}`")))?;
                self.set(name, value)?;
            }
            return Ok(());
        }
        let (numbers, format) = term.split_once(':').map_or((term, None), |(numbers, format)| (numbers, Some(format)));
        let (bounds, stride) =
            numbers.split_once('/').map_or((numbers, None), |(bounds, stride)| (bounds, Some(stride)));
        match bounds.char_indices().find(|(index, letter)| *index > 0 && *letter == '-') {
            Some((dash, _)) => {
                self.start = Some(number("start", &bounds[..dash])?);
                self.end = Some(number("end", &bounds[dash + 1..])?);
            }
            None => self.end = Some(number("end", bounds)?),
        }
        if let Some(stride) = stride {
            self.stride = Some(number("stride", stride)?);
        }
        self.format = format.map(str::to_owned).or_else(|| self.format.take());
        Ok(())
    }

    fn numbers(&self, out: &mut Vec<Value>) -> Result<()> {
        let start = self.start.unwrap_or(1);
        let (end, stride) = match (self.count, self.end) {
            (Some(_), Some(_)) => {
                return Err(TemplateError::failed("can't specify both count and end in with_sequence"));
            }
            (None, None) => return Err(TemplateError::failed("must specify count or end in with_sequence")),
            (Some(0), None) => return Ok(()),
            (Some(count), None) => {
                let stride = self.stride.unwrap_or(1);
                (start.saturating_add(count.saturating_mul(stride)).saturating_sub(stride.signum()), stride)
            }
            (None, Some(end)) => (end, self.stride.unwrap_or(1)),
        };
        if stride == 0 {
            return Ok(());
        }
        if stride > 0 && end < start {
            return Err(TemplateError::failed("to count backwards make stride negative"));
        }
        if stride < 0 && end > start {
            return Err(TemplateError::failed("to count forward don't make stride negative"));
        }
        if end.saturating_sub(start).saturating_abs() / stride.saturating_abs() > LIMIT {
            return Err(TemplateError::failed("the sequence is too long"));
        }
        let format = self.format.as_deref().unwrap_or("%d");
        let mut number = start;
        while (stride > 0 && number <= end) || (stride < 0 && number >= end) {
            let text = percent_format(format, &Value::Int(number), false)
                .map_err(|_| TemplateError::failed(format!("bad formatting string: {format}")))?;
            out.push(Value::from(text));
            number = number.saturating_add(stride);
        }
        Ok(())
    }
}

fn sequence(call: &Call<'_>) -> Result<Vec<Value>> {
    let mut out = Vec::new();
    let empty = [Value::from("")];
    let given = terms(call)?;
    for term in if given.is_empty() { &empty } else { given } {
        let mut range = Range::default();
        for (index, name) in ["start", "end", "count", "stride", "format"].into_iter().enumerate() {
            if let Some(value) = call.given(index + 1) {
                range.set(name, &text_of(value)?)?;
            }
        }
        range.parse(&text_of(term)?)?;
        range.numbers(&mut out)?;
    }
    Ok(out)
}
