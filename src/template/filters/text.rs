//! Filters about texts.

use super::Filter;
use crate::template::call::{Call, entry, entry_for_undefined, iterate, text_of};
use crate::template::error::{Result, TemplateError};
use crate::template::methods;
use crate::template::python::percent_format;
use crate::value::Value;

pub static FILTERS: &[Filter] = &[
    entry(&["lower"], &["value"], "in lower case", |call| Ok(Value::from(call.text()?.to_lowercase()))),
    entry(&["upper"], &["value"], "in upper case", |call| Ok(Value::from(call.text()?.to_uppercase()))),
    entry(&["capitalize"], &["value"], "first letter large, others small", |call| {
        Ok(Value::from(methods::capitalize(&call.text()?)))
    }),
    entry(&["title"], &["value"], "each word's first letter large", title),
    entry(&["trim"], &["value", "chars"], "without blanks (or these characters) at both ends", trim),
    entry(&["replace"], &["value", "old", "new", "count"], "with each old text replaced", replace),
    entry(&["split"], &["value", "sep", "maxsplit"], "parts between separators, or words", |call| {
        let mut arguments = Vec::new();
        if let Some(separator) = call.optional(1) {
            arguments.push(separator.clone());
        }
        if let Some(limit) = call.optional(2) {
            arguments.resize(1, Value::Null);
            arguments.push(limit.clone());
        }
        methods::call(call.context, &Value::from(call.text()?.into_owned()), "split", arguments, Vec::new())
    }),
    entry_for_undefined(
        &["format"],
        &["value", "*positional", "**named"],
        "the %-format filled with arguments",
        format,
    ),
    entry(&["center"], &["value", "width"], "in the middle of a width", center),
    entry(&["indent"], &["value", "width", "first", "blank"], "with its lines indented, but for the first", indent),
    entry(&["truncate"], &["value", "length", "killwords", "end", "leeway"], "cut to a length", truncate),
    entry(&["wordcount"], &["value"], "how many words", wordcount),
    entry(
        &["wordwrap"],
        &["value", "width", "break_long_words", "wrapstring", "break_on_hyphens"],
        "broken into lines of a width",
        wordwrap,
    ),
    entry(&["comment"], &["value", "style", "**options"], "as a comment of a language", comment),
    entry(&["quote"], &["value"], "quoted for a shell", |call| {
        Ok(Value::from(match call.value()? {
            Value::Null => "''".to_owned(),
            value => quote(&text_of(value)?),
        }))
    }),
];

/// Quoted for a POSIX shell, if it needs to be.
pub fn quote(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "@%+=:,./-_".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\"'\"'"))
}

/// Jinja's: words are parted by blanks, brackets and hyphens.
fn title(call: &Call<'_>) -> Result<Value> {
    let mut out = String::new();
    let mut first = true;
    for letter in call.text()?.chars() {
        if first {
            out.extend(letter.to_uppercase());
        } else {
            out.extend(letter.to_lowercase());
        }
        first = letter.is_whitespace() || "-({[<".contains(letter);
    }
    Ok(Value::from(out))
}

fn trim(call: &Call<'_>) -> Result<Value> {
    let text = call.text()?;
    Ok(Value::from(match call.given(1) {
        Some(set) => {
            let set: Vec<char> = text_of(set)?.chars().collect();
            text.trim_matches(|letter| set.contains(&letter))
        }
        None => text.trim(),
    }))
}

fn replace(call: &Call<'_>) -> Result<Value> {
    let (text, old, new) = (call.text()?, call.required_text(1)?, call.required_text(2)?);
    Ok(Value::from(match call.given(3) {
        Some(_) => match usize::try_from(call.required_int(3)?) {
            Ok(count) => text.replacen(&*old, &new, count),
            Err(_) => text.replace(&*old, &new),
        },
        None => text.replace(&*old, &new),
    }))
}

