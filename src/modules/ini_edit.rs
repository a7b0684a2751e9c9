//! The lines of an INI file with an option set or removed. Pure.

/// What is asked of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `None`: the lines before the first section.
    pub section: Option<String>,
    /// What the section must have to be the one meant.
    pub has: Vec<SectionValue>,
    /// `None`: the section itself.
    pub option: Option<String>,
    pub values: Vec<String>,
    pub present: bool,
    pub exclusive: bool,
    pub separator: &'static str,
    pub ignore_spaces: bool,
    pub allow_no_value: bool,
    /// Commented lines of the option count too.
    pub modify_inactive: bool,
}

/// An option that a section must have, with one of these values if there are any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionValue {
    pub option: String,
    pub values: Vec<String>,
}

/// The new text and what was done.
#[derive(Debug, PartialEq, Eq)]
pub struct Edited {
    pub text: String,
    pub message: &'static str,
    pub changed: bool,
}

/// A line that holds an option.
struct OptionLine<'a> {
    commented: bool,
    has_separator: bool,
    value: &'a str,
}

/// Reads `option = value` or the option alone; blanks before it are allowed, and a comment sign too.
fn option_line<'a>(option: &str, line: &'a str) -> Option<OptionLine<'a>> {
    let blanks = [' ', '\t'];
    let mut rest = line.trim_end_matches(['\n', '\r']).trim_start_matches(blanks);
    let commented = rest.starts_with(['#', ';']);
    if commented {
        rest = rest[1..].trim_start_matches(blanks);
    }
    let rest = rest.strip_prefix(option)?.trim_start_matches(blanks);
    match rest.strip_prefix('=') {
        Some(value) => Some(OptionLine { commented, has_separator: true, value: value.trim_start_matches(blanks) }),
        None if rest.is_empty() => Some(OptionLine { commented, has_separator: false, value: "" }),
        None => None,
    }
}

/// The same, without a comment sign.
fn active_line<'a>(option: &str, line: &'a str) -> Option<OptionLine<'a>> {
    option_line(option, line).filter(|found| !found.commented)
}

/// True for the line that begins the section.
fn begins(section: &str, line: &str) -> bool {
    let inner = line.strip_prefix('[').map(str::trim_start).and_then(|rest| rest.strip_prefix(section.trim()));
    inner.is_some_and(|rest| rest.trim_start().starts_with(']'))
}

/// The place of the section's lines, with the line that begins it; the first that has what it must have.
fn place(lines: &[String], request: &Request) -> Option<(usize, usize)> {
    let end_of = |start: usize| {
        lines[start..].iter().position(|line| line.starts_with('[')).map_or(lines.len(), |length| start + length)
    };
    let fits = |start: usize, end: usize| {
        request.has.iter().all(|condition| {
            lines[start..end]
                .iter()
                .filter_map(|line| option_line(&condition.option, line))
                .any(|found| condition.values.is_empty() || condition.values.iter().any(|value| value == found.value))
        })
    };
    let Some(section) = &request.section else {
        let end = end_of(0);
        return fits(0, end).then_some((0, end));
    };
    let starts = (0..lines.len()).filter(|at| begins(section, &lines[*at]));
    starts.map(|start| (start, end_of(start + 1))).find(|(start, end)| fits(*start, *end))
}

/// Edits the text of a file.
pub fn edit(text: &str, request: &Request) -> Edited {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let mut changed = false;
    if lines.is_empty() {
        lines.push("\n".to_owned());
    }
    if let Some(last) = lines.last_mut().filter(|last| !last.ends_with('\n')) {
        last.push('\n');
        changed = true;
    }
    let found = place(&lines, request);
    let (start, end) = found.unwrap_or((0, 0));
    // the lines of the options: behind the line that begins the section
    let first = if request.section.is_some() && found.is_some() { start + 1 } else { start };
    let mut work = Work { lines: lines[first..end].to_vec(), request, changed, message: "OK" };
    if request.present {
        work.put(found.is_some(), first > start);
    } else {
        match (&request.option, found) {
            (Some(option), Some(_)) => work.remove(option),
            (None, Some(_)) => {
                let gone = end > start;
                let Work { changed, .. } = work;
                lines.drain(start..end);
                let message = if gone { "section removed" } else { "OK" };
                return Edited { text: lines.concat(), message, changed: changed || gone };
            }
            (_, None) => {}
        }
    }
    let Work { lines: section, changed, message, .. } = work;
    lines.splice(first..end, section);
    match (request.present && found.is_none(), &request.section) {
        (true, Some(section)) => {
            lines.push(format!("[{section}]\n"));
            let message = add_section(&mut lines, request);
            Edited { text: lines.concat(), message, changed: true }
        }
        _ => Edited { text: lines.concat(), message, changed },
    }
}

