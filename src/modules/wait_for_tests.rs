use std::io::Write;
use std::net::TcpListener;

use super::*;
use crate::modules::testing::{Play, check_module, play, run_module, shells};

fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[test]
fn a_port_is_waited_for_on_every_shell() {
    let (listener, port) = listener();
    for shell in shells() {
        let outcome =
            play(&MODULE, &[("port", i64::from(port).into())], &Play { shell, ..Play::default() }).result.unwrap();
        assert_eq!((outcome.changed, outcome.result["port"].clone()), (false, i64::from(port).into()), "{shell}");
        let stopped = [("port", i64::from(port).into()), ("state", "stopped".into()), ("timeout", 1.into())];
        let failure = play(&MODULE, &stopped, &Play { shell, ..Play::default() }).result.unwrap_err();
        assert_eq!(failure.message, format!("Timeout when waiting for 127.0.0.1:{port} to stop."), "{shell}");
    }
    drop(listener);
    assert!(run_module(&MODULE, &[("port", i64::from(port).into()), ("state", "stopped".into())]).is_ok());
    let failure = run_module(&MODULE, &[("port", i64::from(port).into()), ("timeout", 1.into())]).unwrap_err();
    assert_eq!(failure.message, format!("Timeout when waiting for 127.0.0.1:{port}"));
    let late = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1200));
        TcpListener::bind(("127.0.0.1", port)).map(|listener| (listener, std::thread::sleep(Duration::from_secs(5))))
    });
    let outcome = run_module(&MODULE, &[("port", i64::from(port).into()), ("timeout", 20.into())]).unwrap();
    assert!(outcome.result["elapsed"].as_int().unwrap() >= 1);
    drop(late);
}

#[test]
fn words_of_a_port_are_searched() {
    let (listener, port) = listener();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.6\r\n");
            kept.push(stream);
        }
    });
    let given = [
        ("port", i64::from(port).into()),
        ("search_regex", "^SSH-(?P<version>[0-9.]+)-(\\w+)".into()),
        ("timeout", 10.into()),
    ];
    let outcome = run_module(&MODULE, &given).unwrap();
    assert_eq!(outcome.result["match_groups"].to_repr(), "['2.0', 'OpenSSH_9']");
    assert_eq!(outcome.result["match_groupdict"].to_repr(), "{'version': '2.0'}");
    let given = [
        ("port", i64::from(port).into()),
        ("search_regex", "never".into()),
        ("timeout", 2.into()),
        ("msg", "no luck".into()),
    ];
    assert_eq!(run_module(&MODULE, &given).unwrap_err().message, "no luck");
}

#[test]
fn a_file_and_its_words_are_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let text = path.to_str().unwrap().to_owned();
    let absent = [("path", text.as_str().into()), ("state", "absent".into())];
    assert!(run_module(&MODULE, &absent).is_ok());
    let failure = run_module(&MODULE, &[("path", text.as_str().into()), ("timeout", 1.into())]).unwrap_err();
    assert_eq!(failure.message, format!("Timeout when waiting for file {text}"));
    assert!(failure.result.contains_key("elapsed"));
    std::fs::write(&path, "one\n").unwrap();
    assert!(run_module(&MODULE, &[("path", text.as_str().into())]).is_ok());
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1200));
        std::fs::write(path, "one\ntask 7 completed\n").unwrap();
    });
    let given = [("path", text.as_str().into()), ("search_regex", "^task (?P<number>\\d+) completed$".into())];
    let outcome = run_module(&MODULE, &given).unwrap();
    assert_eq!(outcome.result["match_groupdict"].to_repr(), "{'number': '7'}");
    writer.join().unwrap();
}

#[test]
fn connections_are_waited_to_end() {
    let (listener, port) = listener();
    let client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let server = listener.accept().unwrap();
    let given = [("port", i64::from(port).into()), ("state", "drained".into()), ("timeout", 1.into())];
    let failure = run_module(&MODULE, &given).unwrap_err();
    assert_eq!(failure.message, format!("Timeout when waiting for 127.0.0.1:{port} to drain"));
    let excluded = [&given[..], &[("exclude_hosts", "127.0.0.1".into())]].concat();
    assert!(run_module(&MODULE, &excluded).is_ok());
    drop((client, server));
    let established = [&given[..], &[("active_connection_states", "ESTABLISHED".into())]].concat();
    assert!(run_module(&MODULE, &established).is_ok());
}

#[test]
fn senseless_waits_are_refused_and_check_mode_skips() {
    let cases: [(&[(&str, Value)], &str); 5] = [
        (&[("port", 22.into()), ("path", "/x".into())], "port and path parameter"),
        (&[("path", "/x".into()), ("state", "drained".into())], "state=drained should only"),
        (&[("port", 70_000.into())], "70000 is no TCP port"),
        (&[("port", 22.into()), ("exclude_hosts", "a".into())], "exclude_hosts should only"),
        (&[("path", "/x".into()), ("search_regex", "(".into())], "the regular expression"),
    ];
    for (given, message) in cases {
        let failure = run_module(&MODULE, given).unwrap_err();
        assert!(failure.message.starts_with(message), "{}", failure.message);
    }
    assert!(check_module(&MODULE, &[("port", 1.into())]).unwrap().skipped);
    let begun = Instant::now();
    assert_eq!(run_module(&MODULE, &[("timeout", 1.into())]).unwrap().result["elapsed"], 1.into());
    assert!(begun.elapsed() >= Duration::from_secs(1));
}
