use super::*;
use crate::modules::testing::{Play, play, snapshot, undo};
use crate::modules::web::server::{Asked, Reply, Server, shells, without};

fn server() -> Server {
    Server::start(|asked: &Asked| match asked.path.as_str() {
        "/json" => Reply::ok("{\"a\": [1, true]}")
            .header("Content-Type", "application/json; charset=utf-8")
            .header("Set-Cookie", "k=v; Path=/")
            .header("X-Own-Header", "x"),
        "/echo" => Reply::ok(asked.body.clone()).header("Content-Type", "text/plain"),
        "/away" => Reply::status("303 See Other").header("Location", "echo"),
        "/kept" => Reply::status("307 Temporary Redirect").header("Location", "/echo"),
        "/made" => Reply { body: b"made".to_vec(), ..Reply::status("201 Created") },
        _ => Reply { body: b"no such page".to_vec(), ..Reply::status("404 Not Found") },
    })
}

fn run(server: &Server, path: &str, more: &[(&'static str, Value)], shell: &'static str) -> Result<Outcome, Failure> {
    let given = [&[("url", server.url(path).into())], more].concat();
    play(&MODULE, &given, &Play { shell, check: false }).result
}

#[test]
fn an_answer_is_taken_apart() {
    for shell in shells() {
        let server = server();
        let outcome = run(&server, "/json", &[], shell).unwrap();
        let told = |key: &str| outcome.result.get(key).cloned().unwrap_or_default();
        assert_eq!((outcome.changed, told("status")), (false, 200.into()), "{shell}");
        assert_eq!(told("json").get("a").unwrap(), &Value::list(vec![1.into(), true.into()]));
        assert_eq!(
            (told("x_own_header"), told("content_type")),
            ("x".into(), "application/json; charset=utf-8".into())
        );
        assert_eq!((told("cookies_string"), told("msg")), ("k=v".into(), "OK (16 bytes)".into()));
        assert_eq!((told("redirected"), told("url")), (false.into(), server.url("/json").into()));
        assert!(!outcome.result.contains_key("content"));
        let content = run(&server, "/json", &[("return_content", true.into())], shell).unwrap();
        assert_eq!(content.result["content"], "{\"a\": [1, true]}".into());
        let failure = run(&server, "/gone", &[], shell).unwrap_err();
        assert_eq!(failure.message, "Status code was 404 and not [200]: HTTP Error 404: Not Found");
        assert_eq!(failure.result["content"], "no such page".into());
        let several = [("status_code", Value::list(vec![200.into(), 404.into()]))];
        assert_eq!(run(&server, "/gone", &several, shell).unwrap().result["status"], 404.into());
        let nowhere = play(&MODULE, &[("url", "http://127.0.0.1:1/".into())], &Play { shell, check: true });
        let failure = nowhere.result.unwrap_err();
        assert!(
            failure.message.starts_with("Status code was -1 and not [200]: Request failed: "),
            "{}",
            failure.message
        );
        let away = run(&server, "/away", &[], shell).unwrap();
        assert_eq!(
            (away.result["redirected"].clone(), away.result["url"].clone()),
            (true.into(), server.url("/echo").into())
        );
        let kept = [("follow_redirects", "none".into()), ("status_code", 303.into())];
        assert_eq!(run(&server, "/away", &kept, shell).unwrap().result["location"], server.url("/echo").into());
    }
}

#[test]
fn bodies_are_sent_as_their_format_says() {
    if !shells().contains(&"sh") {
        return;
    }
    let server = server();
    let echoed = |path: &str, more: &[(&'static str, Value)]| {
        let own = [("method", "POST".into()), ("return_content", true.into()), ("follow_redirects", "all".into())];
        let outcome = run(&server, path, &[&own[..], more].concat(), "sh").unwrap();
        (outcome.result["content"].to_string(), server.asked())
    };
    let map: Value = crate::value::object([("a", 1.into()), ("b", "x\ny".into())]).into();
    let (body, asked) = echoed("/echo", &[("body", map.clone()), ("body_format", "json".into())]);
    assert_eq!(
        (body.as_str(), asked[0].headers["content-type"].as_str()),
        ("{\"a\":1,\"b\":\"x\\ny\"}", "application/json")
    );
    let (body, asked) = echoed("/echo", &[("body", map.clone()), ("body_format", "form-urlencoded".into())]);
    assert_eq!(
        (body.as_str(), asked[0].headers["content-type"].as_str()),
        ("a=1&b=x%0Ay", "application/x-www-form-urlencoded")
    );
    let (body, asked) = echoed("/echo", &[("body", map), ("body_format", "form-multipart".into())]);
    assert!(body.contains("name=\"b\"") && body.contains("x\ny"), "{body}");
    assert!(asked[0].headers["content-type"].starts_with("multipart/form-data; boundary="));
    let (body, _) = echoed("/kept", &[("body", "again\n".into())]);
    assert_eq!(body, "again\n", "307 keeps method and body");
    let (body, asked) = echoed("/away", &[("body", "once".into())]);
    assert_eq!((body.as_str(), asked.len(), asked[1].method.as_str()), ("", 2, "GET"));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("f");
    std::fs::write(&file, b"a\0b").unwrap();
    for remote in [true, false] {
        let given = [("src", file.to_str().unwrap().into()), ("remote_src", remote.into())];
        echoed("/echo", &given);
        let own = [("method", "PUT".into()), ("status_code", "201".into())];
        run(&server, "/made", &[&own[..], &given].concat(), "sh").unwrap();
        let asked = server.asked();
        assert_eq!((asked[0].method.as_str(), asked[0].body.as_slice()), ("PUT", &b"a\0b"[..]));
    }
    let given = [("url", server.url("/echo").into()), ("method", "DELETE".into())];
    let played = play(&MODULE, &given, &Play { shell: "sh", check: true });
    assert!(played.result.unwrap().skipped && server.asked().is_empty());
}

#[test]
fn an_answer_is_saved_once_and_taken_back() {
    for shell in shells() {
        let server = server();
        let root = tempfile::tempdir().unwrap();
        let before = snapshot(root.path());
        let dest = root.path().join("answer");
        let given =
            [("url", server.url("/json").into()), ("dest", dest.to_str().unwrap().into()), ("mode", "0600".into())];
        assert!(play(&MODULE, &given, &Play { shell, check: true }).result.unwrap().changed);
        assert_eq!(snapshot(root.path()), before);
        let played = play(&MODULE, &given, &Play { shell, check: false });
        let outcome = played.result.unwrap();
        assert_eq!((outcome.changed, outcome.result["path"].clone()), (true, dest.to_str().unwrap().into()));
        assert_eq!(std::fs::read_to_string(&dest).unwrap(), "{\"a\": [1, true]}");
        assert!(!play(&MODULE, &given, &Play { shell, check: false }).result.unwrap().changed);
        let kept = [&given[..1], &[("creates", dest.to_str().unwrap().into())]].concat();
        let kept = play(&MODULE, &kept, &Play { shell, check: false }).result.unwrap();
        assert!(kept.result["msg"].to_string().starts_with("skipped, since"));
        undo(&played.changes);
        assert_eq!(snapshot(root.path()), before);
    }
}

#[test]
fn sockets_of_the_host_and_refusals() {
    let server = server();
    let refused = |more: &[(&'static str, Value)]| run(&server, "/echo", more, "sh").unwrap_err().message;
    assert!(refused(&[("use_gssapi", true.into())]).contains("`use_gssapi` is not supported"));
    assert!(refused(&[("follow_redirects", "some".into())]).contains("must be one of"));
    assert!(refused(&[("method", "GET /".into())]).contains("single word"));
    assert!(refused(&[("status_code", "ok".into())]).contains("no number"));
    let header = crate::value::object([("X", "a\nb".into())]);
    assert!(refused(&[("headers", header.into())]).contains("no header"));
    assert!(run_url("nonsense").contains("is no URL"));
    let alone = run(&server, "/echo", &[("method", "POST".into()), ("body", "x".into())], without(&["curl"]));
    assert!(alone.unwrap_err().message.contains("no curl"));
    if !shells().contains(&"sh") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 512];
        let _ = stream.read(&mut asked);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    });
    let given = [
        ("url", "http://localhost/info".into()),
        ("unix_socket", path.to_str().unwrap().into()),
        ("return_content", true.into()),
    ];
    let outcome = play(&MODULE, &given, &Play::default()).result.unwrap();
    assert_eq!(outcome.result["content"], "hi".into());
}

fn run_url(url: &str) -> String {
    play(&MODULE, &[("url", url.into())], &Play::default()).result.unwrap_err().message
}
