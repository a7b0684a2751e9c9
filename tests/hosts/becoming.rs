//! Other users: a real sudo and a real su, with and without password.

use std::fs;

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
        let bytes: Vec<u8> = (0..=255).cycle().take(1_000_000).collect();
        let answers =
            connection.run(&root, &[read(fed("cat", bytes.clone())), read(script("id -un >&2"))]).await.unwrap();
        assert!(answers[0].stdout == bytes);
        assert_eq!(answers[1].error_text(), "root\n");
    }
    let mut connection = Connection::open(&server.password_target(&terminal)).await.unwrap();
    let message = who(&mut connection, &becoming("sudo", "root", None)).await.unwrap_err();
    assert!(message.starts_with("sudo wants a terminal"), "{message}");

    let mut connection = Connection::open(&server.password_target(&none)).await.unwrap();
    let message = who(&mut connection, &becoming("sudo", "root", Some(password))).await.unwrap_err();
    assert!(message.starts_with("not allowed to become `root`"), "{message}");

    let mut connection = Connection::open(&server.target()).await.unwrap();
    let su = becoming("su", &none.name, None);
    assert_eq!(who(&mut connection, &su).await, Ok(format!("{0} /home/{0}", none.name)));
    assert_eq!(connection.counters().round_trips, 3);
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
