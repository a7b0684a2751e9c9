//! `-e`: variables from the command line.

use std::path::Path;

use crate::error::{Error, Result};
use crate::inventory::load_vars_file;
use crate::playbook::free_form::{RAW_PARAMS, parse_key_values};
use crate::source::{Place, Source};
use crate::value::{Map, Value, merge_maps};
use crate::vault::Keyring;
use crate::yaml;

/// The variables of all `-e` together; the last one of a name counts, but that maps may be merged.
pub fn parse(texts: &[String], keyring: &Keyring, merges_maps: bool) -> Result<Map> {
    let mut variables = Map::new();
    for text in texts {
        let more = one(text, keyring)?;
        match merges_maps {
            true => variables = merge_maps(variables, &more),
            false => variables.extend(more),
        }
    }
    Ok(variables)
}

fn one(text: &str, keyring: &Keyring) -> Result<Map> {
    let trimmed = text.trim();
    if let Some(file) = trimmed.strip_prefix('@') {
        return load_vars_file(Path::new(file), keyring);
    }
    let source = Source::new("--extra-vars", text);
    if trimmed.starts_with(['{', '[']) {
        let variables = yaml::load_vars(&source)?;
        check_names(&variables, &source)?;
        return Ok(variables);
    }
    if trimmed.starts_with(['/', '.']) {
        return Err(Error::usage(format!("`--extra-vars {trimmed}` is no variable"))
            .hint(format!("a file is read if `@` stands before it: `-e @{trimmed}`")));
    }
    let variables = parse_key_values(text, false)
        .map_err(|error| Error::usage(error.message().to_owned()).at(&Place::start(&source)))?;
    if let Some(raw) = variables.get(RAW_PARAMS) {
        let word = raw.to_text().into_owned();
        let column = text.find(word.trim()).map_or(1, |at| text[..at].chars().count() as u32 + 1);
        return Err(Error::usage(format!("`{}` is no variable", word.trim()))
            .at(&Place::new(&source, 1, column))
            .hint("write `name=value`, with quotes around values that have blanks"));
    }
    check_names(&variables, &source)?;
    Ok(variables)
}

fn check_names(variables: &Map, source: &std::sync::Arc<Source>) -> Result<()> {
    for name in variables.keys() {
        let text = name.to_text();
        let is_name = text.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && text.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !is_name || !matches!(name, Value::Str(_)) {
            let column = source.text.find(text.as_ref()).map_or(1, |at| source.text[..at].chars().count() as u32 + 1);
            return Err(Error::usage(format!("`{text}` cannot be the name of a variable"))
                .at(&Place::new(source, 1, column))
                .hint("names have letters, digits and `_`, and do not begin with a digit"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(texts: &[&str]) -> Result<String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        Ok(Value::map(parse(&texts, &Keyring::default(), false)?).to_json().to_string())
    }

    #[test]
    fn variables_are_pairs_yaml_json_or_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("v.yml");
        std::fs::write(&file, "n: 3\nname: file\n").expect("written");
        let cases: &[(&[&str], &str)] = &[
            (&["a=1 b='x y'"], r#"{"a":"1","b":"x y"}"#),
            (&[r#"{"a": 1, "b": [true]}"#], r#"{"a":1,"b":[true]}"#),
            (&["{a: 1}"], r#"{"a":1}"#),
            (&["a=1", "a=2 c=3"], r#"{"a":"2","c":"3"}"#),
            (&[], "{}"),
        ];
        for (texts, expected) in cases {
            assert_eq!(json(texts).expect("variables"), *expected, "{texts:?}");
        }
        let file = format!("@{}", file.display());
        assert_eq!(json(&["name=x", &file]).expect("variables"), r#"{"name":"file","n":3}"#);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, message) in [
            ("a=1 b", "--extra-vars:1:5: `b` is no variable"),
            ("vars.yml", "--extra-vars:1:1: `vars.yml` is no variable"),
            ("./vars.yml", "`--extra-vars ./vars.yml` is no variable"),
            ("my-name=1", "--extra-vars:1:1: `my-name` cannot be the name of a variable"),
            ("{a: 1", "--extra-vars:2:1: not valid YAML: "),
            ("[1, 2]", "--extra-vars:1:1: a file of variables must be a mapping, this is a sequence"),
        ] {
            let error = json(&[text]).expect_err(text).to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }
}
