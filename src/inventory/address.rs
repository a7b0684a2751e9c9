//! Host addresses as they stand in an inventory: ranges, ports, IPv6.

/// The most hosts that one written name may stand for.
const MOST_HOSTS: usize = 100_000;

/// The most bytes that they may have together, about.
const MOST_BYTES: usize = 32 << 20;

/// Splits an address from its port: `host:22`, `[::1]:22`, `kp[01:16]:22`.
///
/// `None` if it is no address that Ansible understands; such a name is taken as it is.
pub(crate) fn parse(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = split_port(text);
    let known = is_ipv4(host) || is_ipv6(host) || is_hostname(host);
    known.then_some((host, port))
}

fn split_port(text: &str) -> (&str, Option<u16>) {
    let Some((host, digits)) = text.rsplit_once(':') else { return (text, None) };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return (text, None);
    }
    let Ok(port) = digits.parse() else { return (text, None) };
    if let Some(inside) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))
        && !inside.is_empty()
    {
        return (inside, Some(port));
    }
    // a colon outside of brackets before the port: an IPv6 address without one
    match without_ranges(host) {
        Some(plain) if !plain.contains(':') => (host, Some(port)),
        _ => (text, None),
    }
}

/// The text with each `[a:b]` or `[a:b:step]` replaced by `0`; `None` if brackets do not fit.
fn without_ranges(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        let (range, behind) = after.split_once(']')?;
        let mut parts = range.split(':');
        let (first, last) = (parts.next()?, parts.next()?);
        let numbers = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let hexadecimal = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let letter = |text: &str| text.len() == 1 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
        let bounds = (hexadecimal(first) && hexadecimal(last)) || (letter(first) && letter(last));
        if !bounds || !parts.next().is_none_or(numbers) || parts.next().is_some() || before.contains(']') {
            return None;
        }
        plain.push_str(before);
        plain.push('0');
        rest = behind;
    }
    if rest.contains(']') {
        return None;
    }
    plain.push_str(rest);
    Some(plain)
}

pub(crate) fn is_ipv4(text: &str) -> bool {
    without_ranges(text).is_some_and(|plain| {
        let parts: Vec<&str> = plain.split('.').collect();
        parts.len() == 4
            && parts.iter().all(|part| {
                (1..=3).contains(&part.len())
                    && part.bytes().all(|byte| byte.is_ascii_digit())
                    && part.parse::<u16>().is_ok_and(|number| number < 256)
            })
    })
}

pub(crate) fn is_ipv6(text: &str) -> bool {
    without_ranges(text).is_some_and(|plain| plain.parse::<std::net::Ipv6Addr>().is_ok())
}

/// Labels of letters, digits, `-` and `_`, separated by points; none ends with `-` or `_`.
fn is_hostname(text: &str) -> bool {
    without_ranges(text).is_some_and(|plain| {
        plain.split('.').all(|label| {
            label.starts_with(|c: char| c.is_alphanumeric() || c == '_')
                && label.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
                && !label.ends_with(['_', '-'])
        })
    })
}

/// The names that `written` stands for, and the port: `kp[01:16]:2222` gives 16 names and 2222.
pub(crate) fn expand(written: &str) -> Result<(Vec<String>, Option<u16>), String> {
    let (pattern, port) = parse(written).unwrap_or((written, None));
    let mut names = vec![String::new()];
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('[') {
        let (range, behind) =
            after.split_once(']').ok_or_else(|| format!("the range in `{written}` lacks its closing `]`"))?;
        let steps = steps(range).map_err(|reason| format!("`[{range}]` is no host range: {reason}"))?;
        if names.len().saturating_mul(steps.len()) > MOST_HOSTS {
            return Err(format!("`{written}` stands for more than {MOST_HOSTS} hosts"));
        }
        if names.len() * steps.len() * written.len() > MOST_BYTES {
            return Err(format!("the names that `{written}` stands for are too long"));
        }
        names = names.iter().flat_map(|name| steps.iter().map(move |step| format!("{name}{before}{step}"))).collect();
        rest = behind;
    }
    if rest.contains(']') {
        return Err(format!("the range in `{written}` lacks its opening `[`"));
    }
    if names.len() == 1 && names[0].is_empty() {
        return Ok((vec![pattern.to_owned()], port));
    }
    for name in &mut names {
        name.push_str(rest);
    }
    Ok((names, port))
}

