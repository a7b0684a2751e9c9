//! `ansible.builtin.assemble`: the files of a directory, one behind the other, are one file.

use std::fs;
use std::path::Path;

use std::sync::Arc;

use fancy_regex::Regex;

use crate::connect::shell::{Response, quote};
use crate::host::{Failure, Footprint, Query, Read};
use crate::vault::Keyring;

use super::copy::{find_source, keyring};
use super::file_common::content::Content;
use super::file_common::install::{Placement, Source, locate, put};
use super::file_common::path::absolute;
use super::file_common::permissions::{MODE, OWNERSHIP};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};
use crate::python_regex::{Flags, compile, is_match};

pub const MODULE: Module = Module {
    name: "ansible.builtin.assemble",
    aliases: &[],
    summary: "Puts the files of a directory together into one",
    args: &[
        Arg::new("src", Type::Path, "the directory; its files are taken in the order of their names").required(),
        Arg::new("dest", Type::Path, "the file that they become").required(),
        Arg::new("remote_src", Type::Bool, "the directory is on the host, else on the controller").default("true"),
        Arg::new("delimiter", Type::Str, "what stands between two files; a newline follows it"),
        Arg::new("regexp", Type::Str, "only files whose name it matches are taken"),
        Arg::new("ignore_hidden", Type::Bool, "leave out names that begin with a dot").default("false"),
        Arg::new("follow", Type::Bool, "write through a symbolic link at `dest`, else replace it").default("false"),
        Arg::new("backup", Type::Bool, "keep the old file under a name with the time").default("false"),
        Arg::new("validate", Type::Str, "a command that must accept the new file, `%s`, before it replaces the old"),
        Arg::new("decrypt", Type::Bool, "decrypt files of the controller that are encrypted with vault")
            .default("true"),
        MODE,
        Arg::shared(OWNERSHIP),
    ],
    rules: &[Rule::Missing(&["src", "dest"], "src and dest are required")],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("dest", "the file"),
        ("src", "the directory"),
        ("checksum", "SHA-1 of the content"),
        ("md5sum", "MD5 of the content, if it was written"),
        ("backup_file", "where the old file is kept"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, context, .. } = invocation;
    let selection = Selection::parse(&args)?;
    let placement = Placement::read(&host, &args).await?;
    let (directory, fragments, place) = if args.bool("remote_src") {
        let directory = absolute(&host, args.text("src")).await?;
        let read = host.read(Fragments(directory.clone()));
        let (fragments, place) = futures_util::try_join!(read, locate(&host, &args, &placement, None))?;
        (directory, fragments, place)
    } else {
        let path = find_source(&context, "files", args.text("src"))?;
        let fragments = read_fragments(&path, keyring(&args, &context))?;
        (path.display().to_string(), fragments, locate(&host, &args, &placement, None).await?)
    };
    let content = assemble(fragments, &selection)?;
    let source = Source { content: Content::Bytes(content), name: None, shown: directory.clone(), mode: 0o644 };
    let outcome = put(&host, &placement, place, source).await?;
    Ok(outcome.with("src", directory).with("msg", "OK"))
}

/// Which files are taken, and what stands between them.
struct Selection {
    regexp: Option<Arc<Regex>>,
    ignore_hidden: bool,
    delimiter: Option<Vec<u8>>,
}

impl Selection {
    fn parse(args: &Args) -> Result<Selection, Failure> {
        let regexp = args.str("regexp").map(|pattern| compile(pattern, Flags::default())).transpose()?;
        let delimiter = args.str("delimiter").filter(|text| !text.is_empty()).map(unescape).transpose()?;
        Ok(Selection { regexp, ignore_hidden: args.bool("ignore_hidden"), delimiter })
    }
}

