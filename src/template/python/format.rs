//! Python's `%` and `str.format`.

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use super::float_to_big;
use crate::template::call::text_of;
use crate::template::error::{Result, TemplateError};
use crate::value::Value;

/// Widths and precisions beyond this are refused: they are mistakes that would fill the memory.
const WIDTH_LIMIT: usize = 100_000;

/// Alignment, sign and size of one formatted value.
#[derive(Default, Clone)]
struct Layout {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    alternate: bool,
    zero: bool,
    width: usize,
    grouping: Option<char>,
    precision: Option<usize>,
}

fn failed(message: impl Into<String>) -> TemplateError {
    TemplateError::failed(message)
}

/// Python's `format % arguments`. A list stands for a tuple if it is written as one or if the
/// format has as many places as it has elements, more than one.
pub fn percent_format(format: &str, arguments: &Value, is_tuple: bool) -> Result<String> {
    let mut out = String::with_capacity(format.len() + 16);
    let places = count_places(format);
    let single = [arguments.clone()];
    let positional: &[Value] = match arguments {
        Value::List(items) if is_tuple || (places > 1 && items.len() == places) => items,
        Value::Map(_) if places == 0 => &[],
        _ => &single,
    };
    let mut used = 0;
    let mut rest = format;
    let mut by_name = false;
    while let Some(start) = rest.find('%') {
        out.push_str(&rest[..start]);
        let mut characters = rest[start + 1..].char_indices().peekable();
        let mut key = None;
        let mut layout = Layout::default();
        let body = &rest[start + 1..];
        let mut next = || -> Result<&Value> {
            let value = positional.get(used).ok_or_else(|| failed("not enough arguments for format string"))?;
            used += 1;
            Ok(value)
        };
        if let Some((_, '(')) = characters.peek() {
            let end = body.find(')').ok_or_else(|| failed("incomplete format key"))?;
            key = Some(&body[1..end]);
            by_name = true;
            while characters.next_if(|(index, _)| *index <= end).is_some() {}
        }
        while let Some((_, flag)) = characters.next_if(|(_, flag)| matches!(flag, '-' | '+' | ' ' | '#' | '0')) {
            match flag {
                '-' => layout.align = Some('<'),
                '0' => layout.zero = true,
                '#' => layout.alternate = true,
                '+' => layout.sign = Some('+'),
                _ => {
                    layout.sign.get_or_insert(' ');
                }
            }
        }
        let mut size = |characters: &mut std::iter::Peekable<std::str::CharIndices<'_>>| -> Result<Option<i64>> {
            if characters.next_if(|(_, star)| *star == '*').is_some() {
                return next()?.as_int().map(Some).ok_or_else(|| failed("* wants int"));
            }
            let mut digits = String::new();
            while let Some((_, digit)) = characters.next_if(|(_, digit)| digit.is_ascii_digit()) {
                digits.push(digit);
            }
            if digits.is_empty() {
                return Ok(None);
            }
            digits.parse().map(Some).map_err(|_| failed("the width is too large"))
        };
        let width = size(&mut characters)?.unwrap_or(0);
        if width < 0 {
            layout.align = Some('<');
        }
        layout.width = checked_size(width.unsigned_abs())?;
        if characters.next_if(|(_, point)| *point == '.').is_some() {
            layout.precision = Some(checked_size(size(&mut characters)?.unwrap_or(0).max(0) as u64)?);
        }
        while characters.next_if(|(_, length)| matches!(length, 'h' | 'l' | 'L')).is_some() {}
        let (index, kind) = characters.next().ok_or_else(|| failed("incomplete format"))?;
        rest = &body[index + kind.len_utf8()..];
        if kind == '%' {
            out.push('%');
            continue;
        }
        let value = match key {
            Some(key) => match arguments {
                Value::Map(map) => map.get(key).ok_or_else(|| failed(format!("the format wants the key '{key}'")))?,
                _ => return Err(failed("format requires a mapping")),
            },
            None => next()?,
        };
        out.push_str(&percent_value(kind, value, &mut layout)?);
    }
    out.push_str(rest);
    if !by_name && used < positional.len() && !matches!(arguments, Value::Map(_)) {
        return Err(failed("not all arguments converted during string formatting"));
    }
    Ok(out)
}

