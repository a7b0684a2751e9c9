//! The patterns of ssh_config(5) and known_hosts: `*`, `?`, and lists with `!`.

/// True if a pattern with `*` and `?` stands for a text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut place) = (0, 0);
    // where to go on after a mismatch: behind the last star, one character later
    let mut star: Option<(usize, usize)> = None;
    while place < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at + 1, place));
                at += 1;
            }
            Some(&letter) if letter == '?' || letter == text[place] => {
                at += 1;
                place += 1;
            }
            _ => match star {
                Some((behind, from)) => {
                    at = behind;
                    place = from + 1;
                    star = Some((behind, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

/// True if any pattern of a list stands for a text and none with `!` before it does.
pub(super) fn list_matches<'a>(patterns: impl IntoIterator<Item = &'a str>, text: &str) -> bool {
    let mut found = false;
    for pattern in patterns {
        match pattern.strip_prefix('!') {
            Some(pattern) if matches(pattern, text) => return false,
            Some(_) => {}
            None => found |= matches(pattern, text),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_characters() {
        let cases = [
            ("*", "", true),
            ("web?", "web1", true),
            ("web?", "web", false),
            ("*.example.org", "db.example.org", true),
            ("*.example.org", "example.org", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("10.0.*.1", "10.0.77.1", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        assert!(list_matches(["!web3", "web*"], "web2"));
        assert!(!list_matches(["web*", "!web3"], "web3"));
        assert!(!list_matches(["!web3"], "web2"));
    }
}
