use super::*;
use crate::modules::docker_client::tests::fake;
use crate::modules::fake_programs::FakePrograms;
use crate::modules::testing::{Play, Played, play, undo_in};

fn run(fake: &FakePrograms, more: &[(&'static str, Value)], check: bool) -> Played {
    play(&MODULE, &[&[("name", "web".into())], more].concat(), &Play { shell: fake.shell(), check })
}

/// What docker would tell of a container.
fn container(image: &str, running: bool) -> String {
    format!(
        "[{{\"Image\": \"sha256:1\", \"State\": {{\"Running\": {running}, \"Status\": \"x\"}}, \
         \"Config\": {{\"Image\": \"{image}\", \"Env\": [\"A=1\", \"PATH=/bin\"], \"Cmd\": [\"serve\", \"a b\"], \"Hostname\": \"h\"}}, \
         \"HostConfig\": {{\"NetworkMode\": \"default\", \"Memory\": 536870912, \"Binds\": [\"/a:/b:rw\"], \
         \"RestartPolicy\": {{\"Name\": \"always\"}}, \"PortBindings\": {{\"80/tcp\": [{{\"HostIp\": \"\", \"HostPort\": \"8080\"}}]}}}}}}]"
    )
}

fn options() -> Vec<(&'static str, Value)> {
    vec![
        ("image", "i".into()),
        ("env", crate::value::object([("A", 1.into())]).into()),
        ("command", "serve 'a b'".into()),
        ("memory", "512M".into()),
        ("volumes", "/a:/b".into()),
        ("ports", "8080:80".into()),
        ("restart_policy", "always".into()),
    ]
}

#[test]
fn a_container_is_made_kept_and_taken_back() {
    let fake = fake();
    fake.write("made", &container("i:latest", false));
    assert!(run(&fake, &options(), true).result.unwrap().changed && !fake.read("log").contains("create"));
    let made = run(&fake, &options(), false);
    let outcome = made.result.unwrap();
    assert!(outcome.changed && fake.read("log").contains("pull i:latest"));
    assert!(
        fake.read("log").contains(
            "create --name web --memory 536870912b --volume /a:/b --env A=1 --restart always --publish 8080:80 i:latest serve a b"
        ),
        "{}",
        fake.read("log")
    );
    assert_eq!(outcome.result["container"].get("State").unwrap().get("Running").cloned(), Some(true.into()));
    for check in [true, false] {
        assert!(!run(&fake, &options(), check).result.unwrap().changed);
    }
    let stopped = run(&fake, &[&options()[..], &[("state", "stopped".into())]].concat(), false);
    assert!(stopped.result.unwrap().changed && fake.read("container/web").contains("\"Running\": false"));
    undo_in(&stopped.changes, fake.shell());
    assert!(fake.read("container/web").contains("\"Running\": true"));
    undo_in(&made.changes, fake.shell());
    assert!(!fake.file("container/web").exists());
}

#[test]
fn what_differs_makes_it_anew() {
    let fake = fake();
    fake.write("made", &container("i:latest", false));
    run(&fake, &options(), false).result.unwrap();
    for (name, value) in [
        ("env", crate::value::object([("A", 2.into())]).into()),
        ("ports", "8081:80".into()),
        ("memory", "1G".into()),
        ("restart_policy", "no".into()),
        ("hostname", "other".into()),
    ] {
        let given = [&options()[..], &[(name, value)]].concat();
        let given: Vec<(&'static str, Value)> = given
            .iter()
            .enumerate()
            .filter(|(at, own)| own.0 != name || at + 1 == given.len())
            .map(|(_, own)| own.clone())
            .collect();
        let outcome = run(&fake, &given, true).result.unwrap();
        assert!(outcome.changed && outcome.differences[0].after.contains(name), "{name}: {:?}", outcome.differences);
        let ignored = crate::value::object([(name, "ignore".into())]);
        let ignored = [&given[..], &[("comparisons", ignored.into())]].concat();
        assert!(!run(&fake, &ignored, true).result.unwrap().changed, "{name}");
    }
    let anew = [&options()[..], &[("recreate", true.into())]].concat();
    let played = run(&fake, &anew, false);
    assert!(played.result.unwrap().changed && matches!(played.changes[0].inverse, Inverse::None(_)));
    let log = fake.read("log");
    assert!(log.contains("rename web web.trimtab-old") && log.trim_end().ends_with("container inspect web"), "{log}");
    assert!(fake.file("container/web").exists() && !fake.file("container/web.trimtab-old").exists());
}

#[test]
fn containers_are_removed_and_refusals_told() {
    let fake = fake();
    assert!(!run(&fake, &[("state", "absent".into())], false).result.unwrap().changed);
    fake.write("made", &container("i:latest", false));
    run(&fake, &options(), false).result.unwrap();
    assert!(
        run(&fake, &[("state", "absent".into())], false).result.unwrap().changed
            && !fake.file("container/web").exists()
    );
    let refused = |more: &[(&'static str, Value)]| run(&fake, more, true).result.unwrap_err().message;
    assert!(refused(&[]).contains("image is not specified"));
    assert!(
        refused(&[("image", "i".into()), ("mounts", Value::list(vec!["x".into()]))])
            .contains("`mounts` is not supported")
    );
    assert!(refused(&[("image", "gone".into()), ("pull", "never".into())]).contains("pull=never"));
    assert!(refused(&[("image", "i".into()), ("memory", "much".into())]).contains("no size"));
}
