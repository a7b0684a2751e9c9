//! The events of a document: the only file that knows the parser.
//!
//! The parser is a port of libyaml, so events, places and error words are those that PyYAML gives.
//! It can panic on some broken texts; that is contained here, and `serde_yaml` words the error then.

use std::cell::Cell;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};

use libyaml_safer::{Encoding, ErrorKind, EventData, Mark, Parser, ScalarStyle};

use super::hints;
use crate::error::{Error, Result};
use crate::source::{Place, Source};

/// What the parser found, and where it starts (for a tagged node: where its tag starts).
#[derive(Debug)]
pub(super) struct Event {
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) data: Data,
}

#[derive(Debug)]
pub(super) enum Data {
    DocumentStart,
    DocumentEnd,
    Alias(String),
    Scalar {
        anchor: Option<String>,
        tag: Option<String>,
        text: String,
        /// The text decides the type (a plain scalar without a tag).
        plain: bool,
    },
    SequenceStart {
        anchor: Option<String>,
        tag: Option<String>,
    },
    MappingStart {
        anchor: Option<String>,
        tag: Option<String>,
    },
    /// The end of a sequence or a mapping.
    End,
}

/// All events of a text.
pub(super) fn read(source: &Arc<Source>) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    let parsed = silently(AssertUnwindSafe(|| parse(&source.text, &mut events)));
    match parsed {
        Ok(Ok(true)) => Ok(events),
        Ok(Ok(false)) => {
            let place = events.last().map(|event| Place::new(source, event.line, event.column));
            Err(too_deep(&place.unwrap_or_else(|| Place::start(source))))
        }
        Ok(Err(error)) => Err(describe(source, &error)),
        Err(_) => Err(second_opinion(source, events.last())),
    }
}

/// Deeper nesting is refused: nobody writes it, it would exhaust the stack, and libyaml slows down with it.
pub(super) const DEEPEST: usize = 200;

pub(super) fn too_deep(place: &Place) -> Error {
    Error::parse(format!("nested more than {DEEPEST} deep")).at(place)
}

/// Collects the events; `false` if the text is nested too deep.
///
/// A block scalar that ends with the text, without a line end, makes the parser panic. So a line end is added
/// to the text, and taken from such a scalar.
fn parse(text: &str, events: &mut Vec<Event>) -> Result<bool, libyaml_safer::Error> {
    // the parser's own guess takes any character that begins with the byte 0xef for a broken byte order mark
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut depth = 0;
    let is_open = !text.is_empty() && !text.ends_with(['\n', '\r']);
    let last_line = text.matches('\n').count() as u64;
    let last_line_is_blank = text.rsplit('\n').next().is_some_and(|line| line.trim().is_empty());
    let mut input = text.as_bytes().chain(if is_open { b"\n".as_slice() } else { b"" });
    let mut parser = Parser::new();
    parser.set_encoding(Encoding::Utf8);
    parser.set_input(&mut input);
    loop {
        let event = parser.parse()?;
        let data = match event.data {
            EventData::StreamStart { .. } => continue,
            EventData::StreamEnd => return Ok(true),
            EventData::DocumentStart { .. } => Data::DocumentStart,
            EventData::DocumentEnd { .. } => Data::DocumentEnd,
            EventData::Alias { anchor } => Data::Alias(anchor),
            EventData::Scalar { anchor, tag, mut value, plain_implicit, style, .. } => {
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let is_last = is_block && is_open && event.end_mark.line > last_line;
                // of a last line that is blank only what exceeds the indentation belongs to the scalar
                let is_blank = |line: &str| !line.is_empty() && line.trim().is_empty();
                let last = value.strip_suffix('\n').and_then(|value| value.rsplit('\n').next());
                if is_last && last.is_some_and(|line| !last_line_is_blank || is_blank(line)) {
                    value.pop();
                }
                Data::Scalar { anchor, tag, text: value, plain: plain_implicit }
            }
            EventData::SequenceStart { anchor, tag, .. } => Data::SequenceStart { anchor, tag },
            EventData::MappingStart { anchor, tag, .. } => Data::MappingStart { anchor, tag },
            EventData::SequenceEnd | EventData::MappingEnd => Data::End,
        };
        match data {
            Data::SequenceStart { .. } | Data::MappingStart { .. } => depth += 1,
            Data::End => depth -= 1,
            _ => {}
        }
        events.push(Event { line: number(event.start_mark.line), column: number(event.start_mark.column), data });
        if depth > DEEPEST {
            return Ok(false);
        }
    }
}