fn checked_size(size: u64) -> Result<usize> {
    match usize::try_from(size) {
        Ok(size) if size <= WIDTH_LIMIT => Ok(size),
        _ => Err(failed("the width is too large")),
    }
}

fn count_places(format: &str) -> usize {
    let bytes = format.as_bytes();
    let (mut count, mut index) = (0, 0);
    while index < bytes.len() {
        if bytes[index] == b'%' {
            index += 1;
            while index < bytes.len() && !bytes[index].is_ascii_alphabetic() && bytes[index] != b'%' {
                count += usize::from(bytes[index] == b'*');
                index += 1;
            }
            if index < bytes.len() && bytes[index] != b'%' {
                count += 1;
            }
        }
        index += 1;
    }
    count
}

fn percent_value(kind: char, value: &Value, layout: &mut Layout) -> Result<String> {
    if layout.align.is_none() {
        layout.align = Some('>');
    } else {
        layout.zero = false;
    }
    match kind {
        's' | 'r' | 'a' => {
            let mut text = if kind == 's' { text_of(value)?.into_owned() } else { value.to_repr() };
            if let Some(precision) = layout.precision {
                text = text.chars().take(precision).collect();
            }
            layout.zero = false;
            Ok(pad(&text, "", layout))
        }
        'c' => {
            let text = match value {
                Value::Str(text) if text.as_str().chars().count() == 1 => text.as_str().to_owned(),
                other => other
                    .as_int()
                    .and_then(|code| u32::try_from(code).ok())
                    .and_then(char::from_u32)
                    .map(String::from)
                    .ok_or_else(|| failed("%c requires int or char"))?,
            };
            layout.zero = false;
            Ok(pad(&text, "", layout))
        }
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => {
            let number = match value {
                Value::Float(number) if matches!(kind, 'd' | 'i' | 'u') && number.is_finite() => float_to_big(*number),
                other => big(other).ok_or_else(|| {
                    failed(format!("%{kind} format: a real number is required, not {}", other.type_name()))
                })?,
            };
            let digits = match kind {
                'x' => number.abs().to_str_radix(16),
                'X' => number.abs().to_str_radix(16).to_uppercase(),
                'o' => number.abs().to_str_radix(8),
                _ => number.abs().to_string(),
            };
            let digits = match layout.precision {
                Some(precision) => format!("{digits:0>precision$}"),
                None => digits,
            };
            let prefix = match kind {
                'x' if layout.alternate => "0x",
                'X' if layout.alternate => "0X",
                'o' if layout.alternate => "0o",
                _ => "",
            };
            Ok(pad(&digits, &format!("{}{prefix}", sign_of(number.is_negative(), layout)), layout))
        }
        'f' | 'F' | 'e' | 'E' | 'g' | 'G' => {
            let number =
                float(value).ok_or_else(|| failed(format!("must be real number, not {}", value.type_name())))?;
            let text = float_text(number.abs(), kind, layout.precision.unwrap_or(6), layout.alternate);
            Ok(pad(&text, sign_of(number.is_sign_negative() && !number.is_nan(), layout), layout))
        }
        other => Err(failed(format!("unsupported format character '{other}'"))),
    }
}

fn sign_of(negative: bool, layout: &Layout) -> &'static str {
    match (negative, layout.sign) {
        (true, _) => "-",
        (false, Some('+')) => "+",
        (false, Some(' ')) => " ",
        _ => "",
    }
}

/// Puts sign and prefix before the digits and fills up to the width.
fn pad(digits: &str, prefix: &str, layout: &Layout) -> String {
    let length = digits.chars().count() + prefix.chars().count();
    let missing = layout.width.saturating_sub(length);
    let fill: String =
        std::iter::repeat_n(layout.fill.unwrap_or(if layout.zero { '0' } else { ' ' }), missing).collect();
    match layout.align {
        _ if layout.zero && layout.fill.is_none() => format!("{prefix}{fill}{digits}"),
        Some('=') => format!("{prefix}{fill}{digits}"),
        Some('<') => format!("{prefix}{digits}{fill}"),
        Some('^') => {
            let left: String = fill.chars().take(missing / 2).collect();
            let right: String = fill.chars().skip(missing / 2).collect();
            format!("{left}{prefix}{digits}{right}")
        }
        _ => format!("{fill}{prefix}{digits}"),
    }
}

