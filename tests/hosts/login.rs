//! SSH against a real sshd: keys, passwords, host keys, jumps, commands, breaks.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use trimtab::connect::{Become, ConnectErrorKind, Connection, HostKeyChecking, Identity, Secret, Target};

use crate::server::{self, Server, User};
use crate::support::*;

async fn hello(target: &Target) -> Result<String, String> {
    let mut connection = Connection::open(target).await.map_err(|error| error.message)?;
    let answers = connection.run(&login(), &[read(script("id -un"))]).await.map_err(|error| error.message)?;
    connection.close().await;
    Ok(answers[0].text().trim().to_owned())
}

#[tokio::test]
async fn all_bytes_pass_over_ssh() {
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
        let mut forbidden = wrong.clone();
        forbidden.ssh_args.push("-oPreferredAuthentications=publickey".to_owned());
        let message = hello(&forbidden).await.unwrap_err();
        assert!(message.starts_with("Permission denied (publickey,"), "{message}");
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
async fn servers_with_few_algorithms_are_spoken_to() {
    if !server::possible() {
        return;
    }
    let cases: &[(&str, &[&str])] = &[
        ("KexAlgorithms ecdh-sha2-nistp256\nCiphers aes128-ctr\nMACs hmac-sha1", &[]),
        ("KexAlgorithms ecdh-sha2-nistp521\nCiphers aes256-gcm@openssh.com", &[]),
        ("KexAlgorithms diffie-hellman-group-exchange-sha256\nMACs hmac-sha2-256", &[]),
        ("KexAlgorithms diffie-hellman-group14-sha256\nCiphers chacha20-poly1305@openssh.com", &[]),
        ("KexAlgorithms diffie-hellman-group14-sha1", &["-o", "KexAlgorithms=+diffie-hellman-group14-sha1"]),
        ("Compression yes", &["-C"]),
    ];
    for (lines, arguments) in cases {
        let server = Server::start_with(lines);
        let target = Target { ssh_args: server.arguments(arguments), ..server.target() };
        assert_eq!(hello(&target).await, Ok("root".to_owned()), "{lines}");
        if arguments.len() == 2 {
            let message = hello(&server.target()).await.unwrap_err();
            assert!(message.contains("no Kex algorithm in common; the server has"), "{message}");
        }
    }
}

#[tokio::test]
async fn keys_are_renewed_while_data_flows() {
    if !server::possible() {
        return;
    }
    let server = Server::start_with("RekeyLimit 1M");
    let mut connection = Connection::open(&server.target()).await.unwrap();
    let large: Vec<u8> = (0..8_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let answers =
        run(&mut connection, vec![read(fed("cat", large.clone())), read(fed("cat >&2", large.clone()))]).await;
    for (name, got) in [("stdout", &answers[0].stdout), ("stderr", &answers[1].stderr)] {
        let same = got.iter().zip(&large).take_while(|(left, right)| left == right).count();
        assert!(*got == large, "{name}: {} bytes of {}, the first {same} right", got.len(), large.len());
    }
}

#[tokio::test]
async fn what_speaks_no_ssh_is_refused() {
    let cases: &[(&[u8], &str)] = &[
        (b"220 mail.example.org ESMTP\r\n", "cannot speak SSH with"),
        (b"SSH-2.0-garbage\r\n\x00\x00\x00\x0c\x04\x14 and then nothing that makes sense", "cannot speak SSH with"),
        (b"SSH-2.0-garbage\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "cannot speak SSH with"),
        (b"", "cannot speak SSH with"),
    ];
    for (said, expected) in cases {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let said = said.to_vec();
        let thread = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&said).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let mut target = local();
        target.transport = trimtab::connect::Transport::Ssh;
        target.address = "127.0.0.1".to_owned();
        target.port = Some(port);
        target.ssh_args = ["-F", "none"].map(str::to_owned).to_vec();
        let error = Connection::open(&target).await.unwrap_err();
        assert_eq!(error.kind, ConnectErrorKind::Unreachable);
        assert!(error.message.starts_with(expected), "{}", error.message);
        thread.join().unwrap();
    }
}

#[tokio::test]
async fn a_connection_that_is_dropped_leaves_nothing_behind() {
    if !server::possible() {
        return;
    }
    let server = Server::start();
    for close in [false, true] {
        let mut connection = Connection::open(&server.target()).await.unwrap();
        let answers = run(&mut connection, vec![read(script("echo $$ $PPID"))]).await;
        let answer = answers[0].text();
        if close {
            connection.close().await;
        } else {
            drop(connection);
        }
        for process in answer.split_whitespace() {
            let begin = Instant::now();
            while fs::exists(format!("/proc/{process}")).unwrap() {
                assert!(begin.elapsed() < Duration::from_secs(5), "process {process} still runs, close: {close}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

#[tokio::test]
async fn a_login_shell_need_not_be_posix() {
    if !server::possible() {
        return;
    }
    let user = User::create("shell", "ALL=(ALL) ALL");
    let free = User::create("shellfree", "ALL=(ALL) NOPASSWD: ALL");
    let server = Server::start();
    for shell in ["/bin/bash", "/bin/dash", "/bin/tcsh", "/usr/bin/fish", "/bin/zsh", "/bin/ksh"] {
        if !fs::exists(shell).unwrap() {
            skipped(&format!("there is no {shell}"));
            continue;
        }
        user.set_shell(shell);
        let mut connection = Connection::open(&server.password_target(&user)).await.unwrap();
        let identities = [("sudo", "root"), ("su", user.name.as_str())].map(|(method, name)| Identity {
            become_as: Some(Become {
                method: method.to_owned(),
                user: name.to_owned(),
                password: Some(Secret::new(user.password.clone())),
                exe: None,
                flags: None,
            }),
        });
        for identity in [&login(), &identities[0], &identities[1]] {
            let answers = connection.run(identity, &[read(script("echo fine"))]).await;
            assert_eq!(answers.unwrap()[0].text(), "fine\n", "{shell}");
        }
        free.set_shell(shell);
        let mut connection = Connection::open(&server.password_target(&free)).await.unwrap();
        let root =
            Identity { become_as: identities[0].become_as.clone().map(|root| Become { password: None, ..root }) };
        for _ in 0..2 {
            let answers = connection.run(&root, &[read(script("echo fine; id -u"))]).await;
            assert_eq!(answers.unwrap()[0].text(), "fine\n0\n", "{shell}");
        }
        assert_eq!(connection.counters().round_trips, 3, "{shell}");
    }
}

#[tokio::test]
async fn what_may_not_be_looked_at_is_told_apart_from_what_is_missing() {
    if !server::possible() {
        return;
    }
    let user = User::create("look", "");
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "secret").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let file = file.to_str().unwrap();
    let mut connection = Connection::open(&server.password_target(&user)).await.unwrap();
    for verb in [line(file), content(file), stat(file, true), stat(file, false), checksum(file, "sha1")] {
        for request in [read(verb.clone()), chained(verb.clone())] {
            let answers = run(&mut connection, vec![request]).await;
            assert_eq!((answers[0].code, answers[0].stdout.len()), (Some(1), 0), "{verb:?}");
            assert_eq!(answers[0].error_text(), format!("{file}: Permission denied\n"), "{verb:?}");
        }
    }
    let answers = run(&mut connection, vec![read(content("/etc/shadow")), read(checksum("/etc/shadow", "md5"))]).await;
    for answer in answers {
        assert_eq!(answer.code, Some(1));
        assert!(answer.error_text().contains("/etc/shadow: Permission denied"), "{answer:?}");
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

/// A long way to a server: every chunk is held back for a while, each way.
struct SlowWay {
    port: u16,
    /// The chunks that came, in their order; true: from the server.
    chunks: Arc<Mutex<Vec<bool>>>,
}

impl SlowWay {
    async fn to(port: u16, delay: Duration) -> SlowWay {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let way = SlowWay { port: listener.local_addr().unwrap().port(), chunks: Arc::default() };
        let chunks = Arc::clone(&way.chunks);
        tokio::spawn(async move {
            let (near, _) = listener.accept().await.unwrap();
            let far = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            near.set_nodelay(true).unwrap();
            far.set_nodelay(true).unwrap();
            let (near_read, near_write) = near.into_split();
            let (far_read, far_write) = far.into_split();
            for (mut from, mut to, back) in [(near_read, far_write, false), (far_read, near_write, true)] {
                let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
                let chunks = Arc::clone(&chunks);
                tokio::spawn(async move {
                    let mut buffer = vec![0; 65536];
                    while let Ok(length @ 1..) = from.read(&mut buffer).await {
                        chunks.lock().unwrap().push(back);
                        let _ = sender.send((tokio::time::Instant::now() + delay, buffer[..length].to_vec()));
                    }
                });
                tokio::spawn(async move {
                    while let Some((due, bytes)) = receiver.recv().await {
                        tokio::time::sleep_until(due).await;
                        if to.write_all(&bytes).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        way
    }

    /// How often the client spoke and was answered since this was asked last.
    fn round_trips(&self) -> u64 {
        let chunks = std::mem::take(&mut *self.chunks.lock().unwrap());
        let turns = chunks.chunk_by(|left, right| left == right).filter(|run| !run[0]).count();
        u64::try_from(turns).unwrap()
    }
}

#[tokio::test]
async fn the_counted_round_trips_are_the_real_ones() {
    if !server::possible() {
        return;
    }
    let server = Server::start();
    let delay = Duration::from_millis(100);
    let way = SlowWay::to(server.port, delay).await;
    let mut target = Target { port: Some(way.port), connect_timeout: Duration::from_secs(40), ..server.target() };
    target.ssh_args.splice(0..0, ["-o".to_owned(), "HostKeyAlias=server".to_owned()]);
    fs::write(server.path("known_hosts"), format!("server {}\n", server.public_key("host_ed25519"))).unwrap();
    let mut connection = Connection::open(&target).await.unwrap();
    // what the server tells of itself after the login
    tokio::time::sleep(delay * 3).await;
    assert!(way.round_trips() > 3);
    let requests = [read(script("echo")), read(line("/proc/version")), read(stat("/", true))];
    // input may hold secrets, so it does not go with the command: OpenSSH lets it follow one round trip later
    let secret = [read(fed("cat", "secret"))];
    let another = |method: &str, user: &str| Identity {
        become_as: Some(Become {
            method: method.to_owned(),
            user: user.to_owned(),
            password: None,
            exe: None,
            flags: (method == "su").then(|| "-s /bin/sh".to_owned()),
        }),
    };
    let mut cases = vec![(login(), &requests[..], 2), (another("su", "nobody"), &requests[..], 2)];
    if fs::exists("/usr/bin/sudo").unwrap() {
        cases.extend([(another("sudo", "nobody"), &requests[..], 2), (another("sudo", "root"), &secret[..], 3)]);
    } else {
        skipped("there is no /usr/bin/sudo");
    }
    for (identity, first, round_trips) in cases {
        for (requests, round_trips) in [(first, round_trips), (&requests, 1), (&secret, 1)] {
            let counted = connection.counters().round_trips;
            let begin = Instant::now();
            connection.run(&identity, requests).await.unwrap();
            assert_eq!(connection.counters().round_trips - counted, round_trips, "{identity:?}");
            assert_eq!(way.round_trips(), round_trips, "{identity:?}");
            let least = delay * 2 * u32::try_from(round_trips).unwrap();
            assert!(begin.elapsed() >= least, "{round_trips} round trips took {:?}", begin.elapsed());
        }
    }
}

#[tokio::test]
async fn a_shell_goes_on_after_a_batch_that_came_with_it() {
    if !server::possible() {
        return;
    }
    let server = Server::start();
    for shell in shells() {
        let mut connection = Connection::open_with_shell(&server.target(), shell).await.unwrap();
        let odd = "printf '%s\\n' \"a  b\" 'c!d' \"`echo e`\" \"$((1 + 1))\" é; pwd; exit 3";
        let expected = "a  b\nc!d\ne\n2\né\n/root\n";
        for round_trips in [2, 3, 4] {
            let answers = run(
                &mut connection,
                vec![read(script(odd)), read(stat("/etc/passwd", true)), read(line("/proc/sys/kernel/ostype"))],
            )
            .await;
            assert_eq!((answers[0].code, answers[0].text().as_str()), (Some(3), expected), "{shell}");
            assert_eq!((answers[1].code, answers[2].text().as_str()), (Some(0), "Linux"), "{shell}");
            assert_eq!(connection.counters().round_trips, round_trips, "{shell}");
        }
        // longer than a command line should be
        let mut connection = Connection::open_with_shell(&server.target(), shell).await.unwrap();
        let long = format!("echo {}", "x".repeat(130_000));
        assert_eq!(run(&mut connection, vec![read(script(&long))]).await[0].stdout.len(), 130_001, "{shell}");
        assert_eq!(connection.counters().round_trips, 3, "{shell}");
    }
}
