//! Other users: a real sudo and a real su, with and without password.

use std::fs;
use std::time::{Duration, Instant};

use trimtab::connect::{Become, ConnectErrorKind, Connection, Identity, Secret};

use crate::server::{self, Server, User};
use crate::support::*;

fn becoming(method: &str, user: &str, password: Option<&str>) -> Identity {
    Identity {
        become_as: Some(Become {
            method: method.to_owned(),
            user: user.to_owned(),
            password: password.map(Secret::new),
            exe: None,
            flags: None,
        }),
    }
}

async fn who(connection: &mut Connection, identity: &Identity) -> Result<String, String> {
    match connection.run(identity, &[read(script("id -un; echo $HOME; cat"))]).await {
        Ok(answers) => Ok(answers[0].text().replace('\n', " ").trim().to_owned()),
        Err(error) => {
            assert_eq!(error.kind, ConnectErrorKind::Become, "{}", error.message);
            Err(error.message)
        }
    }
}

#[tokio::test]
async fn sudo_and_su_with_and_without_password() {
    if !server::possible() {
        return;
    }
    if !fs::exists("/usr/bin/sudo").unwrap() {
        skipped("there is no /usr/bin/sudo");
        return;
    }
    let server = Server::start();
    let free = User::create("free", "ALL=(ALL) NOPASSWD: ALL");
    let strict = User::create("strict", "ALL=(ALL) NOPASSWD: ALL\nDefaults use_pty");
    let terminal = User::create("tty", "ALL=(ALL) NOPASSWD: ALL\nDefaults requiretty");
    let asked = User::create("asked", "ALL=(ALL) ALL");
    let none = User::create("none", "");
    let password = free.password.as_str();

    let mut connection = Connection::open(&server.password_target(&free)).await.unwrap();
    let root = becoming("sudo", "root", None);
    assert_eq!(who(&mut connection, &root).await, Ok("root /root".to_owned()));
    assert_eq!(connection.counters().round_trips, 2);
    // each identity has a shell of its own, side by side
    assert_eq!(who(&mut connection, &login()).await, Ok(format!("{0} /home/{0}", free.name)));
    assert_eq!(connection.counters().round_trips, 4);
    assert_eq!(who(&mut connection, &root).await, Ok("root /root".to_owned()));
    assert_eq!(connection.counters().round_trips, 5);
    let other = becoming("sudo", &none.name, None);
    assert_eq!(who(&mut connection, &other).await, Ok(format!("{0} /home/{0}", none.name)));
    // a password that is not asked for does no harm
    let root = becoming("sudo", "root", Some("not needed"));
    assert_eq!(who(&mut connection, &root).await, Ok("root /root".to_owned()));
    let message = who(&mut connection, &becoming("sudo", "nosuchuser", None)).await.unwrap_err();
    assert!(message.starts_with("there is no user `nosuchuser` to become"), "{message}");
    let mut odd = becoming("sudo", "root", None);
    odd.become_as.as_mut().unwrap().exe = Some("/usr/bin/no-sudo".to_owned());
    let message = who(&mut connection, &odd).await.unwrap_err();
    assert_eq!(message, "`/usr/bin/no-sudo` was not found on the host; it is needed to become `root`");
    odd.become_as.as_mut().unwrap().exe = Some("/usr/bin/sudo".to_owned());
    odd.become_as.as_mut().unwrap().flags = Some("-S".to_owned());
    assert!(who(&mut connection, &odd).await.unwrap().starts_with("root "));
    let message = who(&mut connection, &becoming("doas", "root", None)).await.unwrap_err();
    assert!(message.starts_with("become method `doas` is not supported"), "{message}");

    let mut connection = Connection::open(&server.password_target(&asked)).await.unwrap();
    // the first batch must not keep the refusal from being seen
    let begin = Instant::now();
    let message = who(&mut connection, &becoming("sudo", "root", None)).await.unwrap_err();
    assert!(message.starts_with("Missing sudo password"), "{message}");
    let long = read(script(&format!("echo {}", "x".repeat(90_000))));
    let error = connection.run(&becoming("sudo", "root", None), &[long]).await.unwrap_err();
    assert!(error.message.starts_with("Missing sudo password"), "{}", error.message);
    assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
    let before = connection.counters().round_trips;
    assert_eq!(who(&mut connection, &becoming("sudo", "root", Some(password))).await, Ok("root /root".to_owned()));
    // channel, prompt, password, batch
    assert_eq!(connection.counters().round_trips, before + 4);
    let message = who(&mut connection, &becoming("sudo", "root", None)).await.unwrap_err();
    assert!(message.starts_with("Missing sudo password"), "{message}");
    let message = who(&mut connection, &becoming("sudo", "root", Some("wrong"))).await.unwrap_err();
    assert_eq!(message, "Incorrect sudo password");
    let mut flags = becoming("sudo", "root", Some(password));
    flags.become_as.as_mut().unwrap().flags = Some("-Hn --preserve-env=TERM".to_owned());
    assert_eq!(who(&mut connection, &flags).await, Ok("root /root".to_owned()));

    let su = becoming("su", &asked.name, Some(password));
    assert_eq!(who(&mut connection, &su).await, Ok(format!("{0} /home/{0}", asked.name)));
    let message = who(&mut connection, &becoming("su", &asked.name, Some("wrong"))).await.unwrap_err();
    assert_eq!(message, "Incorrect su password");
    let message = who(&mut connection, &becoming("su", "root", None)).await.unwrap_err();
    assert!(message.starts_with("Missing su password"), "{message}");

    // what newer systems have by default: sudo relays everything through a terminal of its own
    let mut connection = Connection::open(&server.password_target(&strict)).await.unwrap();
    for password in [None, Some("not needed")] {
        let root = becoming("sudo", "root", password);
        assert_eq!(who(&mut connection, &root).await, Ok("root /root".to_owned()));
        let bytes: Vec<u8> = (0..=255).cycle().take(1_000_000).collect();
        let answers =
            connection.run(&root, &[read(fed("cat", bytes.clone())), read(script("id -un >&2"))]).await.unwrap();
        assert!(answers[0].stdout == bytes);
        assert_eq!(answers[1].error_text(), "root\n");
    }
    let mut connection = Connection::open(&server.password_target(&terminal)).await.unwrap();
    let begin = Instant::now();
    let message = who(&mut connection, &becoming("sudo", "root", None)).await.unwrap_err();
    assert!(message.starts_with("sudo wants a terminal"), "{message}");
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());

    let mut connection = Connection::open(&server.password_target(&none)).await.unwrap();
    let message = who(&mut connection, &becoming("sudo", "root", Some(password))).await.unwrap_err();
    assert!(message.starts_with("not allowed to become `root`"), "{message}");

    let mut connection = Connection::open(&server.target()).await.unwrap();
    let su = becoming("su", &none.name, None);
    assert_eq!(who(&mut connection, &su).await, Ok(format!("{0} /home/{0}", none.name)));
    assert_eq!(connection.counters().round_trips, 2);
    let message = who(&mut connection, &becoming("su", "nosuchuser", None)).await.unwrap_err();
    assert!(message.starts_with("there is no user `nosuchuser` to become"), "{message}");
}

