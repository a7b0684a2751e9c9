//! ssh_config(5): which options hold for a host. The first value of an option wins; what has no meaning here is
//! ignored.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::pattern;

/// Options that collect instead.
const COLLECTED: &[&str] = &["identityfile", "certificatefile"];

/// Options whose value is the rest of the line as it stands.
const RAW: &[&str] = &["proxycommand", "localcommand", "remotecommand", "knownhostscommand"];

/// So deep may `Include` go.
const DEPTH: usize = 16;

/// Who asks for whom.
#[derive(Debug, Clone)]
pub(super) struct Query {
    /// The host as it was asked for.
    pub(super) original: String,
    /// The user on the controller.
    pub(super) local_user: String,
    pub(super) home: PathBuf,
}

/// The options that hold for one host: lower-case name, values.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    values: HashMap<String, Vec<String>>,
}

impl Options {
    /// The words of an option.
    pub(super) fn words(&self, name: &str) -> Option<&[String]> {
        self.values.get(name).map(Vec::as_slice)
    }

    /// The first word of an option.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).and_then(|words| words.first()).map(String::as_str)
    }

    /// Every option with its words.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.values.iter().map(|(name, words)| (name.as_str(), words.as_slice()))
    }

    /// Sets an option unless it has a value.
    pub(super) fn set(&mut self, name: &str, words: Vec<String>) {
        // whichever of the two comes first also settles the other
        let rival = match name {
            "proxyjump" => Some("proxycommand"),
            "proxycommand" => Some("proxyjump"),
            _ => None,
        };
        if rival.is_some_and(|rival| self.values.contains_key(rival)) {
            return;
        }
        if COLLECTED.contains(&name) {
            self.values.entry(name.to_owned()).or_default().extend(words);
        } else {
            self.values.entry(name.to_owned()).or_insert(words);
        }
    }

    /// Takes `Keyword value` or `Keyword=value`, as `-o` has it.
    pub(super) fn set_line(&mut self, line: &str, place: &str) -> Result<(), String> {
        if let Some((keyword, rest)) = keyword(line) {
            let words = arguments(&keyword, rest).map_err(|fault| format!("{place}: {fault}"))?;
            self.set(&keyword, words);
        }
        Ok(())
    }

    /// Reads a file that may be missing.
    pub(super) fn read(&mut self, path: &Path, query: &Query, user_file: bool) -> Result<(), String> {
        let mut reader = Reader { options: self, query, user_file, follows: true };
        reader.file(path, true, 0)
    }
}

/// The options that one text of ssh_config gives for a host, in the order of their names; what it includes is not read.
pub fn options_for(text: &str, host: &str, user: &str) -> Result<Vec<(String, Vec<String>)>, String> {
    let query = Query { original: host.to_owned(), local_user: user.to_owned(), home: PathBuf::new() };
    let mut options = Options::default();
    let mut reader = Reader { options: &mut options, query: &query, user_file: true, follows: false };
    reader.text(text, Path::new("config"), true, 0)?;
    let mut options: Vec<_> = options.values.into_iter().collect();
    options.sort();
    Ok(options)
}

struct Reader<'a> {
    options: &'a mut Options,
    query: &'a Query,
    /// `Include` is followed.
    follows: bool,
    /// Decides where a relative `Include` is looked for.
    user_file: bool,
}

