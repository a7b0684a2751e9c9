//! The only file that writes to the terminal: data to stdout, warnings and errors to stderr.

use std::collections::HashSet;
use std::io::{self, BufRead, IsTerminal, Write};

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::error::{Error, Result};
use crate::source::Place;

/// The narrowest width that banners are made for, and the width where there is no terminal.
const COLUMNS: usize = 79;

/// Colours of what hosts came to, as Ansible's default ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Plain,
    Ok,
    Changed,
    Skipped,
    Failed,
    Unreachable,
    Unknown,
    Added,
    Removed,
    Hunk,
    Warning,
    Quiet,
}

impl Style {
    /// The parameters of the terminal's "select graphic rendition" (ECMA-48, section 8.3.117).
    fn code(self) -> &'static str {
        match self {
            Style::Plain => "",
            Style::Ok | Style::Added => "0;32",
            Style::Changed => "0;33",
            Style::Skipped | Style::Hunk => "0;36",
            Style::Failed | Style::Removed => "0;31",
            Style::Unreachable => "1;31",
            Style::Unknown | Style::Warning => "1;35",
            Style::Quiet => "0;90",
        }
    }
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colour {
    /// On terminals only.
    #[default]
    Auto,
    Always,
    Never,
}

/// What the terminal is, and what was written to it.
pub struct Ui {
    out: Sink,
    err: Sink,
    /// Columns of the terminal, at least 79.
    columns: usize,
    warned: HashSet<String>,
    /// Errors begin with `ERROR!`, as those of Ansible's tools.
    as_ansible: bool,
}

struct Sink {
    target: Target,
    colour: bool,
    buffer: Vec<u8>,
    /// Nobody reads any more.
    closed: bool,
}

#[derive(PartialEq, Eq)]
enum Target {
    Stdout,
    Stderr,
    Memory,
}

impl Ui {
    /// The process's own stdout and stderr.
    pub fn terminal(colour: Colour) -> Ui {
        let sink = |target, is_terminal: bool| Sink {
            target,
            colour: match colour {
                Colour::Auto => is_terminal && std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
                Colour::Always => true,
                Colour::Never => false,
            },
            buffer: Vec::new(),
            closed: false,
        };
        Ui {
            out: sink(Target::Stdout, io::stdout().is_terminal()),
            err: sink(Target::Stderr, io::stderr().is_terminal()),
            columns: columns(),
            warned: HashSet::new(),
            as_ansible: false,
        }
    }

    /// Lets errors begin with `ERROR!`, for scripts that look for it in the output of Ansible's tools.
    /// True under the names of Ansible's tools.
    pub fn speaks_as_ansible(&self) -> bool {
        self.as_ansible
    }

    pub fn speak_as_ansible(&mut self) {
        self.as_ansible = true;
    }

    /// Keeps everything, without colour: for tests of what is written.
    pub fn memory() -> Ui {
        let sink = || Sink { target: Target::Memory, colour: false, buffer: Vec::new(), closed: false };
        Ui { out: sink(), err: sink(), columns: COLUMNS, warned: HashSet::new(), as_ansible: false }
    }

    /// What was written to stdout, of a [`Ui::memory`].
    pub fn written(&self) -> String {
        String::from_utf8_lossy(&self.out.buffer).into_owned()
    }

    /// What was written to stderr, of a [`Ui::memory`].
    pub fn written_errors(&self) -> String {
        String::from_utf8_lossy(&self.err.buffer).into_owned()
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    /// One or more lines of data.
    pub fn line(&mut self, text: &str) {
        self.styled(text, Style::Plain);
    }

    /// Lines of data in a colour.
    pub fn styled(&mut self, text: &str, style: Style) {
        let painted = self.paint(text, style);
        self.out.write(painted.as_bytes());
        self.out.write(b"\n");
    }

    /// Data as it is, without a line end.
    pub fn raw(&mut self, text: &str) {
        self.out.write(text.as_bytes());
    }

    /// Bytes as they are, perhaps no text.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.out.write(bytes);
    }

    /// The text in a colour, each line by itself, if stdout shows colours.
    pub fn paint(&self, text: &str, style: Style) -> String {
        self.out.paint(text, style)
    }

    /// True if stdout shows colours.
    pub fn has_colour(&self) -> bool {
        self.out.colour
    }

    /// A warning, in Ansible's form; each text once.
    pub fn warning(&mut self, text: &str) {
        if self.warned.insert(text.to_owned()) {
            let text = format!("[WARNING]: {text}");
            let text = if self.as_ansible { wrapped(&text, self.columns) } else { text };
            self.note(&text, Style::Warning);
        }
    }