/// True if a range of a written name does not say where it ends: `web[1:]`.
pub(crate) fn lacks_end(written: &str) -> bool {
    written.split('[').skip(1).any(|part| {
        let range = part.split(']').next().unwrap_or_default();
        range.split(':').nth(1) == Some("")
    })
}

/// The values of a range: `01:03` gives 01, 02, 03; `a:c` gives a, b, c; a third number is the step.
fn steps(range: &str) -> Result<Vec<String>, String> {
    let parts: Vec<&str> = range.split(':').collect();
    let (first, last, step) = match parts.as_slice() {
        [first, last] => (*first, *last, "1"),
        [first, last, step] => (*first, *last, *step),
        _ => return Err("write it as `[first:last]` or `[first:last:step]`".to_owned()),
    };
    let first = if first.is_empty() { "0" } else { first };
    if last.is_empty() {
        return Err("it must say where it ends".to_owned());
    }
    let step: usize = match step.parse() {
        Ok(step) if step > 0 => step,
        _ => return Err(format!("the step `{step}` must be a number greater than 0")),
    };
    const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let letter = |text: &str| if text.len() == 1 { LETTERS.find(text) } else { None };
    if let (Some(from), Some(to)) = (letter(first), letter(last)) {
        if from > to {
            return Err("it must not end before it begins".to_owned());
        }
        return Ok(LETTERS[from..=to].chars().step_by(step).map(String::from).collect());
    }
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("`{text}` is neither a number nor a letter"));
    let (from, to) = (number(first)?, number(last)?);
    if from > to {
        return Err("it must not end before it begins".to_owned());
    }
    let width = if first.starts_with('0') && first.len() > 1 { first.len() } else { 0 };
    if width > 0 && width != last.len() {
        return Err("with leading zeros, first and last must be of equal length".to_owned());
    }
    if (to - from) / step as u64 >= MOST_HOSTS as u64 {
        return Err(format!("it stands for more than {MOST_HOSTS} hosts"));
    }
    Ok((from..=to).step_by(step).map(|number| format!("{number:0width$}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_may_lack_its_end() {
        let cases =
            [("web[1:]", true), ("web[1:5]", false), ("a[1:2]b[3:]", true), ("web[1:j]", false), ("web", false)];
        for (text, expected) in cases {
            assert_eq!(lacks_end(text), expected, "{text}");
        }
    }

    #[test]
    fn addresses_and_ports_are_told_apart() {
        type Address = (&'static str, Option<u16>);
        let cases: &[(&str, Option<Address>)] = &[
            ("web1", Some(("web1", None))),
            ("web1:2222", Some(("web1", Some(2222)))),
            ("10.0.0.7:2222", Some(("10.0.0.7", Some(2222)))),
            ("::1", Some(("::1", None))),
            ("2001:db8::22", Some(("2001:db8::22", None))),
            ("[2001:db8::1]:22", Some(("2001:db8::1", Some(22)))),
            ("[web]:22", Some(("web", Some(22)))),
            ("kp[01:16]:22", Some(("kp[01:16]", Some(22)))),
            ("kp[01:16]", Some(("kp[01:16]", None))),
            ("web:db", None),
            ("web*", None),
            ("web[0]", None),
            ("web-", None),
            ("db:99999", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), *expected, "{text}");
        }
    }

    #[test]
    fn ranges_expand() {
        let cases: &[(&str, &str, Option<u16>)] = &[
            ("kp[001:003]", "kp001 kp002 kp003", None),
            ("ix[1:5:2]", "ix1 ix3 ix5", None),
            ("kp-[a:c]:2200", "kp-a kp-b kp-c", Some(2200)),
            ("r[1:2]n[8:10]", "r1n8 r1n9 r1n10 r2n8 r2n9 r2n10", None),
            ("[:2].example", "0.example 1.example 2.example", None),
            ("10.0.0.[1:3]", "10.0.0.1 10.0.0.2 10.0.0.3", None),
            ("[1:2]", "1 2", None),
        ];
        for (written, names, port) in cases {
            let expected = (names.split(' ').map(str::to_owned).collect(), *port);
            assert_eq!(expand(written), Ok(expected), "{written}");
        }
        for written in
            ["a[3:1]", "a[01:100]", "a[1:]", "a[1]", "a[1:2", "a1:2]", "a[1:9:0]", "a[x1:y]", "a[1:99999999999]"]
        {
            assert!(expand(written).is_err(), "{written}");
        }
        let long = format!("{}[1:9999]", "x".repeat(4000));
        assert!(expand(&long).is_err_and(|reason| reason.contains("too long")));
    }
}