fn format(call: &Call<'_>) -> Result<Value> {
    if !call.named.is_empty() && !call.rest.is_empty() {
        return Err(TemplateError::failed("can't handle positional and keyword arguments at the same time"));
    }
    let text = call.text()?;
    // `%r` names what is undefined, all others need its value
    let mut arguments = call.rest.iter().chain(call.named.iter().map(|(_, value)| value));
    if let Some(Value::Undefined(reason)) = arguments.find(|value| value.is_undefined())
        && !text.contains("%r")
    {
        return Err(TemplateError::undefined(reason));
    }
    let arguments = if call.named.is_empty() {
        Value::list(call.rest.clone())
    } else {
        Value::map(call.named.iter().map(|(name, value)| (Value::from(&**name), value.clone())).collect())
    };
    percent_format(&text, &arguments, true).map(Value::from)
}

fn center(call: &Call<'_>) -> Result<Value> {
    let width = Value::Int(call.int_or(1, 80)?);
    methods::call(call.context, &Value::from(call.text()?.into_owned()), "center", vec![width], Vec::new())
}

fn indent(call: &Call<'_>) -> Result<Value> {
    let text = call.text()?;
    let indention = match call.optional(1) {
        Some(Value::Str(text)) => text.as_str().to_owned(),
        _ => " ".repeat(usize::try_from(call.int_or(1, 4)?).unwrap_or(0).min(10_000)),
    };
    let (first, blank) = (call.flag(2, false)?, call.flag(3, false)?);
    // a final newline counts as one more, empty line
    let lines: Vec<&str> = text.split('\n').collect();
    let mut out = String::with_capacity(text.len() + lines.len() * indention.len());
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        let indented = if index == 0 { first } else { blank || !line.is_empty() };
        if indented {
            out.push_str(&indention);
        }
        out.push_str(line);
    }
    Ok(Value::from(out))
}

fn truncate(call: &Call<'_>) -> Result<Value> {
    let text = call.text()?;
    let length = usize::try_from(call.int_or(1, 255)?).unwrap_or(0);
    let killwords = call.flag(2, false)?;
    let end = call.text_or(3, "...")?;
    let leeway = match call.given(4) {
        Some(_) => usize::try_from(call.required_int(4)?).unwrap_or(0),
        None => 5,
    };
    let count = text.chars().count();
    if count <= length + leeway {
        return Ok(Value::from(&*text));
    }
    let Some(keep) = length.checked_sub(end.chars().count()) else {
        return Err(TemplateError::failed(format!("expected length >= {}, got {length}", end.chars().count())));
    };
    let cut: String = text.chars().take(keep).collect();
    let cut = if killwords { cut.as_str() } else { cut.rsplit_once(' ').map_or(cut.as_str(), |(before, _)| before) };
    Ok(Value::from(format!("{cut}{end}")))
}

fn wordcount(call: &Call<'_>) -> Result<Value> {
    let text = call.text()?;
    let words = text.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
    Ok(Value::from(words.filter(|word| !word.is_empty()).count()))
}

fn wordwrap(call: &Call<'_>) -> Result<Value> {
    let text = call.text()?;
    let width = usize::try_from(call.int_or(1, 79)?).unwrap_or(0);
    if width == 0 {
        return Err(TemplateError::failed("the width must be greater than 0"));
    }
    let break_words = call.flag(2, true)?;
    let mark = match call.given(3) {
        Some(mark) => text_of(mark)?.into_owned(),
        None => "\n".to_owned(),
    };
    let break_hyphens = call.flag(4, true)?;
    let lines: Vec<String> =
        text.lines().map(|line| wrap_line(line, width, break_words, break_hyphens).join(&mark)).collect();
    Ok(Value::from(lines.join(&mark)))
}