fn big(value: &Value) -> Option<BigInt> {
    match value {
        Value::Big(number) => Some(number.as_ref().clone()),
        other => other.as_int().map(BigInt::from),
    }
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        other => big(other).and_then(|number| number.to_f64()),
    }
}

fn float_text(number: f64, kind: char, precision: usize, alternate: bool) -> String {
    let text = if number.is_nan() {
        "nan".to_owned()
    } else if number.is_infinite() {
        "inf".to_owned()
    } else {
        match kind.to_ascii_lowercase() {
            'f' => format!("{number:.precision$}"),
            'e' => exponent_text(number, precision),
            _ => {
                let precision = precision.max(1);
                let exponent = exponent_text(number, precision - 1);
                let power: i32 = exponent.rsplit('e').next().and_then(|power| power.parse().ok()).unwrap_or(0);
                if power < -4 || power >= precision as i32 {
                    let (mantissa, power) = exponent.split_once('e').unwrap_or((&exponent, "+00"));
                    format!("{}e{power}", if alternate { mantissa } else { trim_zeros(mantissa) })
                } else {
                    let text = format!("{number:.*}", (precision as i32 - 1 - power).max(0) as usize);
                    if alternate { text } else { trim_zeros(&text).to_owned() }
                }
            }
        }
    };
    if kind.is_ascii_uppercase() { text.to_uppercase() } else { text }
}

fn trim_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

