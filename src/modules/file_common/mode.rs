//! File modes: octal text, numbers and symbolic modes, as Ansible reads them.

use crate::host::Failure;
use crate::value::Value;

/// All bits of a mode: permissions, setuid, setgid and sticky.
const ALL_BITS: u32 = 0o7777;

/// What `mode` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// These bits, whatever is there.
    Absolute(u32),
    /// Clauses as `u=rw`, `g-w`, `a+X`, applied to what is there.
    Symbolic(Vec<Clause>),
    /// The mode of the source file (`copy` and `template`).
    Preserve,
}

/// One operation of a symbolic mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// Some of `ugo`.
    users: String,
    /// No user was named: all, but not the bits of the umask.
    use_umask: bool,
    /// `+`, `-` or `=`.
    operator: char,
    /// Some of `rwxXstugo`.
    permissions: String,
}

impl Mode {
    /// Reads the argument `mode`. A number is the mode itself: YAML 1.1 reads `0644` as 420.
    pub fn parse(value: &Value) -> Result<Mode, Failure> {
        let text = match value {
            Value::Int(number) => {
                return u32::try_from(*number)
                    .map_err(|_| invalid(&number.to_string()))
                    .and_then(|bits| absolute(bits, &number.to_string()));
            }
            other => other.to_text().into_owned(),
        };
        let text = text.trim();
        if text == "preserve" {
            return Ok(Mode::Preserve);
        }
        let digits = text.strip_prefix("0o").unwrap_or(text);
        if let Ok(bits) = u32::from_str_radix(digits, 8) {
            return absolute(bits, text);
        }
        let mut clauses = Vec::new();
        for part in text.split(',') {
            parse_clauses(part, text, &mut clauses)?;
        }
        Ok(Mode::Symbolic(clauses))
    }

    /// The mode of a file that has `current` now.
    pub fn apply(&self, current: u32, is_directory: bool, umask: u32) -> u32 {
        match self {
            Mode::Absolute(bits) => *bits,
            Mode::Preserve => current,
            Mode::Symbolic(clauses) => {
                clauses.iter().fold(current & ALL_BITS, |mode, clause| apply_clause(clause, mode, is_directory, umask))
            }
        }
    }
}

/// The four digits that Ansible returns as `mode`.
pub fn octal(mode: u32) -> String {
    format!("{mode:04o}")
}

/// As the file modules tell a mode: a zero and at least three digits, so `0644` and `01777`.
pub fn leading_zero(mode: u32) -> String {
    format!("0{mode:03o}")
}

fn absolute(bits: u32, text: &str) -> Result<Mode, Failure> {
    if bits & !ALL_BITS != 0 {
        return Err(Failure::new(format!(
            "Invalid mode supplied, only permission info is allowed: {text} is more than 07777 (quote octal modes: '0644')"
        )));
    }
    Ok(Mode::Absolute(bits))
}

fn invalid(text: &str) -> Failure {
    Failure::new(format!(
        "mode must be in octal or symbolic form: bad symbolic permission for mode: {text} (write '0644' or u=rw,g=r,o=r)"
    ))
}

/// `ug=rw`, also with several operations on the same users: `u+x-w`.
fn parse_clauses(part: &str, whole: &str, clauses: &mut Vec<Clause>) -> Result<(), Failure> {
    let first = part.find(['+', '-', '=']).ok_or_else(|| invalid(whole))?;
    let (users, mut rest) = part.split_at(first);
    if !users.chars().all(|user| "ugoa".contains(user)) {
        return Err(invalid(whole));
    }
    let use_umask = users.is_empty();
    let users = if use_umask || users.contains('a') { "ugo" } else { users };
    while let Some(operator) = rest.chars().next() {
        let tail = &rest[1..];
        let end = tail.find(['+', '-', '=']).unwrap_or(tail.len());
        let permissions = &tail[..end];
        if !permissions.chars().all(|permission| "rwxXstugo".contains(permission)) {
            return Err(invalid(whole));
        }
        clauses.push(Clause { users: users.to_owned(), use_umask, operator, permissions: permissions.to_owned() });
        rest = &tail[end..];
    }
    Ok(())
}

/// How far the bits of a user are shifted from those of others, and the user's special bit.
fn place(user: char) -> (u32, u32) {
    match user {
        'u' => (6, 0o4000),
        'g' => (3, 0o2000),
        _ => (0, 0o1000),
    }
}

fn apply_clause(clause: &Clause, mut mode: u32, is_directory: bool, umask: u32) -> u32 {
    for user in clause.users.chars() {
        let (shift, special) = place(user);
        let mut bits = 0;
        for permission in clause.permissions.chars() {
            bits |= match permission {
                'r' => 4 << shift,
                'w' => 2 << shift,
                'x' => 1 << shift,
                'X' if is_directory || mode & 0o111 != 0 => 1 << shift,
                's' if user != 'o' => special,
                't' if user == 'o' => special,
                'u' | 'g' | 'o' => ((mode >> place(permission).0) & 7) << shift,
                _ => 0,
            };
        }
        if clause.use_umask {
            bits &= !umask;
        }
        mode = match clause.operator {
            '+' => mode | bits,
            '-' => mode & !bits,
            _ => (mode & !((7 << shift) | special)) | bits,
        };
    }
    mode
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_as_ansible_reads_them() {
        let cases: &[(Value, u32, bool, u32)] = &[
            ("0644".into(), 0, false, 0o644),
            ("644".into(), 0, false, 0o644),
            ("0o600".into(), 0, false, 0o600),
            ("01777".into(), 0, true, 0o1777),
            (420.into(), 0, false, 0o644),
            (644.into(), 0, false, 0o1204),
            ("u=rw,g=r,o=".into(), 0o777, false, 0o640),
            ("a+X".into(), 0o644, false, 0o644),
            ("a+X".into(), 0o744, false, 0o755),
            ("a+X".into(), 0o644, true, 0o755),
            ("u=rwX,g=rX,o=rX".into(), 0o600, false, 0o644),
            ("u=rwX,g=rX,o=rX".into(), 0o600, true, 0o755),
            ("+x".into(), 0o644, false, 0o755),
            ("+w".into(), 0o444, false, 0o644),
            ("a+w".into(), 0o444, false, 0o666),
            ("u+s,g+s".into(), 0o755, false, 0o6755),
            ("o+t".into(), 0o777, true, 0o1777),
            ("g=u".into(), 0o640, false, 0o660),
            ("u+x-w".into(), 0o644, false, 0o544),
            ("go-rwx".into(), 0o755, false, 0o700),
            ("u=rw".into(), 0o4755, false, 0o655),
        ];
        for (value, current, is_directory, expected) in cases {
            let mode = Mode::parse(value).unwrap().apply(*current, *is_directory, 0o022);
            assert_eq!(octal(mode), octal(*expected), "{value} on {current:o}");
        }
    }

    #[test]
    fn what_is_no_mode_is_refused() {
        for text in ["rw", "u=rwz", "k+x", "10644", "", "0999"] {
            assert!(Mode::parse(&text.into()).is_err(), "{text}");
        }
        assert_eq!(Mode::parse(&"preserve".into()).unwrap(), Mode::Preserve);
    }
}
