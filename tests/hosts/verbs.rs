//! Each verb in each shell.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::Instant;

use trimtab::connect::shell::{STAT_FIELDS, UNIT_PROPERTIES, Verb};

use crate::support::*;

#[tokio::test]
async fn the_first_batch_costs_two_round_trips_and_each_further_one() {
    for shell in shells() {
        let mut connection = connect(shell).await;
        assert_eq!(connection.counters().round_trips, 0, "{shell}");
        run(&mut connection, vec![read(script("echo one")), read(line("/proc/version"))]).await;
        assert_eq!(connection.counters().round_trips, 2, "{shell}");
        run(&mut connection, vec![read(script("echo two"))]).await;
        assert_eq!(connection.counters().round_trips, 3, "{shell}");
        assert!(connection.counters().bytes_sent > 1000 && connection.counters().bytes_received > 100);
        connection.close().await;
    }
}

#[tokio::test]
async fn a_script_answers_with_code_output_and_errors_apart() {
    for shell in shells() {
        let mut connection = connect(shell).await;
        let answers = run(
            &mut connection,
            vec![
                read(script("echo out; echo err >&2; exit 3")),
                read(script("printf 'no newline'")),
                read(script("if broken syntax")),
                read(script("cd /etc; x=1; umask 777; set -e; trap 'echo bye' EXIT; exit 0")),
                read(script("echo \"[$x]\"; pwd; umask; cat")),
                read(script("echo '$HOME' \"a'b\" ä")),
                read(script("set | grep -c '^t_[kl]='; exit 0")),
                read(script("echo \"$LC_ALL $#\"")),
            ],
        )
        .await;
        let home = std::env::current_dir().unwrap();
        let umask = String::from_utf8(std::process::Command::new("sh").args(["-c", "umask"]).output().unwrap().stdout);
        assert_eq!(answers[0].code, Some(3), "{shell}");
        assert_eq!((answers[0].text(), answers[0].error_text()), ("out\n".into(), "err\n".into()), "{shell}");
        assert_eq!(answers[1].text(), "no newline", "{shell}");
        assert!(answers[2].code.unwrap() > 0 && !answers[2].stderr.is_empty(), "{shell}: {:?}", answers[2]);
        assert_eq!(answers[3].text(), "bye\n", "{shell}");
        assert_eq!(answers[4].text(), format!("[]\n{}\n{}", home.display(), umask.unwrap()), "{shell}");
        assert_eq!(answers[5].text(), "$HOME a'b ä\n", "{shell}");
        assert_eq!(answers[6].text(), "0\n", "{shell}");
        assert_eq!(answers[7].text(), "C 0\n", "{shell}");
    }
}

#[tokio::test]
async fn every_byte_passes_both_ways() {
    let bytes: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bytes");
    fs::write(&path, &bytes).unwrap();
    let path = path.to_str().unwrap();
    for shell in shells() {
        let mut connection = connect(shell).await;
        // before the first answer it is not known whether the host has base64: the second time it is
        for _ in 0..2 {
            let answers = run(
                &mut connection,
                vec![
                    read(content(path)),
                    read(fed("cat; cat <&0 >&2", bytes.clone())),
                    read(fed("cat >&2", bytes.clone())),
                ],
            )
            .await;
            assert_eq!(answers[0].stdout, bytes, "{shell}");
            assert_eq!(answers[1].stdout, bytes, "{shell}");
            assert_eq!(answers[2].stderr, bytes, "{shell}");
        }
    }
}

#[tokio::test]
async fn input_of_any_form_passes() {
    let dashes = "-n -e \\n\\c %s '\"`$x\r\n".repeat(10_000);
    let cases =
        ["", "-", "--", "-n", "%", "%s", "\\", "\\055", "'", "\n", "\n\n", "\0", "a\0b", "é", "x\r\n", dashes.as_str()];
    for shell in shells() {
        let mut connection = connect(shell).await;
        let answers = run(&mut connection, cases.iter().map(|text| read(fed("cat", *text))).collect()).await;
        for (text, answer) in cases.iter().zip(answers) {
            assert_eq!((answer.code, answer.text().as_str()), (Some(0), *text), "{shell}");
        }
        // every place where a chunk may begin
        let odd = "-%".repeat(200_000);
        for text in [odd.as_str(), &odd[1..]] {
            let answers = run(&mut connection, vec![read(fed("cat", text))]).await;
            assert!(answers[0].text() == text, "{shell}");
        }
    }
}