fn exponent_text(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// Python's `format.format(*positional, **named)`.
pub fn str_format(format: &str, positional: &[Value], named: &[(std::sync::Arc<str>, Value)]) -> Result<String> {
    let mut out = String::with_capacity(format.len() + 16);
    let mut automatic = Numbering { next: 0, manual: false };
    let mut characters = format.char_indices().peekable();
    while let Some((start, character)) = characters.next() {
        match character {
            '{' if characters.next_if(|(_, next)| *next == '{').is_some() => out.push('{'),
            '}' if characters.next_if(|(_, next)| *next == '}').is_some() => out.push('}'),
            '}' => return Err(failed("single '}' encountered in format string")),
            '{' => {
                let mut depth = 1;
                let mut end = None;
                for (index, character) in characters.by_ref() {
                    match character {
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        _ => {}
                    }
                    if depth == 0 {
                        end = Some(index);
                        break;
                    }
                }
                let end = end.ok_or_else(|| failed("expected '}' before end of string"))?;
                let field = &format[start + 1..end];
                out.push_str(&format_field(field, positional, named, &mut automatic)?);
            }
            other => out.push(other),
        }
    }
    Ok(out)
}

/// How a format numbers its fields: by counting, or as written; not both.
struct Numbering {
    next: usize,
    manual: bool,
}

fn format_field(
    field: &str,
    positional: &[Value],
    named: &[(std::sync::Arc<str>, Value)],
    numbering: &mut Numbering,
) -> Result<String> {
    let (path, specification) = field.split_once(':').unwrap_or((field, ""));
    let (path, conversion) = path.split_once('!').unwrap_or((path, ""));
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (name, mut rest) = path.split_at(end);
    let mut value = if name.is_empty() {
        if numbering.manual {
            return Err(failed("cannot switch from manual field specification to automatic field numbering"));
        }
        numbering.next += 1;
        positional.get(numbering.next - 1).cloned()
    } else if let Ok(index) = name.parse::<usize>() {
        if numbering.next > 0 {
            return Err(failed("cannot switch from automatic field numbering to manual field specification"));
        }
        numbering.manual = true;
        positional.get(index).cloned()
    } else {
        named.iter().find(|(known, _)| &**known == name).map(|(_, value)| value.clone())
    }
    .ok_or_else(|| failed(format!("the format has no argument for `{{{field}}}`")))?;
    while !rest.is_empty() {
        let (key, after) = if let Some(after) = rest.strip_prefix('[') {
            after.split_once(']').ok_or_else(|| failed("missing ']' in format string"))?
        } else {
            let after = &rest[1..];
            after.split_at(after.find(['.', '[']).unwrap_or(after.len()))
        };
        value = match &value {
            Value::List(items) => key.parse::<usize>().ok().and_then(|index| items.get(index).cloned()),
            Value::Map(map) => map.get(key).cloned(),
            _ => None,
        }
        .ok_or_else(|| failed(format!("the format asks for `{key}`, which is not there")))?;
        rest = after;
    }
    let specification = if specification.contains('{') {
        std::borrow::Cow::Owned(str_format(specification, positional, named)?)
    } else {
        std::borrow::Cow::Borrowed(specification)
    };
    match conversion {
        "r" | "a" => value = Value::from(value.to_repr()),
        "s" => value = Value::from(text_of(&value)?.into_owned()),
        "" => {}
        other => return Err(failed(format!("unknown conversion specifier '{other}'"))),
    }
    format_value(&value, &specification)
}

/// Python's `format(value, specification)`.
fn format_value(value: &Value, specification: &str) -> Result<String> {
    if specification.is_empty() {
        return text_of(value).map(std::borrow::Cow::into_owned);
    }
    let mut layout = Layout::default();
    let mut characters: Vec<char> = specification.chars().collect();
    if characters.len() > 1 && matches!(characters[1], '<' | '>' | '=' | '^') {
        layout.fill = Some(characters[0]);
        layout.align = Some(characters[1]);
        characters.drain(..2);
    } else if matches!(characters.first(), Some('<' | '>' | '=' | '^')) {
        layout.align = Some(characters.remove(0));
    }
    let mut rest = characters.into_iter().peekable();
    layout.sign = rest.next_if(|sign| matches!(sign, '+' | '-' | ' '));
    layout.alternate = rest.next_if_eq(&'#').is_some();
    layout.zero = rest.next_if_eq(&'0').is_some() && layout.align.is_none();
    let size = |rest: &mut std::iter::Peekable<std::vec::IntoIter<char>>| -> Result<Option<usize>> {
        let mut digits = String::new();
        while let Some(digit) = rest.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        if digits.is_empty() {
            return Ok(None);
        }
        digits.parse().map_err(|_| failed("the width is too large")).and_then(checked_size).map(Some)
    };
    layout.width = size(&mut rest)?.unwrap_or(0);
    layout.grouping = rest.next_if(|mark| matches!(mark, ',' | '_'));
    if rest.next_if_eq(&'.').is_some() {
        layout.precision = Some(size(&mut rest)?.ok_or_else(|| failed("format specifier missing precision"))?);
    }
    let kind = rest.next();
    if rest.next().is_some() {
        return Err(failed(format!("invalid format specifier `{specification}`")));
    }
    let number = big(value).filter(|_| !matches!(value, Value::Float(_)));
    match (kind, number, value) {
        (Some('s') | None, None, Value::Float(number)) => {
            let text = match layout.precision {
                Some(precision) => float_text(number.abs(), 'g', precision, false),
                None => crate::value::float_repr(number.abs()),
            };
            layout.align.get_or_insert('>');
            Ok(pad(&group(&text, &layout), sign_of(number.is_sign_negative(), &layout), &layout))
        }
        (Some('d' | 'n') | None, Some(number), _) => integer_field(&number, 10, "", &mut layout),
        (Some('b'), Some(number), _) => integer_field(&number, 2, "0b", &mut layout),
        (Some('o'), Some(number), _) => integer_field(&number, 8, "0o", &mut layout),
        (Some('x'), Some(number), _) => integer_field(&number, 16, "0x", &mut layout),
        (Some('X'), Some(number), _) => integer_field(&number, 16, "0x", &mut layout).map(|text| text.to_uppercase()),
        (Some(kind @ ('f' | 'F' | 'e' | 'E' | 'g' | 'G' | '%')), _, _) => {
            let number = float(value).ok_or_else(|| unknown_code(kind, value))?;
            let (scaled, letter) = if kind == '%' { (number * 100.0, 'f') } else { (number, kind) };
            let mut text = group(&float_text(scaled.abs(), letter, layout.precision.unwrap_or(6), false), &layout);
            if kind == '%' {
                text.push('%');
            }
            layout.align.get_or_insert('>');
            Ok(pad(&text, sign_of(number.is_sign_negative(), &layout), &layout))
        }
        (Some('s') | None, _, _) => {
            let mut text = text_of(value)?.into_owned();
            if let Some(precision) = layout.precision {
                text = text.chars().take(precision).collect();
            }
            layout.zero = false;
            layout.align.get_or_insert('<');
            Ok(pad(&text, "", &layout))
        }
        (Some(kind), _, _) => Err(unknown_code(kind, value)),
    }
}

fn unknown_code(kind: char, value: &Value) -> TemplateError {
    failed(format!("unknown format code '{kind}' for object of type '{}'", value.type_name()))
}

fn integer_field(number: &BigInt, radix: u32, prefix: &str, layout: &mut Layout) -> Result<String> {
    let digits = group(&number.abs().to_str_radix(radix), layout);
    let prefix = if layout.alternate { prefix } else { "" };
    layout.align.get_or_insert('>');
    Ok(pad(&digits, &format!("{}{prefix}", sign_of(number.is_negative(), layout)), layout))
}

/// Thousands marks.
fn group(text: &str, layout: &Layout) -> String {
    let Some(mark) = layout.grouping else { return text.to_owned() };
    let (whole, fraction) = match text.find(['.', 'e']) {
        Some(end) => text.split_at(end),
        None => (text, ""),
    };
    let mut out = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(mark);
        }
        out.push(digit);
    }
    out + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_formats_as_python() {
        let pair = Value::list(vec![1.into(), "b".into()]);
        let cases: &[(&str, Value, &str)] = &[
            ("%03d", 7.into(), "007"),
            ("%-4d|", 7.into(), "7   |"),
            ("%+d", 7.into(), "+7"),
            ("%#x", 255.into(), "0xff"),
            ("%5.1f", 1.25.into(), "  1.2"),
            ("%e", 12345.678.into(), "1.234568e+04"),
            ("%g", 0.0001.into(), "0.0001"),
            ("%g", 1e20.into(), "1e+20"),
            ("%s-%s", pair.clone(), "1-b"),
            ("%s", pair, "[1, 'b']"),
            ("100%%", Value::list(vec![]), "100%"),
            ("%(a)s", crate::value::object([("a", 1.into())]).into(), "1"),
            ("%.2s", "abc".into(), "ab"),
            ("%*d", Value::list(vec![5.into(), 42.into()]), "   42"),
        ];
        for (format, arguments, expected) in cases {
            let is_tuple = *format == "100%%";
            assert_eq!(percent_format(format, arguments, is_tuple).expect(format), *expected, "{format}");
        }
        assert!(percent_format("%d", &"x".into(), false).is_err());
        assert!(percent_format("%s %s", &1.into(), false).is_err());
        assert!(percent_format("x", &1.into(), false).is_err());
    }

    #[test]
    fn str_formats_as_python() {
        let named = [(std::sync::Arc::from("n"), Value::Int(5))];
        let cases: &[(&str, &[Value], &str)] = &[
            ("{} {}", &[1.into(), "b".into()], "1 b"),
            ("{1}{0}", &[1.into(), 2.into()], "21"),
            ("{n:03d}", &[], "005"),
            ("{:>5}|{:<5}|{:^5}", &["a".into(), "b".into(), "c".into()], "    a|b    |  c  "),
            ("{:,}", &[1_234_567.into()], "1,234,567"),
            ("{:.2f}", &[2.5.into()], "2.50"),
            ("{:.0%}", &[0.25.into()], "25%"),
            ("{{}}", &[], "{}"),
            ("{0[k]}", &[crate::value::object([("k", "v".into())]).into()], "v"),
            ("{!r}", &["a".into()], "'a'"),
            ("{:#x}", &[255.into()], "0xff"),
            ("{:*^7}", &["ab".into()], "**ab***"),
        ];
        for (format, positional, expected) in cases {
            assert_eq!(str_format(format, positional, &named).expect(format), *expected, "{format}");
        }
        assert!(str_format("{", &[], &[]).is_err());
        assert!(str_format("{2}", &[], &[]).is_err());
    }
}
