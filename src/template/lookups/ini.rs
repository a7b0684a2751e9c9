//! The lookup `ini`: values of files in INI format, as Python's `configparser` reads them, and of Java properties
//! (<https://docs.python.org/3/library/configparser.html>).

use super::files::read_encoded;
use super::{Lookup, terms};
use crate::python_regex::{self as regex, Flags};
use crate::template::call::{Call, entry, text_of};
use crate::template::error::{Result, TemplateError};
use crate::value::Value;

pub static LOOKUPS: &[Lookup] = &[entry(
    &["ini"],
    &[
        "_terms",
        "type",
        "file",
        "section",
        "re",
        "encoding",
        "default",
        "case_sensitive",
        "allow_no_value",
        "allow_none",
        "interpolation",
    ],
    "values of a file in INI format",
    ini,
)];

/// The options by name, each with its place among the parameters and its value if it is not given.
const OPTIONS: &[(&str, usize, &str)] = &[
    ("type", 1, "ini"),
    ("file", 2, "ansible.ini"),
    ("section", 3, "global"),
    ("re", 4, "false"),
    ("encoding", 5, "utf-8"),
    ("default", 6, ""),
    ("case_sensitive", 7, "false"),
    ("allow_no_value", 8, "false"),
    ("allow_none", 9, "false"),
    ("interpolation", 10, "true"),
];

/// The section that a file of Java properties is taken for.
const PROPERTIES: &str = "java_properties";

/// The section whose values all others have too.
const DEFAULTS: &str = "DEFAULT";

/// Values that stand in each other's values: no deeper than this.
const DEEPEST: usize = 10;

/// A key and its value, if it has one.
type Entry = (String, Option<String>);

/// A term of the lookup: what is looked for, and options written behind it.
struct Term {
    key: String,
    options: Vec<(String, String)>,
}

impl Term {
    /// Reads `user section=db file=users.ini`; a value goes on until the next option.
    fn parse(text: &str) -> Result<Term> {
        if !text.contains('=') && !text.trim().contains(' ') {
            return Ok(Term { key: text.to_owned(), options: Vec::new() });
        }
        let mut key = String::new();
        let mut options: Vec<(String, String)> = Vec::new();
        for word in text.split_whitespace() {
            match word.split_once('=') {
                Some((name, value)) if OPTIONS.iter().any(|(known, ..)| *known == name) => {
                    options.push((name.to_owned(), value.to_owned()));
                }
                Some((name, _)) => return Err(TemplateError::failed(format!("{name} is not a valid option."))),
                None => {
                    let to = options.last_mut().map_or(&mut key, |(_, value)| value);
                    if !to.is_empty() {
                        to.push(' ');
                    }
                    to.push_str(word);
                }
            }
        }
        if key.is_empty() {
            return Err(TemplateError::failed(format!(
                "No key to lookup was provided as first term with in string inline options: {text}"
            )));
        }
        Ok(Term { key, options })
    }

    fn option(&self, call: &Call<'_>, name: &str) -> Result<String> {
        let written = self.options.iter().rev().find(|(option, _)| option == name);
        if let Some((_, value)) = written {
            return Ok(value.clone());
        }
        let Some((_, index, default)) = OPTIONS.iter().find(|(known, ..)| *known == name) else {
            return Ok(String::new());
        };
        call.text_or(*index, default).map(std::borrow::Cow::into_owned)
    }

    fn flag(&self, call: &Call<'_>, name: &str) -> Result<bool> {
        let text = self.option(call, name)?;
        Value::from(text.as_str())
            .to_ansible_bool()
            .ok_or_else(|| TemplateError::failed(format!("`{name}` must be true or false, not `{text}`")))
    }
}

/// How a file is read.
struct Rules {
    case_sensitive: bool,
    /// A key may stand alone.
    allows_no_value: bool,
    interpolates: bool,
}

impl Rules {
    fn key(&self, key: &str) -> String {
        if self.case_sensitive { key.to_owned() } else { key.to_lowercase() }
    }
}

/// A file that was read: sections with their keys and values in order.
struct Ini<'a> {
    rules: &'a Rules,
    sections: Vec<(String, Vec<Entry>)>,
}

