//! Batches: guards, read-backs, symbolic links, order, noise, breaks.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use trimtab::connect::shell::{Guard, Request, Response, Verb};
use trimtab::connect::{ConnectErrorKind, Connection, Target};

use crate::support::*;

fn codes(answers: &[Response]) -> Vec<Option<i32>> {
    answers.iter().map(|answer| answer.code).collect()
}

#[tokio::test]
async fn a_failure_stops_the_chain_and_nothing_else() {
    for shell in shells() {
        let mut connection = connect(shell).await;
        let answers = run(
            &mut connection,
            vec![
                chained(script("true")),
                read(script("exit 7")),
                chained(script("echo still")),
                chained(script("exit 5")),
                chained(script("echo never")),
                read(script("echo always")),
                chained(line("/proc/version")),
                chained(stat("/", false)),
            ],
        )
        .await;
        let expected = [Some(0), Some(7), Some(0), Some(5), None, Some(0), None, None];
        assert_eq!(codes(&answers), expected, "{shell}");
        assert_eq!(answers[4], Response::default());
        // the next batch has a chain of its own
        assert_eq!(codes(&run(&mut connection, vec![chained(script("true"))]).await), [Some(0)]);
    }
}

#[tokio::test]
async fn a_read_back_that_differs_stops_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("value");
    let path = path.to_str().unwrap();
    let digest = "900150983cd24fb0d6963f7d28e17f72";
    let cases: &[(Verb, &str, bool)] = &[
        (script("echo 4096 65536"), "4096 65536", true),
        (script("printf '4096\\t  65536 \\n\\n'"), "4096 65536", true),
        (script("echo '4096 65536'"), " 4096\t65536\n", true),
        (script("printf 'a  b\\nc'"), "a b\nc", true),
        (script("echo '*'; echo '\\'"), "*\n\\", true),
        (script("printf 'a\\nb'"), "a b", false),
        (script("echo 1"), "", false),
        (script("true"), "", true),
        (script("echo 1; exit 1"), "1", false),
        (fed("cat", "from stdin\n"), "from stdin", true),
        (line("/proc/sys/kernel/ostype"), "Linux", true),
        (line("/proc/sys/kernel/ostype"), "linux", false),
        (content(path), "abc", true),
        (checksum(path, "md5"), digest, true),
        (checksum(path, "md5"), "0", false),
    ];
    fs::write(path, "abc").unwrap();
    for shell in shells() {
        let mut connection = connect(shell).await;
        for (verb, expect, goes_on) in cases {
            let answers = run(
                &mut connection,
                vec![expecting(verb.clone(), expect), chained(script("echo next")), read(verb.clone())],
            )
            .await;
            assert_eq!(answers[1].code.is_some(), *goes_on, "{shell}: {verb:?} {expect:?} {answers:?}");
            // what was expected does not alter the answer
            assert_eq!(answers[0], answers[2], "{shell}: {verb:?}");
        }
    }
}

#[tokio::test]
async fn reads_behind_a_change_see_it_and_reads_before_do_not() {
    let folder = tempfile::tempdir().unwrap();
    for shell in shells() {
        let path = folder.path().join(shell);
        let path = path.to_str().unwrap();
        let mut connection = connect(shell).await;
        let write = |text: &str| Request {
            writes: Some(path.to_owned()),
            ..expecting(fed(&format!("cat >'{path}' && cat '{path}'"), text), text)
        };
        let answers = run(
            &mut connection,
            vec![
                read(stat(path, true)),
                read(line(path)),
                write("one"),
                read(line(path)),
                read(stat(path, true)),
                read(checksum(path, "md5")),
                write("three"),
                read(checksum(path, "md5")),
                read(stat(path, true)),
                read(content(path)),
            ],
        )
        .await;
        let size = |answer: &Response| answer.text().split('\t').nth(6).map(str::to_owned);
        assert_eq!(codes(&answers[..3]), [Some(1), Some(1), Some(0)], "{shell}");
        assert_eq!((answers[3].text(), size(&answers[4])), ("one".into(), Some("3".into())), "{shell}");
        assert_ne!(answers[5].text(), answers[7].text());
        assert_eq!((size(&answers[8]), answers[9].text()), (Some("5".into()), "three".into()), "{shell}");
    }
}