#[tokio::test]
async fn input_of_five_megabytes_passes() {
    let mut bytes: Vec<u8> = Vec::new();
    let mut state = 1_u32;
    while bytes.len() < 5_000_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bytes.push((state >> 24) as u8);
    }
    for shell in shells() {
        let mut connection = connect(shell).await;
        let begin = Instant::now();
        let answers = run(&mut connection, vec![read(fed("cat", bytes.clone())), read(script("echo behind"))]).await;
        assert!(answers[0].stdout == bytes, "{shell}");
        assert_eq!(answers[1].text(), "behind\n");
        let first = begin.elapsed();
        let begin = Instant::now();
        let answers =
            run(&mut connection, vec![read(fed("cat", bytes.clone())), read(fed("exit 4", bytes.clone()))]).await;
        assert!(answers[0].stdout == bytes, "{shell}");
        assert_eq!(answers[1].code, Some(4), "{shell}");
        told(&format!("{shell}: 5 MB in octal {first:?}, twice 5 MB in base64 {:?}", begin.elapsed()));
    }
}

#[tokio::test]
async fn lines_keep_blanks_and_lose_the_last_newline() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(5000);
    let many = "line\n".repeat(500);
    let cases: &[(&str, &str)] = &[
        ("a\n", "a"),
        ("a", "a"),
        ("", ""),
        ("\n", ""),
        ("\n\n", "\n"),
        (" a\t b \n", " a\t b "),
        ("a\\tb\\\n", "a\\tb\\"),
        ("one\ntwo\n\nfour", "one\ntwo\n\nfour"),
        ("-n\n", "-n"),
        (&long, &long),
        (&many, many.trim_end_matches('\n')),
    ];
    let mut requests = Vec::new();
    for (index, (text, _)) in cases.iter().enumerate() {
        let path = folder.path().join(format!("line {index}'s"));
        fs::write(&path, text).unwrap();
        requests.push(read(line(path.to_str().unwrap())));
    }
    for shell in shells() {
        let mut connection = connect(shell).await;
        let answers = run(&mut connection, requests.clone()).await;
        for ((text, expected), answer) in cases.iter().zip(answers) {
            assert_eq!((answer.code, answer.text().as_str()), (Some(0), *expected), "{shell}: {text:?}");
        }
    }
}

#[tokio::test]
async fn kernel_files_are_read_whole() {
    let paths = [
        "/proc/sys/kernel/pid_max",
        "/proc/sys/kernel/ostype",
        "/proc/sys/net/ipv4/ip_local_port_range",
        "/proc/sys/net/ipv4/ip_local_reserved_ports",
        "/proc/version",
        "/proc/filesystems",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/proc/sys/no/such",
        "/proc/sys/vm/swappiness",
        "/proc/sys/kernel",
    ];
    for shell in shells() {
        let mut connection = connect(shell).await;
        let mut requests: Vec<_> = paths.iter().map(|path| read(line(path))).collect();
        requests.extend(paths[..3].iter().map(|path| chained(line(path))));
        let answers = run(&mut connection, requests).await;
        for (index, answer) in answers.iter().enumerate() {
            let path = paths[index % paths.len()];
            match fs::read_to_string(path) {
                Ok(text) => {
                    let text = text.strip_suffix('\n').unwrap_or(&text);
                    assert_eq!((answer.code, answer.text().as_str()), (Some(0), text), "{shell}: {path}");
                }
                Err(_) => assert_eq!((answer.code, answer.stdout.len()), (Some(1), 0), "{shell}: {path}"),
            }
            assert!(!answer.aliased);
        }
    }
}

#[tokio::test]
async fn what_is_missing_is_said_without_output() {
    for shell in shells() {
        let mut connection = connect(shell).await;
        let gone = "/no/such/thing";
        let answers = run(
            &mut connection,
            vec![
                read(line(gone)),
                read(content(gone)),
                read(stat(gone, true)),
                read(stat(gone, false)),
                read(checksum(gone, "sha1")),
                chained(line(gone)),
            ],
        )
        .await;
        for answer in &answers {
            assert_eq!(answer, &trimtab::connect::shell::Response::missing(), "{shell}");
        }
        let answers = run(&mut connection, vec![read(content("/etc")), read(checksum("/etc", "md5"))]).await;
        assert_eq!((answers[0].code, answers[1].code), (Some(1), Some(1)), "{shell}");
        assert!(!answers[0].stderr.is_empty(), "{shell}");
        let answers = run(&mut connection, vec![read(content("etc/passwd")), read(stat("/a\0b", true))]).await;
        assert_eq!((answers[0].code, answers[1].code), (Some(2), Some(2)), "{shell}");
        assert_eq!(answers[0].error_text(), "`etc/passwd` is not an absolute path\n");
    }
}