/// A shell whose first batch came with the command that started it goes on like any other.
#[tokio::test]
async fn another_user_is_asked_with_the_first_command() {
    if !server::possible() {
        return;
    }
    if !fs::exists("/usr/bin/sudo").unwrap() {
        skipped("there is no /usr/bin/sudo");
        return;
    }
    let server = Server::start();
    let user = User::create("first", "ALL=(ALL) NOPASSWD: ALL");
    let odd = "printf '%s\\n' \"a  b\" 'c!d' \"`echo e`\" \"$((1 + 1))\" é %; pwd; echo error >&2; exit 3";
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    for (method, target) in [("sudo", server.password_target(&user)), ("su", server.target())] {
        let home = if method == "su" { "/root".to_owned() } else { format!("/home/{}", user.name) };
        let identity = becoming(method, if method == "su" { &user.name } else { "root" }, None);
        for shell in shells() {
            let mut connection = Connection::open_with_shell(&target, shell).await.unwrap();
            for round_trips in [2, 3, 4] {
                let requests =
                    [read(script(odd)), read(stat("/etc/passwd", true)), read(line("/proc/sys/kernel/ostype"))];
                let answers = connection.run(&identity, &requests).await.unwrap();
                let expected = format!("a  b\nc!d\ne\n2\né\n%\n{home}\n");
                // what may not be entered is not
                let inside = answers[0].text() == expected || (method == "su" && !answers[0].text().contains("/root"));
                assert!(answers[0].code == Some(3) && inside, "{shell}: {:?}", answers[0]);
                assert_eq!(answers[0].error_text().lines().last(), Some("error"), "{shell}");
                assert_eq!((answers[1].code, answers[2].text().as_str()), (Some(0), "Linux"), "{shell}");
                assert_eq!(connection.counters().round_trips, round_trips, "{shell}");
            }
            let answers = connection.run(&identity, &[read(fed("cat", bytes.clone()))]).await.unwrap();
            assert!(answers[0].stdout == bytes, "{shell}");
            // whoever saw the command line does not know how frames end
            let cut = "read -r a b c above d </proc/$PPID/stat
                for word in $(tr -c 'a-zA-Z0-9' '\\n' </proc/$above/cmdline); do
                [ ${#word} -ne 22 ] || echo \"$word o 1 0 0\"; done; set";
            let answers = connection.run(&identity, &[read(script(cut)), read(script("echo two"))]).await.unwrap();
            assert_eq!((answers[0].code, answers[1].text().as_str()), (Some(0), "two\n"), "{shell}");
            assert!(answers[0].text().contains(" o 1 0 0\n"), "{shell}: {}", answers[0].text());
            // more than a pipe holds
            let mut connection = Connection::open_with_shell(&target, shell).await.unwrap();
            let long = read(script(&format!("echo {}", "x".repeat(90_000))));
            let answers = connection.run(&identity, &[long]).await.unwrap();
            assert_eq!(answers[0].stdout.len(), 90_001, "{shell}");
            assert_eq!(connection.counters().round_trips, 2, "{shell}");
            // a change waits for the channel: others must not see it
            let mut connection = Connection::open_with_shell(&target, shell).await.unwrap();
            let answers = connection.run(&identity, &[chained(script("id -un"))]).await.unwrap();
            assert_eq!(answers[0].code, Some(0), "{shell}");
            assert_eq!(connection.counters().round_trips, 3, "{shell}");
        }
    }
}

/// The processes of this machine: number and parent.
fn processes() -> Vec<(String, String)> {
    let stat = |entry: std::io::Result<fs::DirEntry>| fs::read_to_string(entry.unwrap().path().join("stat")).ok();
    let all = fs::read_dir("/proc").unwrap().filter_map(stat);
    all.map(|text| {
        let parent = text.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap().to_owned();
        (text.split(' ').next().unwrap().to_owned(), parent)
    })
    .collect()
}

/// The ends of a shell of another user: by us, by itself, by that of the program that became the user.
#[tokio::test]
async fn no_process_outlives_the_shell_of_another_user() {
    if !server::possible() {
        return;
    }
    if !fs::exists("/usr/bin/sudo").unwrap() {
        skipped("there is no /usr/bin/sudo");
        return;
    }
    let server = Server::start();
    let users = [
        User::create("ends", "ALL=(ALL) NOPASSWD: ALL"),
        User::create("endspty", "ALL=(ALL) NOPASSWD: ALL\nDefaults use_pty"),
    ];
    let root = becoming("sudo", "root", None);
    for user in &users {
        for ending in ["close", "drop", "its own", "its parent's"] {
            let mut connection = Connection::open(&server.password_target(user)).await.unwrap();
            let answers = connection.run(&root, &[read(script("echo $$ $PPID"))]).await.unwrap();
            let answer = answers[0].text();
            let (shell, sudo) = answer.trim().split_once(' ').unwrap();
            // what runs for this connection: all that the server's own process has begun
            let all = processes();
            let is_server =
                |process: &str| fs::read_to_string(format!("/proc/{process}/comm")).unwrap().starts_with("sshd");
            let mut top = shell;
            while let Some((_, parent)) = all.iter().find(|(process, parent)| process == top && !is_server(parent)) {
                top = parent;
            }
            let above = &all.iter().find(|(process, _)| process == top).unwrap().1;
            let mut family = vec![above.as_str()];
            let mut next = 0;
            while next < family.len() {
                let of = family[next];
                let children = all.iter().filter(|(_, parent)| parent == of);
                family.extend(children.map(|(process, _)| process.as_str()));
                next += 1;
            }
            // its parent is gone
            let relay = all.iter().find(|(process, _)| {
                let pipe = |process: &str, stream: &str| fs::read_link(format!("/proc/{process}/fd/{stream}")).ok();
                pipe(process, "1").is_some() && process != sudo && pipe(process, "1") == pipe(sudo, "0")
            });
            family.push(&relay.unwrap().0);
            let begin = Instant::now();
            match ending {
                "close" => connection.close().await,
                "drop" => drop(connection),
                _ => {
                    let dead = if ending == "its own" { shell } else { sudo };
                    let kill = read(script(&format!("kill -9 {dead}; sleep 1")));
                    // an orphan may still answer, but nobody hears it again
                    let first = connection.run(&root, &[kill]).await;
                    let error = match first {
                        Err(error) => error,
                        Ok(_) => connection.run(&root, &[read(script("echo"))]).await.unwrap_err(),
                    };
                    assert!(error.message.contains("after 0 of 1 answers"), "{}", error.message);
                    // the connection is still good
                    assert_eq!(who(&mut connection, &root).await, Ok("root /root".to_owned()));
                    connection.close().await;
                }
            }
            for process in &family {
                while fs::exists(format!("/proc/{process}")).unwrap() {
                    let late = begin.elapsed() > Duration::from_secs(8);
                    assert!(!late, "process {process} of {family:?} still runs after {ending}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_secret_is_in_no_process_list() {
    if !server::possible() {
        return;
    }
    let mut connection = connect("sh").await;
    let look = "read -r secret; for file in /proc/[0-9]*/cmdline /proc/[0-9]*/environ; do tr '\\0' ' ' <\"$file\"; done 2>/dev/null";
    let answers = run(&mut connection, vec![read(fed(look, "hidden-word-of-4711\n"))]).await;
    assert!(answers[0].stdout.len() > 10);
    assert!(!answers[0].text().contains("hidden-word-of-4711"));
}