/// The options of a section that is new; what was done.
fn add_section(lines: &mut Vec<String>, request: &Request) -> &'static str {
    let line = |option: &str, value: &str| format!("{option}{}{value}\n", request.separator);
    let mut values = request.values.clone();
    for condition in &request.has {
        if request.option.as_ref() == Some(&condition.option) {
            if !request.exclusive {
                values.extend(condition.values.iter().filter(|value| !request.values.contains(value)).cloned());
            }
        } else if condition.values.is_empty() {
            if request.allow_no_value {
                lines.push(format!("{}\n", condition.option));
            }
        } else {
            lines.extend(condition.values.iter().map(|value| line(&condition.option, value)));
        }
    }
    match &request.option {
        Some(option) if !values.is_empty() => lines.extend(values.iter().map(|value| line(option, value))),
        Some(option) if request.allow_no_value => lines.push(format!("{option}\n")),
        _ => return "only section added",
    }
    "section and option added"
}

/// The lines of one section while they are edited.
struct Work<'a> {
    lines: Vec<String>,
    request: &'a Request,
    changed: bool,
    message: &'static str,
}

impl Work<'_> {
    fn find<'l>(&self, option: &str, line: &'l str) -> Option<OptionLine<'l>> {
        if self.request.modify_inactive { option_line(option, line) } else { active_line(option, line) }
    }

    /// Writes a line anew, unless it differs by blanks alone and that is allowed.
    fn update(&mut self, option: &str, at: usize, new: String) {
        let old = &self.lines[at];
        let differs = match (active_line(option, old), option_line(option, &new)) {
            (Some(old), Some(new)) if self.request.ignore_spaces => old.value != new.value,
            _ => *old != new,
        };
        if differs {
            self.lines[at] = new;
            self.changed = true;
            self.message = "option changed";
        }
    }

    fn put(&mut self, found: bool, has_header: bool) {
        let Some(option) = self.request.option.clone() else { return };
        if !found {
            // what goes before the first section needs none
            if self.request.section.is_none() {
                self.insert(&option, self.request.values.clone(), false, has_header);
            }
            return;
        }
        let mut values = self.request.values.clone();
        let mut done = vec![false; self.lines.len()];
        let mut bare = false;
        for (at, line) in self.lines.clone().iter().enumerate() {
            let Some(found) = self.find(&option, line) else { continue };
            if let Some(which) = values.iter().position(|value| value == found.value) {
                let value = values.remove(which);
                let new = if value.is_empty() && self.request.allow_no_value {
                    bare = true;
                    format!("{option}\n")
                } else {
                    format!("{option}{}{value}\n", self.request.separator)
                };
                self.update(&option, at, new);
                done[at] = true;
            } else if self.request.values.is_empty() && self.request.allow_no_value {
                self.update(&option, at, format!("{option}\n"));
                done[at] = true;
                bare = true;
                break;
            }
        }
        if self.request.exclusive && !self.request.allow_no_value {
            self.replace_others(&option, &mut values, &mut done);
        }
        self.insert(&option, values, bare, has_header);
    }

    /// Other lines of the option take the values that have no line yet; what is left of them goes.
    fn replace_others(&mut self, option: &str, values: &mut Vec<String>, done: &mut Vec<bool>) {
        // words of a comment that begin with the option's name are no option
        let is_other = |work: &Self, at: usize, done: &[bool]| {
            let found = work.find(option, &work.lines[at]);
            !done[at] && found.is_some_and(|found| !found.commented || found.has_separator)
        };
        while !values.is_empty() {
            let Some(at) = (0..self.lines.len()).find(|at| is_other(self, *at, done)) else { break };
            let value = values.remove(0);
            self.update(option, at, format!("{option}{}{value}\n", self.request.separator));
            done[at] = true;
        }
        for at in (0..self.lines.len()).rev() {
            if is_other(self, at, done) {
                self.lines.remove(at);
                done.remove(at);
                self.changed = true;
                self.message = "option changed";
            }
        }
    }

    /// Adds what is missing behind the last line that says something.
    fn insert(&mut self, option: &str, values: Vec<String>, bare: bool, has_header: bool) {
        let says = |line: &String| {
            let line = line.trim_end_matches('\n').trim_start_matches([' ', '\t']);
            !line.is_empty() && !line.starts_with(['#', ';'])
        };
        let at = match self.lines.iter().rposition(says) {
            Some(last) => last + 1,
            None if has_header || self.request.section.is_none() => 0,
            None => return,
        };
        let mut new: Vec<String> =
            values.iter().map(|value| format!("{option}{}{value}\n", self.request.separator)).collect();
        if self.request.values.is_empty() && self.request.allow_no_value && !bare {
            new.push(format!("{option}\n"));
        }
        if !new.is_empty() {
            self.lines.splice(at..at, new);
            self.changed = true;
            self.message = "option added";
        }
    }

    fn remove(&mut self, option: &str) {
        let before = self.lines.len();
        let goes = |line: &String| {
            active_line(option, line)
                .is_some_and(|found| self.request.exclusive || self.request.values.iter().any(|v| v == found.value))
        };
        let kept: Vec<String> = self.lines.iter().filter(|line| !goes(line)).cloned().collect();
        if kept.len() != before {
            self.lines = kept;
            self.changed = true;
            self.message = "option changed";
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(section: &str, option: &str, values: &[&str]) -> Request {
        Request {
            section: Some(section.to_owned()).filter(|section| !section.is_empty()),
            has: Vec::new(),
            option: Some(option.to_owned()).filter(|option| !option.is_empty()),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            present: true,
            exclusive: true,
            separator: " = ",
            ignore_spaces: false,
            allow_no_value: false,
            modify_inactive: true,
        }
    }

    fn gone(section: &str, option: &str, values: &[&str]) -> Request {
        Request { present: false, exclusive: values.is_empty(), ..set(section, option, values) }
    }

    #[test]
    fn options_are_set_and_removed_where_they_belong() {
        let file = "top = 1\n\n[a]\n# x = 0\nx=1\n\n[b]\ny = 2\n";
        let cases: Vec<(Request, &str, &str)> = vec![
            (set("a", "x", &["1"]), "top = 1\n\n[a]\nx = 1\n\n[b]\ny = 2\n", "option changed"),
            (set("b", "y", &["2"]), file, "OK"),
            (set("b", "z", &["3"]), "top = 1\n\n[a]\n# x = 0\nx=1\n\n[b]\ny = 2\nz = 3\n", "option added"),
            (set("a", "z", &["3"]), "top = 1\n\n[a]\n# x = 0\nx=1\nz = 3\n\n[b]\ny = 2\n", "option added"),
            (set("", "top", &["2"]), "top = 2\n\n[a]\n# x = 0\nx=1\n\n[b]\ny = 2\n", "option changed"),
            (set("", "new", &["2"]), "top = 1\nnew = 2\n\n[a]\n# x = 0\nx=1\n\n[b]\ny = 2\n", "option added"),
            (
                set("c", "x", &["1", "2"]),
                "top = 1\n\n[a]\n# x = 0\nx=1\n\n[b]\ny = 2\n[c]\nx = 1\nx = 2\n",
                "section and option added",
            ),
            (gone("a", "x", &[]), "top = 1\n\n[a]\n# x = 0\n\n[b]\ny = 2\n", "option changed"),
            (gone("a", "x", &["9"]), file, "OK"),
            (gone("a", "", &[]), "top = 1\n\n[b]\ny = 2\n", "section removed"),
            (gone("no", "x", &[]), file, "OK"),
        ];
        for (request, text, message) in cases {
            let edited = edit(file, &request);
            assert_eq!((edited.text.as_str(), edited.message), (text, message), "{request:?}");
            assert_eq!(edited.changed, text != file, "{request:?}");
            let again = edit(&edited.text, &request);
            assert!(!again.changed, "{request:?} again: {}", again.text);
        }
    }

    #[test]
    fn blanks_comments_and_lone_options_are_handled_as_asked() {
        let file = "[a]\nx=1\n;y = 2\nlone\n";
        let spaced = Request { ignore_spaces: true, ..set("a", "x", &["1"]) };
        assert!(!edit(file, &spaced).changed);
        let tight = Request { separator: "=", ..set("a", "x", &["1"]) };
        assert!(!edit(file, &tight).changed);
        let kept = Request { modify_inactive: false, ..set("a", "y", &["3"]) };
        assert_eq!(edit(file, &kept).text, "[a]\nx=1\n;y = 2\nlone\ny = 3\n");
        assert_eq!(edit(file, &set("a", "y", &["3"])).text, "[a]\nx=1\ny = 3\nlone\n");
        let lone = Request { allow_no_value: true, ..set("a", "lone", &[]) };
        assert!(!edit(file, &lone).changed);
        let lone = Request { allow_no_value: true, ..set("a", "new", &[]) };
        assert_eq!(edit(file, &lone).text, "[a]\nx=1\n;y = 2\nlone\nnew\n");
        assert_eq!(edit("[a]\nx = 1", &set("a", "x", &["1"])).text, "[a]\nx = 1\n");
    }

    #[test]
    fn several_values_are_kept_or_exclusive() {
        let file = "[a]\nx = 1\nx = 2\nx = 3\n";
        assert_eq!(edit(file, &set("a", "x", &["2", "4"])).text, "[a]\nx = 4\nx = 2\n");
        let also = Request { exclusive: false, ..set("a", "x", &["2", "4"]) };
        assert_eq!(edit(file, &also).text, "[a]\nx = 1\nx = 2\nx = 3\nx = 4\n");
        assert_eq!(edit(file, &gone("a", "x", &["2"])).text, "[a]\nx = 1\nx = 3\n");
    }

    #[test]
    fn a_section_is_chosen_by_what_it_has() {
        let file = "[peer]\nname = a\n[peer]\nname = b\nport = 1\n";
        let has = vec![SectionValue { option: "name".into(), values: vec!["b".into()] }];
        let request = Request { has: has.clone(), ..set("peer", "port", &["2"]) };
        assert_eq!(edit(file, &request).text, "[peer]\nname = a\n[peer]\nname = b\nport = 2\n");
        let has = vec![SectionValue { option: "name".into(), values: vec!["c".into()] }];
        let request = Request { has, ..request };
        assert_eq!(edit(file, &request).text, format!("{file}[peer]\nname = c\nport = 2\n"));
    }
}