#[tokio::test]
async fn stat_knows_types_modes_owners_and_links() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("file"), "12345").unwrap();
    fs::set_permissions(at("file"), fs::Permissions::from_mode(0o4751)).unwrap();
    fs::write(at("odd\nname 'x'"), "").unwrap();
    fs::create_dir(at("folder")).unwrap();
    symlink("no/such\nplace", at("dangling")).unwrap();
    symlink("file", at("link")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    for shell in shells() {
        let mut connection = connect(shell).await;
        let names = ["file", "odd\nname 'x'", "folder", "dangling", "link", "pipe"];
        let mut requests = Vec::new();
        for guard in [read, chained] {
            for follow in [false, true] {
                for name in names.iter().filter(|name| !(follow && **name == "dangling")) {
                    requests.push((guard(stat(&at(name), follow)), *name, follow));
                }
            }
        }
        // a chain ends at a symbolic link: each chained request in a batch of its own
        let (together, alone): (Vec<_>, Vec<_>) =
            requests.into_iter().partition(|(request, ..)| request.guard == trimtab::connect::shell::Guard::Always);
        let mut answers = run(&mut connection, together.iter().map(|(request, ..)| request.clone()).collect()).await;
        for (request, ..) in &alone {
            answers.extend(run(&mut connection, vec![request.clone()]).await);
        }
        for ((_, name, follow), answer) in together.iter().chain(&alone).zip(answers) {
            assert_eq!(answer.code, Some(0), "{shell}: {name} {answer:?}");
            let text = answer.text();
            let fields: Vec<&str> = text.splitn(STAT_FIELDS, '\t').collect();
            let known = if *follow { fs::metadata(at(name)) } else { fs::symlink_metadata(at(name)) }.unwrap();
            let letter = match *name {
                "folder" => "d",
                "dangling" => "l",
                "link" if !*follow => "l",
                "pipe" => "p",
                _ => "f",
            };
            let target = match (*name, *follow) {
                ("dangling", _) => "no/such\nplace",
                ("link", false) => "file",
                _ => "",
            };
            assert_eq!(fields.len(), STAT_FIELDS, "{shell}: {text:?}");
            assert_eq!(fields[0], letter, "{shell}: {text:?}");
            assert_eq!(u32::from_str_radix(fields[1], 8).unwrap(), known.mode() & 0o7777, "{shell}: {text:?}");
            assert_eq!(fields[2..4], [known.uid().to_string(), known.gid().to_string()], "{shell}");
            assert_eq!(fields[6..8], [known.len().to_string(), known.ino().to_string()], "{shell}");
            assert_eq!(fields[9], known.nlink().to_string(), "{shell}");
            let mtime: f64 = fields[11].parse().unwrap();
            assert!((mtime - known.mtime() as f64).abs() < 1.01, "{shell}: {mtime}");
            assert_eq!(fields[13], target, "{shell}: {text:?}");
            assert_eq!(answer.aliased, *name == "link" && *follow, "{shell}: {name} {follow}");
        }
    }
}

#[tokio::test]
async fn digests_are_those_of_the_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut requests = Vec::new();
    for name in ["plain", "with blank", "back\\slash", "new\nline"] {
        let path = folder.path().join(name);
        fs::write(&path, "abc").unwrap();
        for guard in [read, chained] {
            requests.push((guard(checksum(path.to_str().unwrap(), "md5")), "900150983cd24fb0d6963f7d28e17f72"));
            requests
                .push((guard(checksum(path.to_str().unwrap(), "sha1")), "a9993e364706816aba3e25717850c26c9cd0d89d"));
            requests.push((
                guard(checksum(path.to_str().unwrap(), "sha256")),
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ));
        }
    }
    for shell in shells() {
        let mut connection = connect(shell).await;
        let answers = run(&mut connection, requests.iter().map(|(request, _)| request.clone()).collect()).await;
        for ((request, digest), answer) in requests.iter().zip(answers) {
            assert_eq!((answer.code, answer.text().as_str()), (Some(0), *digest), "{shell}: {request:?}");
        }
    }
}

/// A `systemctl` of our own that knows three units and refuses one name.
const SYSTEMCTL: &str = r#"#!/bin/sh
echo "$@" >>"$0.log"
while [ "$1" != -- ]; do shift; done
shift
first=1
for unit; do
  case $unit in 'bad name') echo "Invalid unit name" >&2; exit 1 ;; esac
  [ -n "$first" ] || echo
  first=
  echo "Id=$unit.service"
  echo "Description=The unit $unit"
done
"#;