    /// A line beside the data.
    pub fn note(&mut self, text: &str, style: Style) {
        // what was written before should be seen before
        self.out.flush();
        let painted = self.err.paint(text, style);
        self.err.write(painted.as_bytes());
        self.err.write(b"\n");
        self.err.flush();
    }

    /// An error and those that were found with it.
    pub fn error(&mut self, error: &Error) {
        self.out.flush();
        let level = if self.as_ansible { Level::ERROR.no_name() } else { Level::ERROR };
        let text = render(error, level, self.err.colour, self.columns);
        self.err.write(text.as_bytes());
        self.err.flush();
    }

    /// Something doubtful in a file, with its place.
    pub fn doubt(&mut self, doubt: &Error) {
        if doubt.places().is_empty() && doubt.hints().is_empty() && doubt.others().is_empty() {
            self.warning(doubt.message());
            return;
        }
        let text = render(doubt, Level::WARNING, self.err.colour, self.columns);
        if self.warned.insert(text.clone()) {
            self.out.flush();
            self.err.write(text.as_bytes());
            self.err.flush();
        }
    }

    /// Something wrong in a file with its place, as data: what a check was asked for.
    pub fn finding(&mut self, finding: &Error, is_error: bool) {
        let level = if is_error { Level::ERROR } else { Level::WARNING };
        let text = render(&finding.clone().alone(), level, self.out.colour, self.columns);
        self.out.write(text.as_bytes());
        self.out.write(b"\n");
    }

    /// Hands on what is still held back.
    pub fn flush(&mut self) {
        self.out.flush();
        self.err.flush();
    }
}

impl Sink {
    fn paint(&self, text: &str, style: Style) -> String {
        if !self.colour || style == Style::Plain {
            return text.to_owned();
        }
        let code = style.code();
        let lines: Vec<String> = text.split('\n').map(|line| format!("\x1b[{code}m{line}\x1b[0m")).collect();
        lines.join("\n")
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.closed {
            return;
        }
        self.buffer.extend_from_slice(bytes);
        if self.target != Target::Memory && self.buffer.len() > 64 * 1024 {
            self.flush();
        }
    }

    /// A reader that went away is no error: the run goes on without it.
    fn flush(&mut self) {
        if self.target == Target::Memory || self.buffer.is_empty() {
            return;
        }
        let written = match self.target {
            Target::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(&self.buffer).and_then(|()| stdout.flush())
            }
            _ => io::stderr().lock().write_all(&self.buffer),
        };
        self.closed = written.is_err();
        self.buffer.clear();
    }
}

/// The text in lines of at most so many characters, broken at blanks and behind hyphens within words, as Python's
/// `textwrap` does; longer words are cut.
fn wrapped(text: &str, columns: usize) -> String {
    let mut pieces: Vec<String> = Vec::new();
    let letters: Vec<char> = text.chars().collect();
    for (index, letter) in letters.iter().enumerate() {
        let is_blank = letter.is_whitespace();
        let before = index.checked_sub(1).map(|before| letters[before]);
        let behind_hyphen = before == Some('-')
            && index.checked_sub(2).is_some_and(|index| letters[index].is_alphabetic())
            && letter.is_alphabetic();
        let starts = before.is_none_or(|before| before.is_whitespace() != is_blank || behind_hyphen);
        let letter = if is_blank { ' ' } else { *letter };
        match pieces.last_mut() {
            Some(piece) if !starts => piece.push(letter),
            _ => pieces.push(letter.to_string()),
        }
    }
    let mut lines: Vec<String> = vec![String::new()];
    let length = |text: &str| text.chars().count();
    for piece in pieces {
        let is_full = lines.last().is_some_and(|line| length(line) + length(&piece) > columns);
        if is_full && piece.trim().is_empty() {
            lines.push(String::new());
            continue;
        }
        let mut rest = piece.as_str();
        if is_full && lines.last().is_some_and(|line| !line.is_empty()) && length(rest) <= columns {
            lines.push(String::new());
        }
        while let Some(line) = lines.last_mut() {
            // a line does not begin with the blanks between words
            if line.is_empty() && rest.trim().is_empty() {
                break;
            }
            let room = columns.saturating_sub(length(line)).max(1);
            let cut = rest.char_indices().nth(room).map_or(rest.len(), |(cut, _)| cut);
            line.push_str(&rest[..cut]);
            rest = &rest[cut..];
            if rest.is_empty() {
                break;
            }
            lines.push(String::new());
        }
    }
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

/// The width that Ansible makes its banners for: one column less than the terminal has.
fn columns() -> usize {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return COLUMNS;
    }
    let size = rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| usize::from(size.ws_col));
    size.saturating_sub(1).max(COLUMNS)
}

