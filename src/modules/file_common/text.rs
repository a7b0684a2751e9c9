//! The content of files as text and back, byte for byte.

/// How the bytes of a file are seen as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    Utf8,
    /// The file is no UTF-8: each byte is a letter of its own, and so is each byte of a pattern.
    Bytes,
}

impl Coding {
    pub fn of(content: &[u8]) -> Coding {
        if std::str::from_utf8(content).is_ok() { Coding::Utf8 } else { Coding::Bytes }
    }

    pub fn decode(self, content: &[u8]) -> String {
        match self {
            Coding::Utf8 => String::from_utf8_lossy(content).into_owned(),
            Coding::Bytes => content.iter().copied().map(char::from).collect(),
        }
    }

    /// A text of the task, in the letters that the file's text has.
    pub fn pattern(self, text: &str) -> String {
        match self {
            Coding::Utf8 => text.to_owned(),
            Coding::Bytes => text.bytes().map(char::from).collect(),
        }
    }

    pub fn encode(self, text: &str) -> Vec<u8> {
        match self {
            Coding::Utf8 => text.as_bytes().to_vec(),
            Coding::Bytes => text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap_or(b'?')).collect(),
        }
    }
}

/// Lines with their endings, split at newlines only.
pub fn split_lines(text: &str) -> Vec<String> {
    text.split_inclusive('\n').map(str::to_owned).collect()
}

/// Lines with their endings, split at `\n`, `\r` and `\r\n`, as Python splits bytes.
pub fn split_any_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut start = 0;
    let bytes = text.as_bytes();
    for at in 0..bytes.len() {
        let ends = bytes[at] == b'\n' || (bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        if ends {
            lines.push(text[start..=at].to_owned());
            start = at + 1;
        }
    }
    if start < text.len() {
        lines.push(text[start..].to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_come_back() {
        for content in [&b"a\xff\xc3\xa9\n"[..], "é\n".as_bytes(), b""] {
            let coding = Coding::of(content);
            assert_eq!(coding.encode(&coding.decode(content)), content);
        }
        assert_eq!(Coding::Bytes.pattern("é"), "\u{c3}\u{a9}");
    }

    #[test]
    fn lines_keep_their_endings() {
        assert_eq!(split_lines("a\r\nb\rc"), ["a\r\n", "b\rc"]);
        assert_eq!(split_any_lines("a\r\nb\rc\n"), ["a\r\n", "b\r", "c\n"]);
    }
}