/// Breaks a line at blanks (and after hyphens), keeping blanks inside of lines.
fn wrap_line(line: &str, width: usize, break_words: bool, break_hyphens: bool) -> Vec<String> {
    let mut chunks: Vec<String> = Vec::new();
    for letter in line.chars() {
        let blank = letter.is_whitespace();
        let same = chunks.last().is_some_and(|chunk| {
            let last = chunk.chars().last().unwrap_or(' ');
            let after_hyphen = break_hyphens && last == '-' && letter.is_alphabetic() && chunk.chars().count() > 1;
            last.is_whitespace() == blank && !after_hyphen
        });
        match chunks.last_mut() {
            Some(chunk) if same => chunk.push(letter),
            _ => chunks.push(letter.to_string()),
        }
    }
    let mut lines = Vec::new();
    let mut current = String::new();
    let length = |text: &str| text.chars().count();
    for chunk in chunks {
        if length(&current) + length(&chunk) <= width {
            current.push_str(&chunk);
            continue;
        }
        if chunk.trim().is_empty() {
            // blanks at a break vanish
            lines.push(std::mem::take(&mut current).trim_end().to_owned());
            continue;
        }
        let mut rest: Vec<char> = chunk.chars().collect();
        if rest.len() > width && break_words {
            while !rest.is_empty() {
                let room = width - length(&current).min(width);
                let part: String = rest.drain(..room.min(rest.len())).collect();
                current.push_str(&part);
                if !rest.is_empty() {
                    lines.push(std::mem::take(&mut current).trim_end().to_owned());
                }
            }
            continue;
        }
        if !current.trim().is_empty() {
            lines.push(std::mem::take(&mut current).trim_end().to_owned());
        } else {
            current.clear();
        }
        current = chunk;
    }
    if !current.trim_end().is_empty() || lines.is_empty() {
        lines.push(current.trim_end().to_owned());
    }
    lines.retain(|line| !line.is_empty() || line.len() == length(line));
    lines
}

fn comment(call: &Call<'_>) -> Result<Value> {
    let text = call.text()?;
    let style = call.text_or(1, "plain")?;
    let (beginning, decoration, end) = match &*style {
        "plain" => ("", "# ", ""),
        "erlang" => ("", "% ", ""),
        "c" => ("", "// ", ""),
        "cblock" => ("/*", " * ", " */"),
        "xml" => ("<!--", " - ", "-->"),
        other => {
            return Err(TemplateError::failed(format!(
                "invalid style '{other}', known are plain, erlang, c, cblock and xml"
            )));
        }
    };
    let known = ["newline", "beginning", "prefix", "prefix_count", "decoration", "postfix", "postfix_count", "end"];
    if let Some((name, _)) = call.named.iter().find(|(name, _)| !known.contains(&&**name)) {
        return Err(TemplateError::failed(format!("got an unexpected keyword argument '{name}'")));
    }
    let given = |name: &str| call.named.iter().find(|(known, _)| &**known == name).map(|(_, value)| value);
    let option = |name: &str, default: &str| -> Result<String> {
        given(name).map_or_else(|| Ok(default.to_owned()), |value| text_of(value).map(std::borrow::Cow::into_owned))
    };
    let count = |name: &str| -> Result<usize> {
        match given(name) {
            Some(value) => text_of(value)?
                .trim()
                .parse()
                .map_err(|_| TemplateError::failed(format!("`{name}` must be a small number"))),
            None => Ok(1),
        }
    };
    let newline = option("newline", "\n")?;
    let decoration = option("decoration", decoration)?;
    let bare = decoration.trim_end();
    let (prefix, postfix) = (option("prefix", bare)?, option("postfix", bare)?);
    let (beginning, end) = (option("beginning", beginning)?, option("end", end)?);
    let mut out = String::new();
    if !beginning.is_empty() {
        out.push_str(&beginning);
        out.push_str(&newline);
    }
    if !prefix.is_empty() {
        let line = if prefix == newline { newline.clone() } else { format!("{prefix}{newline}") };
        out.push_str(&line.repeat(count("prefix_count")?.min(1000)));
    }
    let body = format!("{decoration}{}", text.replace(&*newline, &format!("{newline}{decoration}")));
    out.push_str(&body.replace(&format!("{decoration}{newline}"), &format!("{bare}{newline}")));
    for _ in 0..count("postfix_count")?.min(1000) {
        out.push_str(&newline);
        out.push_str(&postfix);
    }
    if !end.is_empty() {
        out.push_str(&newline);
        out.push_str(&end);
    }
    Ok(Value::from(out))
}

/// The items as texts.
pub fn texts(value: &Value) -> Result<Vec<String>> {
    iterate(value)?.iter().map(|item| text_of(item).map(std::borrow::Cow::into_owned)).collect()
}
