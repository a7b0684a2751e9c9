//! Paths of the host: `~`, variables of its environment and relative paths become absolute ones.

use futures_util::future::try_join_all;

use crate::connect::shell::{Response, quote};
use crate::host::reads::Script;
use crate::host::{Failure, Footprint, Host, Query, Read};

/// The absolute path that an argument names. Asks the host only if the path has a `~`, a variable, or is relative.
pub async fn absolute(host: &Host, path: &str) -> Result<String, Failure> {
    if path.is_empty() {
        return Err(Failure::new("a path is empty"));
    }
    if path.starts_with('/') && !path.contains('$') {
        return Ok(clean(path));
    }
    let read = Script { text: expansion(path), footprint: Footprint::nothing() };
    let answer = host.read(read).await?;
    let text = answer.text();
    if answer.success() && text.starts_with('/') {
        Ok(clean(&text))
    } else {
        Err(Failure::new(format!(
            "cannot tell what the path `{path}` means on the host: {}",
            answer.error_text().trim()
        )))
    }
}

/// Shell code that prints what `path` means to the user's shell.
fn expansion(path: &str) -> String {
    let mut code = String::new();
    let mut rest = path;
    if let Some(tail) = path.strip_prefix('~') {
        let end = tail.find('/').unwrap_or(tail.len());
        let user = &tail[..end];
        if user.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter)) {
            // unquoted: the shell knows the home directories
            code.push_str(&format!(
                "h=~{user}; case $h in /*) ;; *) echo 'no such user' >&2; exit 1 ;; esac; printf %s \"$h\"; "
            ));
            rest = &tail[end..];
        }
    } else if !path.starts_with(['/', '$']) {
        code.push_str("printf %s/ \"$PWD\"; ");
    }
    for piece in pieces(rest) {
        match piece {
            Piece::Text(text) => code.push_str(&format!("printf %s {}; ", quote(text))),
            Piece::Variable { name, written } => code.push_str(&format!(
                "if [ \"${{{name}+x}}\" ]; then printf %s \"${name}\"; else printf %s {}; fi; ",
                quote(written)
            )),
        }
    }
    code
}

enum Piece<'a> {
    Text(&'a str),
    Variable { name: &'a str, written: &'a str },
}

/// Splits at `$name` and `${name}`.
fn pieces(path: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = path;
    let mut start = 0;
    while let Some(offset) = rest[start..].find('$') {
        let at = start + offset;
        let tail = &rest[at + 1..];
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let (name, length) = match tail.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((name, _)) => (name, name.len() + 2),
            None => {
                let end = tail.find(|letter| !is_word(letter)).unwrap_or(tail.len());
                (&tail[..end], end)
            }
        };
        let valid = !name.is_empty() && name.chars().all(is_word) && !name.starts_with(|c: char| c.is_ascii_digit());
        if !valid {
            start = at + 1;
            continue;
        }
        if at > 0 {
            pieces.push(Piece::Text(&rest[..at]));
        }
        pieces.push(Piece::Variable { name, written: &rest[at..at + 1 + length] });
        rest = &rest[at + 1 + length..];
        start = 0;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

/// Without doubled and trailing slashes and `/./`; `..` stays, since links decide what it means.
pub fn clean(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    format!("/{}", parts.join("/"))
}

/// The directory of a clean path; `/` for the root itself.
pub fn parent(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(at) => &path[..at],
    }
}

/// The last name of a path.
pub fn base_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// The directories above a clean path, the highest first, without `/`.
pub fn ancestors(path: &str) -> Vec<&str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).filter(|part| !part.is_empty()).collect()
}

/// `directory/name`, also for the root.
pub fn join(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

/// The path at the end of all symbolic links (`readlink -f`).
#[derive(Debug, Clone)]
pub struct RealPath(pub String);

impl Read for RealPath {
    type Answer = String;

    fn query(&self) -> Query {
        // any link on the way may change, so this is asked again after every change of a file above it
        let text = format!("readlink -f {}", quote(&self.0));
        Query::Script { text, footprint: Footprint::Everything }
    }

    fn parse(&self, response: &Response) -> Result<String, Failure> {
        let text = response.text();
        let path = text.strip_suffix('\n').unwrap_or(&text);
        if response.success() && path.starts_with('/') {
            Ok(path.to_owned())
        } else {
            Err(Failure::new(format!("cannot follow the symbolic link {}: {}", self.0, response.error_text().trim())))
        }
    }
}

/// Several paths at once.
pub async fn absolute_all(host: &Host, paths: &[String]) -> Result<Vec<String>, Failure> {
    try_join_all(paths.iter().map(|path| absolute(host, path))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart() {
        assert_eq!(clean("/a//b/./c/"), "/a/b/c");
        assert_eq!(clean("/"), "/");
        assert_eq!(parent("/a/b"), "/a");
        assert_eq!(parent("/a"), "/");
        assert_eq!(ancestors("/a/b/c"), ["/a", "/a/b"]);
        assert_eq!(base_name("/a/b/"), "b");
        assert_eq!(join("/", "a"), "/a");
    }

    #[test]
    fn the_shell_expands_what_python_would() {
        let run = |path: &str| {
            let output = std::process::Command::new("sh")
                .args(["-c", &expansion(path)])
                .env("HOME", "/home/kp")
                .env("NODE", "n 1")
                .current_dir("/")
                .output()
                .unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(run("~/a b"), "/home/kp/a b");
        assert_eq!(run("~root/x"), "/root/x");
        assert_eq!(run("/srv/$NODE/${NODE}x"), "/srv/n 1/n 1x");
        assert_eq!(run("/srv/$UNSET_VARIABLE/$1/$"), "/srv/$UNSET_VARIABLE/$1/$");
        assert_eq!(run("it's"), "//it's");
        assert_eq!(run("~nosuchuser/x"), "");
    }
}