/// An error as text: message, the marked line of each place, hints; then the errors found with it.
fn render(error: &Error, level: Level<'static>, colour: bool, columns: usize) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.term_width(columns.max(100));
    let mut text = String::new();
    for (index, error) in all(error).into_iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&render_one(error, level.clone(), &renderer));
        text.push('\n');
    }
    text
}

/// An error, those found with it, and those found with them.
fn all(error: &Error) -> Vec<&Error> {
    std::iter::once(error).chain(error.others().iter().flat_map(all)).collect()
}

fn render_one(error: &Error, level: Level<'static>, renderer: &Renderer) -> String {
    let is_named = level != Level::ERROR.no_name();
    let title =
        if is_named { visible(error.message(), true) } else { format!("ERROR! {}", visible(error.message(), true)) };
    let mut group = Group::with_title(level.primary_title(title));
    for (index, (place, label)) in error.places().iter().enumerate() {
        if place.source.is_secret {
            let origin = Origin::path(place.source.path.to_string_lossy().into_owned());
            group = group.element(origin.line(place.line.max(1) as usize).char_column(place.column.max(1) as usize));
            continue;
        }
        let Some((line, span)) = marked(place) else { continue };
        let kind = if index == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        let annotation = kind.span(span);
        let annotation = if label.is_empty() { annotation } else { annotation.label(visible(label, false)) };
        group = group.element(
            Snippet::source(line)
                .path(place.source.path.to_string_lossy().into_owned())
                .line_start(place.line.max(1) as usize)
                .annotation(annotation),
        );
    }
    if error.places().is_empty() {
        // without a line there is no margin that hints could hang on
        let hints: String = error.hints().iter().map(|hint| format!("\n  = help: {}", visible(hint, true))).collect();
        return renderer.render(&[group]) + &hints;
    }
    for hint in error.hints() {
        group = group.element(Level::HELP.message(visible(hint, true)));
    }
    renderer.render(&[group])
}

/// The line of a place, and the bytes of it to mark: the word that begins there, or one character.
fn marked(place: &Place) -> Option<(String, std::ops::Range<usize>)> {
    // a place behind the last line (an unexpected end) is shown as an empty line
    let line = place.source.line(place.line).unwrap_or("");
    // a carriage return within the line would end it for a terminal
    let line: String = line.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect();
    let skipped = (place.column as usize).saturating_sub(1);
    let start = line.char_indices().nth(skipped).map_or(line.len(), |(index, _)| index);
    let is_word = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let word: usize = line[start..].chars().take_while(is_word).map(char::len_utf8).sum();
    let end = if word > 0 { start + word } else { start + line[start..].chars().next().map_or(0, char::len_utf8) };
    Some((line, start..end))
}

/// Text without characters that would act on the terminal.
fn visible(text: &str, keeps_lines: bool) -> String {
    let keep = |c: char| !c.is_control() || c == '\t' || (keeps_lines && c == '\n');
    text.chars().map(|c| if keep(c) { c } else { '\u{fffd}' }).collect()
}

/// Asks on stdout for a line of stdin.
pub fn ask_line(question: &str) -> Result<String> {
    let ended = || {
        Error::input(format!("no answer to `{}`: stdin has ended", question.lines().last().unwrap_or_default().trim()))
    };
    let mut out = io::stdout();
    let _ = out.write_all(question.as_bytes()).and_then(|()| out.flush());
    let mut answer = String::new();
    match io::stdin().lock().read_line(&mut answer) {
        Ok(0) | Err(_) => Err(ended()),
        Ok(_) => Ok(answer.trim_end_matches(['\n', '\r']).to_owned()),
    }
}