/// The parser counts from 0, we from 1.
fn number(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX - 1) + 1
}

fn place(source: &Arc<Source>, mark: Mark) -> Place {
    Place::new(source, number(mark.line), number(mark.column))
}

fn describe(source: &Arc<Source>, error: &libyaml_safer::Error) -> Error {
    let Some(mark) = error.problem_mark() else {
        return match error.kind() {
            ErrorKind::Reader => forbidden_character(source, error.problem()),
            _ => Error::parse(format!("not valid YAML: {error}")).at(&Place::start(source)),
        };
    };
    let place = place(source, mark);
    let described = match error.context() {
        Some(context) => Error::parse(format!("not valid YAML: {context} {}", error.problem())),
        None => Error::parse(format!("not valid YAML: {}", error.problem())),
    };
    let described = hints::add(described, source, &place);
    match (error.context(), error.context_mark()) {
        (Some(context), Some(mark)) if number(mark.line) != place.line => {
            described.at_label(&self::place(source, mark), context)
        }
        _ => described,
    }
}

/// libyaml names a forbidden character by its byte offset, if at all; find it ourselves.
fn forbidden_character(source: &Arc<Source>, problem: &str) -> Error {
    let (mut line, mut column) = (1, 1);
    for (index, character) in source.text.chars().enumerate() {
        let is_byte_order_mark = index == 0 && character == '\u{feff}';
        if !is_allowed(character) && !is_byte_order_mark {
            return Error::parse(format!(
                "not valid YAML: {problem} (character U+{:04X}, write it as `\"\\u{:04x}\"` in double quotes)",
                character as u32, character as u32
            ))
            .at(&Place::new(source, line, column));
        }
        if character == '\n' {
            (line, column) = (line + 1, 1);
        } else {
            column += 1;
        }
    }
    Error::parse(format!("not valid YAML: {problem}")).at(&Place::start(source))
}

/// The characters that YAML 1.1 allows (its production `c-printable`).
fn is_allowed(character: char) -> bool {
    matches!(character,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}'
        | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
}

/// Words the error of a text on which the parser panicked.
fn second_opinion(source: &Arc<Source>, last: Option<&Event>) -> Error {
    use serde::de::Deserialize;
    for document in serde_yaml::Deserializer::from_str(&source.text) {
        if let Err(error) = serde::de::IgnoredAny::deserialize(document) {
            let text = error.to_string();
            let words = text.split(" at line ").next().unwrap_or(&text);
            let place = match error.location() {
                Some(location) => Place::new(source, count(location.line()), count(location.column())),
                None => Place::start(source),
            };
            return hints::add(Error::parse(format!("not valid YAML: {words}")), source, &place);
        }
    }
    let place = last.map_or_else(|| Place::start(source), |event| Place::new(source, event.line, event.column));
    Error::parse("not valid YAML: cannot read what follows here").at(&place)
}

fn count(number: usize) -> u32 {
    u32::try_from(number.max(1)).unwrap_or(u32::MAX)
}

thread_local! {
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Runs `work`; a panic in it is caught and prints nothing. Panics elsewhere print as before.
pub(super) fn silently<T>(work: AssertUnwindSafe<impl FnOnce() -> T>) -> std::thread::Result<T> {
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !SILENT.get() {
                usual(info);
            }
        }));
    });
    SILENT.set(true);
    let result = catch_unwind(work);
    SILENT.set(false);
    result
}
