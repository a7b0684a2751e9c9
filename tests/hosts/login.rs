//! SSH against a real sshd: keys, passwords, host keys, jumps, commands, breaks.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use trimtab::connect::{ConnectErrorKind, Connection, HostKeyChecking, Secret, Target};

use crate::server::{self, Server, User};
use crate::support::*;

async fn hello(target: &Target) -> Result<String, String> {
    let mut connection = Connection::open(target).await.map_err(|error| error.message)?;
    let answers = connection.run(&login(), &[read(script("id -un"))]).await.map_err(|error| error.message)?;
    connection.close().await;
    Ok(answers[0].text().trim().to_owned())
}

#[tokio::test]
async fn two_round_trips_for_the_first_batch_over_ssh_and_all_bytes_pass() {
    if !server::possible() {
        return;
    }
    let server = Server::start();
    let mut connection = Connection::open(&server.target()).await.unwrap();
    assert_eq!(connection.counters().round_trips, 0);
    let bytes: Vec<u8> = (0..=255).collect();
    let answers = run(&mut connection, vec![read(fed("cat; echo e >&2", bytes.clone())), read(script("pwd"))]).await;
    assert_eq!((answers[0].stdout.clone(), answers[0].error_text()), (bytes, "e\n".to_owned()));
    assert_eq!(answers[1].text(), "/root\n");
    assert_eq!(connection.counters().round_trips, 2);
    run(&mut connection, vec![read(line("/proc/version"))]).await;
    assert_eq!(connection.counters().round_trips, 3);
    // both directions at once, far more than any window
    let large: Vec<u8> = (0..6_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let begin = Instant::now();
    let answers = run(&mut connection, vec![read(fed("cat", large.clone())), read(fed("wc -c", large.clone()))]).await;
    told(&format!("6 MB there and back, 6 MB there: {:?}", begin.elapsed()));
    assert!(answers[0].stdout == large);
    assert_eq!(answers[1].text().trim(), "6000000");
    connection.close().await;
}

#[tokio::test]
async fn keys_of_all_kinds_log_in() {
    if !server::possible() {
        return;
    }
    let server = Server::start();
    let mut authorized = String::new();
    for kind in ["ed25519", "ecdsa", "rsa"] {
        for (format, arguments) in [("new", vec![]), ("pem", vec!["-m", "PEM"]), ("locked", vec![])] {
            let path = server.text(&format!("{kind}-{format}"));
            let phrase = if format == "locked" { "secret phrase" } else { "" };
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", kind, "-N", phrase, "-C", kind, "-f", &path]).args(&arguments);
            assert!(keygen.status().unwrap().success());
            authorized.push_str(&fs::read_to_string(format!("{path}.pub")).unwrap());
        }
    }
    fs::write(server.path("authorized"), authorized).unwrap();
    for kind in ["ed25519", "ecdsa", "rsa"] {
        for format in ["new", "pem"] {
            let target = Target { private_key_file: Some(server.text(&format!("{kind}-{format}"))), ..server.target() };
            assert_eq!(hello(&target).await, Ok("root".to_owned()), "{kind} {format}");
        }
        let path = server.text(&format!("{kind}-locked"));
        let target = Target { private_key_file: Some(path.clone()), ..server.target() };
        let message = hello(&target).await.unwrap_err();
        assert!(
            message.contains(&format!("`{path}` is encrypted: put it into an agent with `ssh-add {path}`")),
            "{message}"
        );
        assert!(message.starts_with("Permission denied (publickey,"), "{message}");
    }
}

#[tokio::test]
async fn an_agent_signs() {
    if !server::possible() {
        return;
    }
    let server = Server::start();
    let socket = server.text("agent");
    let mut agent =
        Command::new("ssh-agent").args(["-D", "-a", &socket]).stdout(std::process::Stdio::null()).spawn().unwrap();
    for _ in 0..100 {
        if fs::exists(&socket).unwrap() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let add = |name: &str| {
        let mut command = Command::new("ssh-add");
        command.args(["-q", &server.text(name)]).env("SSH_AUTH_SOCK", &socket);
        assert!(command.status().unwrap().success());
    };
    let arguments = |more: &[&str]| {
        let mut words = vec!["-o".to_owned(), format!("IdentityAgent={socket}")];
        words.extend(server.arguments(more));
        words
    };
    let rsa = server.text("rsa");
    assert!(Command::new("ssh-keygen").args(["-q", "-t", "rsa", "-N", "", "-f", &rsa]).status().unwrap().success());
    let authorized = format!("{}{}", fs::read_to_string(server.path("authorized")).unwrap(), server.public_key("rsa"));
    fs::write(server.path("authorized"), authorized).unwrap();
    let mut outcomes = Vec::new();
    for name in ["id", "rsa"] {
        add(name);
        let target = Target { private_key_file: None, ssh_args: arguments(&[]), ..server.target() };
        outcomes.push(hello(&target).await);
        // the public half alone names a key of the agent
        let target = Target {
            private_key_file: Some(server.text(&format!("{name}.pub"))),
            ssh_args: arguments(&["-o", "IdentitiesOnly=yes"]),
            ..server.target()
        };
        outcomes.push(hello(&target).await);
        let clear = Command::new("ssh-add").args(["-q", "-D"]).env("SSH_AUTH_SOCK", &socket).status();
        assert!(clear.unwrap().success());
    }
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert_eq!(outcomes, vec![Ok("root".to_owned()); 4]);
}

#[tokio::test]
async fn passwords_log_in_by_either_method() {
    if !server::possible() {
        return;
    }
    let user = User::create("pw", "");
    for lines in ["", "UsePAM yes\nPasswordAuthentication no\nKbdInteractiveAuthentication yes"] {
        let server = Server::start_with(lines);
        let target = server.password_target(&user);
        assert_eq!(hello(&target).await, Ok(user.name.clone()), "{lines}");
        let wrong = Target { password: Some(Secret::new("wrong")), ..target };
        let message = hello(&wrong).await.unwrap_err();
        assert!(message.starts_with("Invalid/incorrect password: permission denied"), "{message}");
        let none = Target { password: None, ..wrong };
        let message = hello(&none).await.unwrap_err();
        assert!(message.starts_with("Permission denied (publickey,"), "{message}");
    }
}

#[tokio::test]
async fn host_keys_are_checked() {
    if !server::possible() {
        return;
    }
    let server = Server::start();
    let target = server.target();
    let known_hosts = server.path("known_hosts");
    let with = |checking| Target { host_key_checking: checking, ..target.clone() };
    // the recorded type is asked for, whichever the server likes best
    for name in ["host_ed25519", "host_ecdsa"] {
        server.know(name);
        assert_eq!(hello(&target).await, Ok("root".to_owned()), "{name}");
    }
    // unknown
    fs::write(&known_hosts, "").unwrap();
    let message = hello(&target).await.unwrap_err();
    assert!(message.contains("is not known. Check it and add it"), "{message}");
    assert!(message.contains(&format!("ssh-keyscan -p {} 127.0.0.1", server.port)), "{message}");
    assert_eq!(hello(&with(HostKeyChecking::Off)).await, Ok("root".to_owned()));
    assert_eq!(fs::read_to_string(&known_hosts).unwrap(), "");
    assert_eq!(hello(&with(HostKeyChecking::AcceptNew)).await, Ok("root".to_owned()));
    assert_eq!(
        fs::read_to_string(&known_hosts).unwrap(),
        format!("[127.0.0.1]:{} {}\n", server.port, server.public_key("host_ed25519"))
    );
    assert_eq!(hello(&target).await, Ok("root".to_owned()));
    // changed
    let other = format!("# first line\n[127.0.0.1]:{} {}\n", server.port, server.public_key("id"));
    fs::write(&known_hosts, other).unwrap();
    for checking in [HostKeyChecking::Strict, HostKeyChecking::AcceptNew, HostKeyChecking::Off] {
        let message = hello(&with(checking)).await.unwrap_err();
        assert!(message.contains("has changed"), "{message}");
        assert!(message.contains(&format!("recorded at {}:2", known_hosts.display())), "{message}");
    }
    // revoked
    let line = format!("@revoked * {}\n", server.public_key("host_ed25519"));
    fs::write(&known_hosts, line).unwrap();
    let message = hello(&with(HostKeyChecking::Off)).await.unwrap_err();
    assert!(message.contains("is marked as revoked"), "{message}");
}

#[tokio::test]
async fn certificates_speak_for_hosts() {
    if !server::possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let certificate = folder.path().join("certificate");
    let mut server = Server::start_with(&format!("HostCertificate {}", certificate.display()));
    let authority = server.text("authority");
    assert!(Command::new("ssh-keygen").args(["-q", "-N", "", "-f", &authority]).status().unwrap().success());
    let by = |name: &str| format!("@cert-authority 127.0.0.* {}\n", server.public_key(name));
    let cases = [
        ("127.0.0.1", by("authority"), true),
        ("other.example.org", by("authority"), false),
        ("127.0.0.1", by("id"), false),
    ];
    for (principal, known, trusted) in cases {
        let mut sign = Command::new("ssh-keygen");
        sign.args(["-q", "-s", &authority, "-h", "-I", "test", "-n", principal, &server.text("host_ed25519.pub")]);
        assert!(sign.status().unwrap().success());
        fs::copy(server.path("host_ed25519-cert.pub"), &certificate).unwrap();
        fs::write(server.path("known_hosts"), known).unwrap();
        server.restart();
        let outcome = hello(&server.target()).await;
        assert_eq!(outcome.is_ok(), trusted, "{principal}: {outcome:?}");
        assert!(outcome.is_ok_and(|user| user == "root") || !trusted);
    }
}

#[tokio::test]
async fn other_hosts_and_commands_stand_in_between() {
    if !server::possible() {
        return;
    }
    let (inner, first, second) = (Server::start(), Server::start(), Server::start());
    let known: Vec<String> = [&inner, &first, &second]
        .iter()
        .map(|server| fs::read_to_string(server.path("known_hosts")).unwrap())
        .collect();
    fs::write(inner.path("known_hosts"), known.concat()).unwrap();
    for server in [&first, &second] {
        fs::copy(inner.path("id.pub"), server.path("authorized")).unwrap();
    }
    let config = format!(
        "Host gate\n HostName 127.0.0.1\n Port {}\nHost *\n User root\n IdentityFile {}\n UserKnownHostsFile {}\n \
         GlobalKnownHostsFile none\n IdentityAgent none\n",
        first.port,
        inner.text("id"),
        inner.text("known_hosts")
    );
    fs::write(inner.path("config"), config).unwrap();
    let arguments = |more: &[&str]| {
        let mut words = vec!["-F".to_owned(), inner.text("config")];
        words.extend(more.iter().map(|&word| word.to_owned()));
        words
    };
    let target = |more: &[&str]| Target { ssh_args: arguments(more), ..inner.target() };
    assert_eq!(hello(&target(&["-J", "gate"])).await, Ok("root".to_owned()));
    let chain = format!("gate,root@127.0.0.1:{}", second.port);
    let begin = fs::read_to_string(second.path("log")).unwrap().matches("Accepted publickey").count();
    assert_eq!(hello(&target(&["-o", &format!("ProxyJump={chain}")])).await, Ok("root".to_owned()));
    assert_eq!(fs::read_to_string(second.path("log")).unwrap().matches("Accepted publickey").count(), begin + 1);
    let message = hello(&target(&["-J", "root@127.0.0.1:1"])).await.unwrap_err();
    assert!(message.contains("connection refused"), "{message}");
    let closed = Target { port: Some(1), ..target(&["-J", "gate"]) };
    let message = hello(&closed).await.unwrap_err();
    assert!(message.contains("the host on the way cannot connect to `127.0.0.1` port 1"), "{message}");
    // ssh itself as the command: what a proxy of that kind does
    let command = format!("ProxyCommand=ssh -F {} -W %h:%p gate", inner.text("config"));
    assert_eq!(hello(&target(&["-o", &command])).await, Ok("root".to_owned()));
    let message = hello(&target(&["-o", "ProxyCommand=false"])).await.unwrap_err();
    assert!(message.contains("the server closed the connection"), "{message}");
}

#[tokio::test]
async fn what_does_not_answer_is_given_up_and_what_breaks_is_told() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut target = local();
    target.transport = trimtab::connect::Transport::Ssh;
    target.address = "127.0.0.1".to_owned();
    target.port = Some(silent.local_addr().unwrap().port());
    target.user = Some("root".to_owned());
    target.ssh_args = ["-F", "none", "-o", "IdentityAgent=none"].map(str::to_owned).to_vec();
    target.connect_timeout = Duration::from_millis(400);
    let begin = Instant::now();
    let error = Connection::open(&target).await.unwrap_err();
    assert_eq!(error.kind, ConnectErrorKind::Unreachable);
    assert!(error.message.contains("did not let us in within 0.4 seconds"), "{}", error.message);
    assert!(begin.elapsed() < Duration::from_secs(3));
    target.port = Some(server::free_port());
    let message = Connection::open(&target).await.unwrap_err().message;
    assert_eq!(message, format!("cannot connect to `127.0.0.1` port {}: connection refused", target.port.unwrap()));
    if !server::possible() {
        return;
    }
    let server = Server::start();
    let mut connection = Connection::open(&server.target()).await.unwrap();
    let requests = [read(script("echo one")), read(script("kill -9 $PPID; sleep 1"))];
    let error = connection.run(&login(), &requests).await.unwrap_err();
    assert_eq!(error.kind, ConnectErrorKind::Unreachable);
    assert!(error.message.contains("of 2 answers; what the rest did is unknown"), "{}", error.message);
}

#[tokio::test]
async fn many_hosts_at_once() {
    if !server::possible() {
        return;
    }
    let server = Server::start();
    let begin = Instant::now();
    let tasks: Vec<_> = (0..30)
        .map(|_| {
            let target = server.target();
            tokio::spawn(async move { hello(&target).await })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), Ok("root".to_owned()));
    }
    told(&format!("30 connections: {:?}", begin.elapsed()));
}