/// Resolves the escapes of Python's byte strings: `\n`, `\t`, `\x41`, `\101`, `\\`, quotes.
fn unescape(text: &str) -> Result<Vec<u8>, Failure> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let Some(letter) = bytes.get(at) else {
            return Err(Failure::new(format!("the delimiter {text:?} ends in a lone backslash")));
        };
        at += 1;
        match letter {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'a' => out.push(0x07),
            b'b' => out.push(0x08),
            b'f' => out.push(0x0c),
            b'v' => out.push(0x0b),
            b'\\' | b'\'' | b'"' => out.push(*letter),
            b'\n' => {}
            b'x' => {
                let digits = text.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
                out.push(digits.ok_or_else(|| Failure::new(format!("the delimiter {text:?} has a wrong \\x escape")))?);
                at += 2;
            }
            b'0'..=b'7' => {
                let more = bytes[at..].iter().take(2).take_while(|digit| (b'0'..=b'7').contains(digit)).count();
                let value = bytes[at - 1..at + more].iter().fold(0_u32, |sum, digit| sum * 8 + u32::from(digit - b'0'));
                out.push((value & 0xff) as u8);
                at += more;
            }
            other => out.extend([b'\\', *other]),
        }
    }
    Ok(out)
}

/// Puts the files together, in the order of their names.
fn assemble(mut fragments: Vec<(String, Vec<u8>)>, selection: &Selection) -> Result<Vec<u8>, Failure> {
    fragments.sort_by(|left, right| left.0.cmp(&right.0));
    let mut out = Vec::new();
    let mut previous: Option<bool> = None;
    for (name, content) in fragments {
        if selection.ignore_hidden && name.starts_with('.') {
            continue;
        }
        if let Some(regexp) = &selection.regexp
            && !is_match(regexp, &name)?
        {
            continue;
        }
        if let Some(ended_in_newline) = previous {
            if !ended_in_newline {
                out.push(b'\n');
            }
            if let Some(delimiter) = &selection.delimiter {
                out.extend_from_slice(delimiter);
                if !delimiter.ends_with(b"\n") {
                    out.push(b'\n');
                }
            }
        }
        previous = Some(content.ends_with(b"\n"));
        out.extend_from_slice(&content);
    }
    Ok(out)
}

fn read_fragments(directory: &Path, keyring: Option<&Keyring>) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let refuse =
        |error: std::io::Error| Failure::new(format!("cannot read {} on the controller: {error}", directory.display()));
    if !directory.is_dir() {
        return Err(Failure::new(format!("Source ({}) is not a directory", directory.display())));
    }
    let mut fragments = Vec::new();
    for entry in fs::read_dir(directory).map_err(refuse)? {
        let path = entry.map_err(refuse)?.path();
        if path.is_file() {
            let source = super::copy::read_source(&path, keyring)?;
            let content = source.content.bytes().unwrap_or_default().to_vec();
            fragments.push((source.name.unwrap_or_default(), content));
        }
    }
    Ok(fragments)
}

/// Asks for the names and contents of all files in a directory of the host.
struct Fragments(String);

impl Read for Fragments {
    type Answer = Vec<(String, Vec<u8>)>;

    fn query(&self) -> Query {
        // for each file its size, its name, a slash and a newline (no name contains a slash), and its content
        let text = format!(
            "d={}; [ -d \"$d\" ] || {{ [ -e \"$d\" ] && exit 4; exit 3; }}; cd \"$d\" || exit 5; \
             for f in * .[!.]* ..?*; do [ -f \"./$f\" ] || continue; s=$(wc -c <\"./$f\") || exit 5; \
             printf '%s %s/\\n' \"$((s))\" \"$f\"; cat \"./$f\" || exit 5; done",
            quote(&self.0)
        );
        Query::Script { text, footprint: Footprint::tree(self.0.as_str()) }
    }

    fn parse(&self, response: &Response) -> Result<Vec<(String, Vec<u8>)>, Failure> {
        match response.code {
            Some(0) => {}
            Some(3) => return Err(Failure::new(format!("Source ({}) does not exist", self.0))),
            Some(4) => return Err(Failure::new(format!("Source ({}) is not a directory", self.0))),
            _ => return Err(Failure::new(format!("cannot read {}: {}", self.0, response.error_text().trim()))),
        }
        parse_fragments(&response.stdout)
            .ok_or_else(|| Failure::new(format!("the files in {} changed while they were read", self.0)))
    }
}