impl Reader<'_> {
    fn file(&mut self, path: &Path, active: bool, depth: usize) -> Result<(), String> {
        let text = match fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(format!("cannot read `{}`: {error}", path.display())),
        };
        self.text(&text, path, active, depth)
    }

    fn text(&mut self, text: &str, path: &Path, enclosing: bool, depth: usize) -> Result<(), String> {
        let mut active = enclosing;
        for (number, line) in text.lines().enumerate() {
            let place = format!("{}:{}", path.display(), number + 1);
            let Some((keyword, rest)) = keyword(line) else { continue };
            let words = arguments(&keyword, rest).map_err(|fault| format!("{place}: {fault}"))?;
            match keyword.as_str() {
                "host" => {
                    let patterns = words.iter().map(String::as_str);
                    active = enclosing && pattern::list_matches(patterns, &self.query.original);
                }
                "match" => {
                    active = enclosing && self.criteria(&words).map_err(|fault| format!("{place}: {fault}"))?;
                }
                "include" if !self.follows => {}
                "include" if active => {
                    if depth == DEPTH {
                        return Err(format!("{place}: `Include` goes deeper than {DEPTH} files"));
                    }
                    for word in &words {
                        for included in self.included(word) {
                            self.file(&included, active, depth + 1)?;
                        }
                    }
                }
                _ if active => self.options.set(&keyword, words),
                _ => {}
            }
        }
        Ok(())
    }

    /// True if all criteria of a `Match` hold.
    fn criteria(&self, words: &[String]) -> Result<bool, String> {
        let mut holds = true;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (negated, criterion) = match word.strip_prefix('!') {
                Some(criterion) => (true, criterion),
                None => (false, word.as_str()),
            };
            let criterion = criterion.to_lowercase();
            let subject = match criterion.as_str() {
                "all" | "final" => {
                    holds &= !negated;
                    continue;
                }
                // names are never canonicalised here
                "canonical" => {
                    holds &= negated;
                    continue;
                }
                "host" => self.options.get("hostname").unwrap_or(&self.query.original),
                "originalhost" => &self.query.original,
                "user" => self.options.get("user").unwrap_or(&self.query.local_user),
                "localuser" => &self.query.local_user,
                "exec" => {
                    return Err("`Match exec` is not supported; use `Match host` or set inventory variables".into());
                }
                other => return Err(format!("`Match {other}` is not supported")),
            };
            let Some(patterns) = words.next() else {
                return Err(format!("`Match {criterion}` names no pattern"));
            };
            holds &= pattern::list_matches(patterns.split(','), subject) != negated;
        }
        Ok(holds)
    }

    /// The files that an `Include` names, in order; none if nothing matches.
    fn included(&self, word: &str) -> Vec<PathBuf> {
        let home = &self.query.home;
        let path = match word.strip_prefix("~/") {
            Some(rest) => home.join(rest),
            None if self.user_file => home.join(".ssh").join(word),
            None => Path::new("/etc/ssh").join(word),
        };
        let mut found = vec![PathBuf::new()];
        for component in path.components() {
            let name = component.as_os_str().to_string_lossy();
            if !name.contains(['*', '?']) {
                found.iter_mut().for_each(|path| path.push(component));
                continue;
            }
            let mut next = Vec::new();
            for folder in &found {
                let entries = fs::read_dir(folder).into_iter().flatten().flatten();
                let names = entries.map(|entry| entry.file_name()).filter(|entry| {
                    let entry = entry.to_string_lossy();
                    pattern::matches(&name, &entry) && (!entry.starts_with('.') || name.starts_with('.'))
                });
                next.extend(names.map(|name| folder.join(name)));
            }
            next.sort();
            found = next;
        }
        found
    }
}

/// The keyword of a line in lower case, and the rest; `None` for a blank line or a comment.
fn keyword(line: &str) -> Option<(String, &str)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let end = line.find(|letter: char| letter.is_whitespace() || letter == '=').unwrap_or(line.len());
    let rest = line[end..].trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    Some((line[..end].to_lowercase(), rest))
}

fn arguments(keyword: &str, rest: &str) -> Result<Vec<String>, String> {
    let words = if RAW.contains(&keyword) { vec![rest.to_owned()] } else { words(rest)? };
    if words.iter().all(String::is_empty) {
        return Err(format!("`{keyword}` has no value"));
    }
    Ok(words)
}