/// Asks on the terminal, not on stdin; what is typed for a secret is not shown.
pub fn ask(question: &str, secret: bool) -> Result<String> {
    let no_terminal =
        || Error::input(format!("cannot ask for `{}`: there is no terminal", question.trim().trim_end_matches(':')));
    let mut terminal =
        std::fs::OpenOptions::new().read(true).write(true).open("/dev/tty").map_err(|_| no_terminal())?;
    terminal.write_all(question.as_bytes()).map_err(|_| no_terminal())?;
    let before = rustix::termios::tcgetattr(&terminal).map_err(|_| no_terminal())?;
    if secret {
        let mut hidden = before.clone();
        hidden.local_modes.remove(rustix::termios::LocalModes::ECHO);
        rustix::termios::tcsetattr(&terminal, rustix::termios::OptionalActions::Flush, &hidden)
            .map_err(|_| no_terminal())?;
    }
    let mut answer = String::new();
    let read = io::BufReader::new(&terminal).read_line(&mut answer);
    if secret {
        let _ = rustix::termios::tcsetattr(&terminal, rustix::termios::OptionalActions::Flush, &before);
        let _ = terminal.write_all(b"\n");
    }
    match read {
        Ok(0) | Err(_) => Err(no_terminal()),
        Ok(_) => Ok(answer.trim_end_matches(['\n', '\r']).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn shown(error: &Error) -> String {
        render(error, Level::ERROR, false, COLUMNS)
    }

    #[test]
    fn the_marked_line_is_shown_with_label_and_help() {
        let source = Source::new("site.yml", "- hosts: all\n  tasks:\n    - tempalte: x=y\n");
        let error = Error::parse("`tempalte` is no keyword and no module")
            .at_label(&Place::new(&source, 3, 7), "here")
            .suggest("tempalte", ["template"]);
        let expected = "\
error: `tempalte` is no keyword and no module
 --> site.yml:3:7
  |
3 |     - tempalte: x=y
  |       ^^^^^^^^ here
  |
  = help: did you mean `template`?
";
        assert_eq!(shown(&error), expected);
    }

    #[test]
    fn a_line_of_an_encrypted_file_is_not_shown() {
        let source = Source::secret("vault.yml", "a: 1\npassword: hush\n");
        let error = Error::parse("no variables").at(&Place::new(&source, 2, 3)).hint("write some");
        let expected = "\
error: no variables
--> vault.yml:2:3
 = help: write some
";
        assert_eq!(shown(&error), expected);
    }

    #[test]
    fn further_places_and_errors_follow() {
        let one = Source::new("a.yml", "a: 1\n");
        let two = Source::new("b.yml", "b: 2\n");
        let error = Error::input("`a` twice").at(&Place::start(&one)).at_label(&Place::start(&two), "first here");
        let error = Error::collect([error, Error::input("no hosts").hint("name some")]);
        let expected = "\
error: `a` twice
 --> a.yml:1:1
  |
1 | a: 1
  | ^
  |
 ::: b.yml:1:1
  |
1 | b: 2
  | - first here

error: no hosts
  = help: name some
";
        assert_eq!(shown(&error.expect("two errors")), expected);
    }

    #[test]
    fn odd_places_never_panic() {
        let source = Source::new("odd.yml", "\tä: 漢字\r\nx\u{1b}[31m\ry\r\n\u{301}\n");
        for line in 0..6 {
            for column in 0..12 {
                let text = shown(&Error::input("odd\u{7}").at_label(&Place::new(&source, line, column), "l\nm"));
                assert!(text.starts_with("error: odd\u{fffd}\n"), "{line}:{column}: {text}");
                assert!(!text.contains(['\u{1b}', '\r', '\u{7}']), "{line}:{column}: {text}");
            }
        }
        let empty = Source::new("empty.yml", "");
        assert!(shown(&Error::input("empty").at(&Place::start(&empty))).contains("empty.yml:1:1"));
    }

    #[test]
    fn warnings_are_wrapped_as_python_wraps() {
        let cases = [
            ("aa bb cc", 5, "aa bb\ncc"),
            ("aa bbbbbb", 5, "aa bb\nbbbb"),
            ("aaa bb-cc dd", 7, "aaa bb-\ncc dd"),
            ("aaa  bbb", 4, "aaa\nbbb"),
            ("abcdefgh", 3, "abc\ndef\ngh"),
            ("", 3, ""),
        ];
        for (text, columns, expected) in cases {
            assert_eq!(wrapped(text, columns), expected, "{text}");
        }
    }

    #[test]
    fn warnings_are_said_once() {
        let mut ui = Ui::memory();
        ui.warning("twice");
        ui.warning("twice");
        assert_eq!(ui.written_errors(), "[WARNING]: twice\n");
    }

    #[test]
    fn each_line_is_coloured_by_itself() {
        let mut ui = Ui::memory();
        ui.out.colour = true;
        ui.styled("a\nb", Style::Ok);
        assert_eq!(ui.written(), "\x1b[0;32ma\x1b[0m\n\x1b[0;32mb\x1b[0m\n");
    }
}