#[tokio::test]
async fn symbolic_links_are_told_and_stop_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir_all(at("real/deep")).unwrap();
    fs::write(at("real/deep/file"), "x").unwrap();
    symlink(at("real"), at("link")).unwrap();
    symlink("file", at("real/deep/other")).unwrap();
    let cases: &[(Verb, bool)] = &[
        (line(&at("real/deep/file")), false),
        (line(&at("link/deep/file")), true),
        (line(&at("real/deep/other")), true),
        (content(&at("link/deep/file")), true),
        (content(&format!("{}//real/./deep/file", folder.path().display())), false),
        (content(&at("real/../real/deep/file")), true),
        (stat(&at("real/deep/other"), false), false),
        (stat(&at("real/deep/other"), true), true),
        (stat(&at("link/deep/file"), false), true),
        (stat(&at("link/no/such/file"), false), true),
        (stat(&at("no/such/file"), false), false),
        (checksum(&at("real/deep/other"), "sha1"), true),
        (checksum(&at("real/deep/file"), "sha1"), false),
        (line("/proc/self/status"), false),
        (line("/sys/class/net/lo/mtu"), false),
        (stat("/", false), false),
        (stat("/etc", false), false),
    ];
    for shell in shells() {
        let mut connection = connect(shell).await;
        for (verb, aliased) in cases {
            let answers =
                run(&mut connection, vec![read(verb.clone()), chained(verb.clone()), chained(script("echo next"))])
                    .await;
            assert_eq!((answers[0].aliased, answers[1].aliased), (*aliased, *aliased), "{shell}: {verb:?}");
            let goes_on = answers[1].success() && !aliased;
            assert_eq!(answers[2].code.is_some(), goes_on, "{shell}: {verb:?}");
        }
        let writing = |path: String| Request { writes: Some(path), ..chained(script("echo written")) };
        let answers = run(
            &mut connection,
            vec![
                writing(at("real/deep/file")),
                read(script("true")),
                writing(at("real/deep/other")),
                writing(at("real/deep/file")),
            ],
        )
        .await;
        assert_eq!(codes(&answers), [Some(0), Some(0), Some(0), None], "{shell}");
        let aliased: Vec<_> = answers.iter().map(|answer| answer.aliased).collect();
        assert_eq!(aliased, [false, false, true, false], "{shell}");
    }
}

#[tokio::test]
async fn a_link_made_within_the_batch_is_seen() {
    for shell in shells() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::create_dir(at("folder")).unwrap();
        let mut connection = connect(shell).await;
        let answers = run(
            &mut connection,
            vec![
                read(stat(&at("folder/file"), false)),
                chained(script(&format!("cd '{}' && mv folder real && ln -s real folder", folder.path().display()))),
                read(stat(&at("folder/file"), false)),
            ],
        )
        .await;
        let aliased: Vec<_> = answers.iter().map(|answer| answer.aliased).collect();
        assert_eq!(aliased, [false, false, true], "{shell}");
    }
}