/// Splits at blanks; quotes keep words together; `#` at the begin of a word begins a comment.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut letters = text.chars().peekable();
    loop {
        while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
        let mut word = String::new();
        let mut quote = None;
        match letters.peek() {
            None | Some('#') => return Ok(words),
            Some(_) => {}
        }
        while let Some(letter) = letters.next_if(|letter| quote.is_some() || !letter.is_whitespace()) {
            match (letter, quote) {
                ('\\', _) if letters.peek().is_some_and(|next| "\"'\\".contains(*next)) => word.extend(letters.next()),
                (letter, Some(open)) if letter == open => quote = None,
                ('"' | '\'', None) => quote = Some(letter),
                (letter, _) => word.push(letter),
            }
        }
        if quote.is_some() {
            return Err(format!("a quote is not closed in `{text}`"));
        }
        words.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str, original: &str) -> Result<Options, String> {
        let query = Query { original: original.into(), local_user: "me".into(), home: PathBuf::from("/no/such/home") };
        let mut options = Options::default();
        let mut reader = Reader { options: &mut options, query: &query, user_file: true, follows: true };
        reader.text(text, Path::new("config"), true, 0)?;
        Ok(options)
    }

    #[test]
    fn a_text_gives_options_without_what_it_includes() {
        let text = "Include /dev/null\nHost web*\nUser deploy\nPort 22\n";
        let named = |name: &str, value: &str| (name.to_owned(), vec![value.to_owned()]);
        assert_eq!(options_for(text, "web1", "me"), Ok(vec![named("port", "22"), named("user", "deploy")]));
        assert_eq!(options_for(text, "db1", "me"), Ok(Vec::new()));
        assert!(options_for("User 'x", "web1", "me").is_err());
    }

    #[test]
    fn the_first_value_wins_and_blocks_hold_for_their_hosts() {
        let text = r#"
            # everything here is of our own making
            Port 2200
            Host web* !web3
                User deploy
                IdentityFile ~/.ssh/web
            Host web1
                HostName=10.0.0.1
                User = nobody
                Port 22
                IdentityFile "~/.ssh/with blank"
            Match host 10.0.0.* user deploy,root
                ProxyJump gate
            Match !originalhost web1
                ProxyCommand nc -X "a b" %h %p # not a comment
                ProxyJump other
            Host *
                ServerAliveInterval 5   # ignored
        "#;
        let web1 = options(text, "web1").unwrap();
        assert_eq!((web1.get("port"), web1.get("user")), (Some("2200"), Some("deploy")));
        assert_eq!(web1.get("hostname"), Some("10.0.0.1"));
        assert_eq!(web1.words("identityfile").unwrap(), ["~/.ssh/web", "~/.ssh/with blank"]);
        assert_eq!((web1.get("proxyjump"), web1.get("proxycommand")), (Some("gate"), None));
        let web3 = options(text, "web3").unwrap();
        assert_eq!((web3.get("user"), web3.get("proxyjump")), (None, None));
        assert_eq!(web3.get("proxycommand"), Some("nc -X \"a b\" %h %p # not a comment"));
    }

    #[test]
    fn faults_name_their_line() {
        let cases = [
            (
                "Host a\nMatch exec \"true\"",
                "config:2: `Match exec` is not supported; use `Match host` or set inventory variables",
            ),
            ("User \"a", "config:1: a quote is not closed in `\"a`"),
            ("Port", "config:1: `port` has no value"),
            ("Match host", "config:1: `Match host` names no pattern"),
        ];
        for (text, message) in cases {
            assert_eq!(options(text, "a").unwrap_err(), message);
        }
    }

    #[test]
    fn included_files_belong_to_the_block_they_stand_in() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("conf.d")).unwrap();
        fs::write(folder.path().join("conf.d/1.conf"), "User one\nHost b\nPort 1\n").unwrap();
        fs::write(folder.path().join("conf.d/2.conf"), "User two\nCompression yes\n").unwrap();
        let text = format!("Host a\nInclude {}/conf.d/*.conf\nHost b\nPort 2\n", folder.path().display());
        let a = options(&text, "a").unwrap();
        assert_eq!((a.get("user"), a.get("compression"), a.get("port")), (Some("one"), Some("yes"), None));
        let b = options(&text, "b").unwrap();
        assert_eq!((b.get("user"), b.get("compression"), b.get("port")), (None, None, Some("2")));
    }
}