#[tokio::test]
async fn units_share_one_systemctl() {
    let folder = tempfile::tempdir().unwrap();
    let systemctl = folder.path().join("systemctl");
    fs::write(&systemctl, SYSTEMCTL).unwrap();
    fs::set_permissions(&systemctl, fs::Permissions::from_mode(0o755)).unwrap();
    let unit = |name: &str| Verb::Unit { name: name.to_owned() };
    let show = |name: &str| format!("Id={name}.service\nDescription=The unit {name}\n");
    for shell in shells() {
        let log = folder.path().join("systemctl.log");
        fs::write(&log, "").unwrap();
        let shell = format!("env PATH={}:/usr/bin:/bin {shell}", folder.path().display());
        let mut connection = connect(&shell).await;
        let answers = run(
            &mut connection,
            vec![read(unit("a")), read(script("true")), read(unit("b")), chained(unit("c")), read(unit("d"))],
        )
        .await;
        let said: Vec<String> = answers.iter().map(|answer| answer.text()).collect();
        assert_eq!(said, [show("a"), String::new(), show("b"), show("c"), show("d")], "{shell}");
        let calls = fs::read_to_string(&log).unwrap();
        assert_eq!(calls.lines().count(), 2, "{shell}: {calls}");
        assert!(calls.contains(&format!("-p {} -- a b d\n", UNIT_PROPERTIES.join(","))), "{calls}");
        let answers = run(&mut connection, vec![read(unit("a")), read(unit("bad name")), read(unit("b"))]).await;
        let codes: Vec<_> = answers.iter().map(|answer| answer.code).collect();
        assert_eq!(codes, [Some(0), Some(1), Some(0)], "{shell}");
        assert_eq!((answers[0].text(), answers[2].text()), (show("a"), show("b")), "{shell}");
        assert_eq!(answers[1].error_text(), "Invalid unit name\n", "{shell}");
    }
    let bare = tempfile::tempdir().unwrap();
    for shell in shells() {
        // a machine without systemd: nothing but the shell itself on the path
        let words: Vec<&str> = shell.split(' ').collect();
        let path = format!("/usr/bin/{}", words[0]);
        let path = if fs::exists(&path).unwrap() { path } else { format!("/bin/{}", words[0]) };
        let shell = format!("env PATH={} {path} {}", bare.path().display(), words[1..].join(" "));
        let mut connection = connect(&shell).await;
        let answers = run(&mut connection, vec![read(script("PATH=; command -v systemctl")), read(unit("a"))]).await;
        if fs::exists("/usr/sbin/systemctl").unwrap() || fs::exists("/sbin/systemctl").unwrap() {
            told("not for this machine: every shell finds its systemctl");
        } else {
            assert_eq!(answers[1].code, Some(127), "{shell}");
        }
    }
}

#[tokio::test]
async fn the_tools_of_busybox_suffice() {
    if !shells().contains(&"busybox ash") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let tools = folder.path().join("bin");
    fs::create_dir(&tools).unwrap();
    let installed = std::process::Command::new("busybox").args(["--install", "-s"]).arg(&tools).status().unwrap();
    assert!(installed.success());
    let file = folder.path().join("a file");
    fs::write(&file, "abc").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o2640)).unwrap();
    let link = folder.path().join("link");
    symlink("a file", &link).unwrap();
    let (file, link) = (file.to_str().unwrap(), link.to_str().unwrap());
    let shell = format!("env PATH={} ash", tools.display());
    let bytes: Vec<u8> = (0..=255).collect();
    let mut connection = connect(&shell).await;
    for _ in 0..2 {
        let answers = run(
            &mut connection,
            vec![
                read(stat(file, true)),
                read(stat("/no/such", true)),
                read(stat(link, false)),
                chained(stat(link, false)),
                read(checksum(file, "sha1")),
                read(checksum(file, "sha512")),
                read(line("/proc/sys/kernel/pid_max")),
                read(line("/proc/sys/kernel/ostype")),
                read(fed("cat", bytes.clone())),
                read(content("/proc/version")),
            ],
        )
        .await;
        let text = answers[0].text();
        let fields: Vec<&str> = text.split('\t').collect();
        let known = fs::metadata(file).unwrap();
        assert_eq!((fields.len(), &fields[..2], fields[6]), (STAT_FIELDS, ["f", "2640"].as_slice(), "3"), "{text}");
        assert_eq!(fields[11].parse::<f64>().unwrap() as i64, known.mtime(), "{text}");
        assert_eq!(answers[1].code, Some(1));
        assert!(answers[2].text().starts_with("l\t777\t") && answers[2].text().ends_with("\ta file"));
        assert_eq!(answers[3], answers[2]);
        assert_eq!(answers[4].text(), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(answers[5].stdout.len(), 128, "{:?}", answers[5]);
        assert_eq!(answers[6].text(), fs::read_to_string("/proc/sys/kernel/pid_max").unwrap().trim());
        assert_eq!(answers[7].text(), "Linux");
        assert_eq!(answers[8].stdout, bytes);
        assert_eq!(answers[9].stdout, fs::read("/proc/version").unwrap());
    }
}