#[tokio::test]
async fn a_thousand_requests_fit_one_batch() {
    let folder = tempfile::tempdir().unwrap();
    let mut requests = Vec::new();
    for index in 0..250 {
        let path = folder.path().join(format!("file {index}"));
        fs::write(&path, index.to_string()).unwrap();
        let path = path.to_str().unwrap();
        requests.push(read(stat(path, true)));
        requests.push(read(line(path)));
        requests.push(read(checksum(path, "sha1")));
        requests.push(if index % 50 == 0 {
            chained(script(&format!("echo {index}")))
        } else {
            read(line("/proc/uptime"))
        });
    }
    for shell in shells() {
        let mut connection = connect(shell).await;
        run(&mut connection, vec![read(script("true"))]).await;
        let before = connection.counters().round_trips;
        let begin = std::time::Instant::now();
        let answers = run(&mut connection, requests.clone()).await;
        told(&format!("{shell}: 1,000 requests took {:?}", begin.elapsed()));
        assert_eq!(connection.counters().round_trips, before + 1, "{shell}");
        assert_eq!(answers.len(), 1000);
        for (index, four) in answers.chunks(4).enumerate() {
            assert!(four.iter().all(Response::success), "{shell}: {index} {four:?}");
            let size = index.to_string().len().to_string();
            assert_eq!(four[0].text().split('\t').nth(6), Some(size.as_str()), "{shell}");
            assert_eq!(four[1].text(), index.to_string(), "{shell}");
            assert_eq!(four[2].stdout.len(), 40, "{shell}");
        }
    }
}

#[tokio::test]
async fn noise_before_the_first_frame_is_skipped() {
    for shell in shells() {
        let noisy = format!("sh -c 'echo Welcome; echo warning >&2; head -c 100000 /dev/zero; exec {shell}'");
        let mut connection = connect(&noisy).await;
        let answers = run(&mut connection, vec![read(script("echo clean; echo error >&2"))]).await;
        assert_eq!((answers[0].text(), answers[0].error_text()), ("clean\n".into(), "error\n".into()), "{shell}");
    }
}

#[tokio::test]
async fn a_shell_that_ends_or_never_answers_is_unreachable() {
    let mut connection = connect("sh -c 'echo This account is not available >&2; exit 1'").await;
    let error = connection.run(&login(), &[read(script("true"))]).await.unwrap_err();
    assert_eq!(error.kind, ConnectErrorKind::Unreachable);
    let expected = "the login shell ended with code 1 before it answered; it said `This account is not available`";
    assert_eq!(error.message, expected);

    let target = Target { connect_timeout: Duration::from_millis(300), ..local() };
    let mut connection = Connection::open_with_shell(&target, "sleep 5").await.unwrap();
    let error = connection.run(&login(), &[read(script("true"))]).await.unwrap_err();
    assert_eq!(error.message, "no shell answered within 0.3 seconds");

    for shell in shells() {
        let mut connection = connect(shell).await;
        let requests = [read(script("echo one")), read(script("kill -9 $$")), read(script("echo three"))];
        let error = connection.run(&login(), &requests).await.unwrap_err();
        assert_eq!(error.kind, ConnectErrorKind::Unreachable, "{shell}");
        assert!(error.message.contains("after 1 of 3 answers; what the rest did is unknown"), "{}", error.message);
        // a new shell is opened then
        let answers = connection.run(&login(), &requests[..1]).await.unwrap();
        assert_eq!(answers[0].text(), "one\n", "{shell}");
    }
}

#[tokio::test]
async fn a_shell_is_not_used_again_after_a_run_that_was_given_up() {
    for shell in shells() {
        let mut connection = connect(shell).await;
        run(&mut connection, vec![read(script("true"))]).await;
        let requests = [read(script("sleep 1; echo late"))];
        let given_up = tokio::time::timeout(Duration::from_millis(200), connection.run(&login(), &requests)).await;
        assert!(given_up.is_err());
        let answers = run(&mut connection, vec![read(script("echo fresh"))]).await;
        assert_eq!(answers[0].text(), "fresh\n", "{shell}");
    }
}

#[tokio::test]
async fn an_empty_batch_asks_nobody() {
    let mut connection = connect("false").await;
    assert_eq!(connection.run(&login(), &[]).await.unwrap(), []);
    assert_eq!(connection.counters().round_trips, 0);
    let unguarded = Request { guard: Guard::Always, ..read(script("true")) };
    assert!(connection.run(&login(), &[unguarded]).await.is_err());
}