fn parse_fragments(mut bytes: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let mut fragments = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.windows(2).position(|pair| pair == b"/\n")?;
        let (size, name) = std::str::from_utf8(&bytes[..end]).ok()?.split_once(' ')?;
        let content = bytes.get(end + 2..)?;
        let (content, rest) = content.split_at_checked(size.parse().ok()?)?;
        fragments.push((name.to_owned(), content.to_vec()));
        bytes = rest;
    }
    Some(fragments)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::modules::testing::{Play, check_module, context_of, play, play_in, run_module, shells, snapshot, undo};
    use crate::template::SearchPath;
    use crate::value::{Map, Value};

    fn parts(parts: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
        parts.iter().map(|(name, content)| ((*name).to_owned(), content.as_bytes().to_vec())).collect()
    }

    #[test]
    fn fragments_come_in_order_each_on_its_own_line() {
        let files = parts(&[("20-b", "b\n"), ("10-a", "a"), (".hidden", "h\n"), ("30-c", "c\n")]);
        let selection = |delimiter: Option<&str>, regexp: Option<&str>, ignore_hidden| Selection {
            regexp: regexp.map(|pattern| compile(pattern, Flags::default()).unwrap()),
            ignore_hidden,
            delimiter: delimiter.map(|text| unescape(text).unwrap()),
        };
        let assembled = |selection: &Selection| String::from_utf8(assemble(files.clone(), selection).unwrap()).unwrap();
        assert_eq!(assembled(&selection(None, None, false)), "h\na\nb\nc\n");
        assert_eq!(assembled(&selection(None, None, true)), "a\nb\nc\n");
        assert_eq!(assembled(&selection(Some("---"), None, true)), "a\n---\nb\n---\nc\n");
        assert_eq!(assembled(&selection(Some("--\\n"), Some("^[12]0"), true)), "a\n--\nb\n");
    }

    #[test]
    fn escapes_of_the_delimiter_are_pythons() {
        assert_eq!(unescape(r"a\n\t\x41\101\\\q").unwrap(), b"a\n\tAA\\\\q");
        assert!(unescape("a\\").is_err());
        assert!(unescape(r"\xZZ").is_err());
    }

    #[test]
    fn a_directory_of_the_host_becomes_a_file_once() {
        for shell in shells() {
            let root = tempfile::tempdir().unwrap();
            std::fs::create_dir(root.path().join("parts")).unwrap();
            for (name, content) in [("1 one", "one"), ("2", "two\n"), (".0", "zero\n"), ("3", "")] {
                std::fs::write(root.path().join("parts").join(name), content).unwrap();
            }
            let dest = root.path().join("whole");
            let args = [
                ("src", Value::from(root.path().join("parts").to_str().unwrap())),
                ("dest", dest.to_str().unwrap().into()),
                ("mode", "0600".into()),
                ("validate", "grep -q two %s".into()),
            ];
            let before = snapshot(root.path());
            assert!(check_module(&MODULE, &args).unwrap().changed);
            assert_eq!(snapshot(root.path()), before);
            let played = play(&MODULE, &args, &Play { shell, ..Play::default() });
            assert!(played.result.unwrap().changed);
            assert_eq!(std::fs::read_to_string(&dest).unwrap(), "zero\none\ntwo\n");
            let again = play(&MODULE, &args, &Play { shell, ..Play::default() });
            assert!(!again.result.unwrap().changed);
            assert_eq!(again.batches, 1);
            undo(&played.changes);
            assert_eq!(snapshot(root.path()), before);
        }
    }

    #[test]
    fn a_directory_of_the_controller_too() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("files/parts")).unwrap();
        std::fs::write(root.path().join("files/parts/a"), "a\n").unwrap();
        let search = SearchPath { playbook_dir: root.path().to_owned(), ..SearchPath::default() };
        let context = context_of(Map::new(), Arc::new(search));
        let dest = root.path().join("whole");
        let args = [("src", "parts".into()), ("dest", dest.to_str().unwrap().into()), ("remote_src", false.into())];
        assert!(play_in(&MODULE, &args, &Play::default(), context).result.unwrap().changed);
        assert_eq!(std::fs::read_to_string(&dest).unwrap(), "a\n");
        let missing = [("src", "/no/such".into()), ("dest", "/x".into())];
        assert_eq!(run_module(&MODULE, &missing).unwrap_err().message, "Source (/no/such) does not exist");
    }
}