impl<'a> Ini<'a> {
    fn parse(text: &str, first: Option<&str>, rules: &'a Rules, file: &str) -> Result<Ini<'a>> {
        let mut sections: Vec<(String, Vec<Entry>)> =
            first.map(|name| (name.to_owned(), Vec::new())).into_iter().collect();
        let mut indent = 0;
        for (number, line) in text.lines().enumerate() {
            let at = |words: String| TemplateError::failed(format!("{words} ({file}, line {})", number + 1));
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
                continue;
            }
            // a line that is indented further goes on with the value above
            let depth = line.len() - line.trim_start().len();
            let above = sections.last_mut().and_then(|(_, entries)| entries.last_mut());
            if let (true, Some((_, Some(value)))) = (depth > indent, above) {
                value.push('\n');
                value.push_str(trimmed);
                continue;
            }
            indent = depth;
            if let Some((name, _)) = trimmed.strip_prefix('[').and_then(|rest| rest.rsplit_once(']')) {
                if sections.iter().any(|(known, _)| known == name) && name != DEFAULTS {
                    return Err(at(format!("section '{name}' already exists")));
                }
                sections.push((name.to_owned(), Vec::new()));
                continue;
            }
            let Some((section, entries)) = sections.last_mut() else {
                return Err(at("File contains no section headers.".to_owned()));
            };
            let (key, value) = match trimmed.split_once(['=', ':']) {
                Some((key, value)) => (rules.key(key.trim()), Some(value.trim().to_owned())),
                None if rules.allows_no_value => (rules.key(trimmed), None),
                None => {
                    return Err(at(format!(
                        "Source contains parsing errors: `{trimmed}` has no value, `allow_no_value` lets it stand"
                    )));
                }
            };
            if entries.iter().any(|(known, _)| *known == key) {
                return Err(at(format!(
                    "Duplicate option in '{file}': option '{key}' in section '{section}' already exists"
                )));
            }
            entries.push((key, value));
        }
        Ok(Ini { rules, sections })
    }

    fn section(&self, name: &str) -> Option<&[Entry]> {
        self.sections.iter().find(|(known, _)| known == name).map(|(_, entries)| entries.as_slice())
    }

    /// The entries of a section, and those of all sections that it has not itself.
    fn entries(&self, section: &str) -> Option<Vec<&Entry>> {
        let own = self.section(section)?;
        let mut entries: Vec<&Entry> = own.iter().collect();
        let more = self.section(DEFAULTS).unwrap_or_default().iter();
        entries.extend(more.filter(|(name, _)| !own.iter().any(|(known, _)| known == name)));
        Some(entries)
    }

    /// The value with `%(name)s` replaced by other values of its section.
    fn expand(&self, entries: &[&Entry], value: &str, depth: usize) -> Result<String> {
        if !self.rules.interpolates || !value.contains('%') {
            return Ok(value.to_owned());
        }
        if depth > DEEPEST {
            return Err(TemplateError::failed(format!(
                "values that use each other are nested too deeply in `{value}`"
            )));
        }
        let mut out = String::new();
        let mut rest = value;
        while let Some((before, after)) = rest.split_once('%') {
            out.push_str(before);
            if let Some(after) = after.strip_prefix('%') {
                out.push('%');
                rest = after;
                continue;
            }
            let Some((name, after)) = after.strip_prefix('(').and_then(|after| after.split_once(")s")) else {
                return Err(TemplateError::failed(format!(
                    "'%' must be followed by '%' or '(', found: '%{after}'; `interpolation=false` takes it as it is"
                )));
            };
            let name = self.rules.key(name);
            let Some((_, inner)) = entries.iter().find(|(known, _)| *known == name) else {
                return Err(TemplateError::failed(format!("`{value}` uses `{name}`, which the section has not")));
            };
            out.push_str(&self.expand(entries, inner.as_deref().unwrap_or_default(), depth + 1)?);
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }
}

fn ini(call: &Call<'_>) -> Result<Vec<Value>> {
    let mut out = Vec::new();
    for term in terms(call)? {
        one(call, &Term::parse(&text_of(term)?)?, &mut out)?;
    }
    Ok(out)
}

fn one(call: &Call<'_>, term: &Term, out: &mut Vec<Value>) -> Result<()> {
    let rules = Rules {
        case_sensitive: term.flag(call, "case_sensitive")?,
        allows_no_value: term.flag(call, "allow_no_value")? || term.flag(call, "allow_none")?,
        interpolates: term.flag(call, "interpolation")?,
    };
    let is_properties = term.option(call, "type")? == "properties";
    let section = if is_properties { PROPERTIES.to_owned() } else { term.option(call, "section")? };
    let (path, text) = read_encoded(call, &term.option(call, "file")?, &term.option(call, "encoding")?)?;
    let path = path.display().to_string();
    let parsed = Ini::parse(&text, is_properties.then_some(PROPERTIES), &rules, &path)?;
    let Some(entries) = parsed.entries(&section) else {
        return Err(TemplateError::failed(format!("No section '{section}' in {path}")));
    };
    let mut add = |value: &Option<String>| -> Result<()> {
        if let Some(value) = value {
            out.push(Value::from(parsed.expand(&entries, value, 0)?));
        }
        Ok(())
    };
    if term.flag(call, "re")? {
        let pattern = regex::compile(&term.key, Flags::default())?;
        for (name, value) in &entries {
            if regex::search(&pattern, name)?.is_some() {
                add(value)?;
            }
        }
        return Ok(());
    }
    let key = rules.key(&term.key);
    match entries.iter().find(|(name, _)| *name == key) {
        Some((_, value)) => add(value),
        None => {
            out.push(Value::from(term.option(call, "default")?));
            Ok(())
        }
    }
}
