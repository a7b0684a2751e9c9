//! `community.docker.docker_image`: images of Docker.

use serde_json::Value as Json;

use crate::connect::shell::quote;
use crate::host::{Change, Difference, Failure, Footprint, Inverse};
use crate::value::Value;

use super::docker_client::{self as client, Client, with_tag};
use super::file_common::path::absolute;
use super::programs::make;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "community.docker.docker_image",
    aliases: &["community.general.docker_image"],
    summary: "Pulls, builds, loads, tags, pushes and removes images by the host's docker client",
    args: &[
        Arg::new("name", Type::Str, "the image: name, name:tag, registry/name, or its id").required(),
        Arg::new("tag", Type::Str, "the tag, if the name has none").default("latest"),
        Arg::new("state", Type::Str, "whether it is there").default("present").choices(&["absent", "present"]),
        Arg::new("source", Type::Str, "where it comes from: needed for state=present")
            .choices(&["build", "load", "pull", "local"]),
        Arg::new(
            "build",
            Type::Dict,
            "for source=build: `path`, and `dockerfile`, `args`, `pull`, `rm`, `nocache`, `network`, `target`, `labels`, `cache_from`, `etc_hosts`, `platform`, `shm_size`",
        ),
        Arg::new("pull", Type::Dict, "for source=pull: `platform`"),
        Arg::new("load_path", Type::Path, "for source=load: the file on the host"),
        Arg::new("archive_path", Type::Path, "save it to this file too"),
        Arg::new("repository", Type::Str, "another name, with a tag or without, that it gets too"),
        Arg::new("push", Type::Bool, "push it to its registry").default("false"),
        Arg::new("force_source", Type::Bool, "pull, build or load it though it is there").default("false"),
        Arg::new("force_absent", Type::Bool, "remove it though containers use it").default("false"),
        Arg::new("force_tag", Type::Bool, "give another image's name to it").default("false"),
        Arg::new("force", Type::Bool, "old: all three").default("false"),
        Arg::shared(client::DAEMON),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("image", "what docker tells of the image"), ("actions", "what was done")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let client = Client::parse(&args, &settings)?;
    let text = |name: &str| args.str(name).filter(|text| !text.is_empty());
    let name = with_tag(args.text("name"), args.text("tag"));
    if name.starts_with('-') || name.contains(char::is_whitespace) {
        return Err(Failure::new(format!("`{name}` cannot be the name of an image")));
    }
    let quoted = quote(&name);
    let forced = |key: &str| args.bool(key) || args.bool("force");
    let before = client.inspect(&host, "image", &name).await?;
    if args.text("state") == "absent" {
        let Some(before) = before else {
            return Ok(Outcome::ok()
                .with("actions", Value::list(Vec::new()))
                .with("image", Value::map(Default::default())));
        };
        let force = if forced("force_absent") { " -f" } else { "" };
        let inverse = Inverse::None(format!("the image {name} would have to be pulled, built or loaded again"));
        let done = vec![format!("Removed image {name}")];
        return change(
            &host,
            &client,
            &name,
            &format!("docker rmi{force} {quoted} >&2"),
            inverse,
            (id(Some(&before)), String::new()),
            done,
            None,
        )
        .await;
    }
    let mut code = String::new();
    let mut actions = Vec::new();
    let needs = before.is_none() || forced("force_source");
    match text("source") {
        None => return Err(Failure::new("state is present but all of the following are missing: source")),
        Some("local") if before.is_none() => {
            return Err(Failure::new(format!("Cannot find the image {name} locally.")));
        }
        Some("pull") if needs => {
            code.push_str(&format!("docker pull{} {quoted} >&2 || exit\n", pull(&args)?));
            actions.push(format!("Pulled image {name}"));
        }
        Some("load") if needs => {
            let path = text("load_path")
                .ok_or_else(|| Failure::new("source is load but all of the following are missing: load_path"))?;
            let path = absolute(&host, path).await?;
            code.push_str(&format!("docker load -i {} >&2 || exit\n", quote(&path)));
            actions.push(format!("Loaded image {name} from {path}"));
        }
        Some("build") if needs => {
            code.push_str(&format!("{} >&2 || exit\n", build(&host, &args, &name).await?));
            actions.push(format!("Built image {name}"));
        }
        _ => {}
    }
    let from = code.clone();
    if let Some(repository) = text("repository") {
        let other = with_tag(repository, args.text("tag"));
        let there = client.inspect(&host, "image", &other).await?;
        let same = there.is_some() && id(there.as_ref()) == id(before.as_ref()) && from.is_empty();
        if !same && (there.is_none() || forced("force_tag") || !from.is_empty()) {
            code.push_str(&format!("docker tag {quoted} {} || exit\n", quote(&other)));
            actions.push(format!("Tagged image {name} to {other}"));
        }
        if args.bool("push") {
            code.push_str(&format!("docker push {} >&2 || exit\n", quote(&other)));
            actions.push(format!("Pushed image {other}"));
        }
    } else if args.bool("push") {
        code.push_str(&format!("docker push {quoted} >&2 || exit\n"));
        actions.push(format!("Pushed image {name}"));
    }
    if let Some(path) = text("archive_path") {
        let path = absolute(&host, path).await?;
        let there = host.read(crate::host::reads::Attributes { path: path.clone(), follow: true }).await?;
        if there.is_none() || !from.is_empty() {
            code.push_str(&format!("docker save -o {} {quoted} || exit\n", quote(&path)));
            actions.push(format!("Archived image {name} to {path}"));
        }
    }
    if code.is_empty() {
        let image = before.map(|image| Value::from_json(&image)).unwrap_or_default();
        return Ok(Outcome::ok().with("image", image).with("actions", Value::list(Vec::new())));
    }
    let inverse = match (&before, args.bool("push")) {
        (_, true) => Inverse::None("what was pushed to a registry stays there".to_owned()),
        (None, false) => Inverse::Steps(vec![client.step(&format!("docker rmi {quoted} >&2"))]),
        (Some(old), false) => match id(Some(old)).is_empty() {
            true => Inverse::None("the old image is not known".to_owned()),
            false => Inverse::Steps(vec![client.step(&format!("docker tag {} {quoted}", quote(id(Some(old)).trim())))]),
        },
    };
    let tail = format!("docker image inspect {quoted}");
    let after = format!("{}\n", actions.join("\n"));
    change(&host, &client, &name, &format!("{code}{tail}"), inverse, (id(before.as_ref()), after), actions, before)
        .await
}

fn id(image: Option<&Json>) -> String {
    image.and_then(|image| image.get("Id")?.as_str()).map(|id| format!("{id}\n")).unwrap_or_default()
}

#[allow(clippy::too_many_arguments)]
async fn change(
    host: &crate::host::Host,
    client: &Client,
    name: &str,
    code: &str,
    inverse: Inverse,
    shown: (String, String),
    actions: Vec<String>,
    before: Option<Json>,
) -> Result<Outcome, Failure> {
    let change =
        Change::uncertain(format!("image {name}"), client::footprint().and(Footprint::tree("/var/lib/docker")))
            .step(client.step(code))
            .inverse(inverse)
            .difference(Difference::new(format!("image {name}"), shown.0, shown.1));
    let differences = change.differences.clone();
    let responses = make(host, change).await?;
    let told = responses.and_then(|responses| responses.into_iter().next()).map(|response| response.text());
    let image = told.and_then(|text| serde_json::from_str::<Json>(&text).ok()?.as_array()?.first().cloned());
    // what was asked for may have been there: pulled again, it is the same
    let only_source =
        actions.len() == 1 && ["Pulled", "Loaded", "Built"].iter().any(|word| actions[0].starts_with(word));
    let changed = !(only_source && before.is_some() && image.is_some() && id(image.as_ref()) == id(before.as_ref()));
    let list = Value::list(actions.into_iter().map(Value::from).collect());
    let image = image.or(before).map(|image| Value::from_json(&image)).unwrap_or_default();
    let outcome = Outcome::with_changed(changed).with("image", image).with("actions", list);
    Ok(if changed { outcome.differences(differences) } else { outcome })
}

fn pull(args: &Args) -> Result<String, Failure> {
    let mut words = String::new();
    for (key, value) in args.get("pull").and_then(Value::as_map).into_iter().flatten() {
        match &*key.to_text() {
            "platform" if value.is_null() => {}
            "platform" => words.push_str(&format!(" --platform {}", quote(&value.to_text()))),
            other => return Err(Failure::new(format!("`pull` has no key `{other}`"))),
        }
    }
    Ok(words)
}

async fn build(host: &crate::host::Host, args: &Args, name: &str) -> Result<String, Failure> {
    let given = args.get("build").and_then(Value::as_map).cloned().unwrap_or_default();
    let path = given.get("path").map(|path| path.to_text().into_owned()).filter(|path| !path.is_empty());
    let path = path.ok_or_else(|| Failure::new("source is build but all of the following are missing: build.path"))?;
    let path = absolute(host, &path).await?;
    let mut words = format!("docker build --tag {}", quote(name));
    for (key, value) in given.iter().filter(|(_, value)| !value.is_null()) {
        let is_on = value.to_ansible_bool().unwrap_or(false);
        let text = value.to_text();
        let mut pairs = |option: &str, between: &str| {
            for (name, value) in value.as_map().into_iter().flatten() {
                words.push_str(&format!(
                    " {option} {}",
                    quote(&format!("{}{between}{}", name.to_text(), value.to_text()))
                ));
            }
        };
        match &*key.to_text() {
            "path" | "use_config_proxy" | "http_timeout" => {}
            "dockerfile" => {
                let file = if text.starts_with('/') { text.into_owned() } else { format!("{path}/{text}") };
                words.push_str(&format!(" --file {}", quote(&file)));
            }
            "args" => pairs("--build-arg", "="),
            "labels" => pairs("--label", "="),
            "etc_hosts" => pairs("--add-host", ":"),
            "pull" => words.push_str(if is_on { " --pull" } else { "" }),
            "rm" => words.push_str(if is_on { "" } else { " --rm=false" }),
            "nocache" => words.push_str(if is_on { " --no-cache" } else { "" }),
            "network" | "target" | "platform" => words.push_str(&format!(" --{} {}", key.to_text(), quote(&text))),
            "shm_size" => words.push_str(&format!(" --shm-size {}", quote(&text))),
            "cache_from" => {
                for image in value.as_list().unwrap_or_default() {
                    words.push_str(&format!(" --cache-from {}", quote(&image.to_text())));
                }
            }
            other => return Err(Failure::new(format!("`build` has no key `{other}` here"))),
        }
    }
    words.push_str(&format!(" {}", quote(&path)));
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::docker_client::tests::fake;
    use crate::modules::testing::{Play, play, undo_in};

    #[test]
    fn images_come_and_go() {
        let fake = fake();
        let run = |more: &[(&'static str, Value)], check| {
            play(&MODULE, &[&[("name", "reg:5000/a".into())], more].concat(), &Play { shell: fake.shell(), check })
        };
        let has = |name: &str| fake.file(&format!("image/{name}")).exists();
        let pull = [("source", "pull".into()), ("tag", "1".into())];
        assert!(run(&pull, true).result.unwrap().changed && !has("reg_5000_a_1"));
        let pulled = run(&pull, false);
        let outcome = pulled.result.unwrap();
        assert_eq!(outcome.result["image"].get("Id").cloned(), Some("sha256:1".into()));
        assert!(outcome.changed && has("reg_5000_a_1") && !run(&pull, false).result.unwrap().changed);
        let again = [&pull[..], &[("force_source", true.into())]].concat();
        assert!(!run(&again, false).result.unwrap().changed, "the same image was pulled again");
        fake.write("next", "2");
        let newer = run(&again, false);
        assert!(newer.result.unwrap().changed);
        fake.write("image/sha256_1", "[{\"Id\": \"sha256:1\"}]");
        undo_in(&newer.changes, fake.shell());
        assert!(fake.read("image/reg_5000_a_1").contains("sha256:1"));
        let tag = [("source", "local".into()), ("tag", "1".into()), ("repository", "b".into())];
        assert!(run(&tag, false).result.unwrap().changed && has("b_1") && !run(&tag, true).result.unwrap().changed);
        let gone = [("state", "absent".into()), ("tag", "1".into())];
        assert!(run(&gone, false).result.unwrap().changed && !has("reg_5000_a_1"));
        assert!(!run(&gone, false).result.unwrap().changed);
        fake.write("offline", "");
        assert!(run(&pull, false).result.unwrap_err().message.contains("no network"));
    }

    #[test]
    fn images_are_built_loaded_saved_and_pushed() {
        let fake = fake();
        let run = |more: &[(&'static str, Value)]| {
            play(&MODULE, &[&[("name", "a:2".into())], more].concat(), &Play { shell: fake.shell(), check: false })
                .result
        };
        let options = crate::value::object([
            ("path", "/src".into()),
            ("args", crate::value::object([("V", "a b".into())]).into()),
            ("nocache", true.into()),
        ]);
        assert!(run(&[("source", "build".into()), ("build", options.into())]).unwrap().changed);
        assert!(fake.read("log").contains("build --tag a:2 --build-arg V=a b --no-cache /src"), "{}", fake.read("log"));
        let saved = fake.file("saved.tar").to_str().unwrap().to_owned();
        let save = [("source", "local".into()), ("archive_path", saved.as_str().into())];
        assert!(run(&save).unwrap().changed && !run(&save).unwrap().changed);
        fake.write("x.tar", "c:latest");
        let load = [
            ("name", "c".into()),
            ("source", "load".into()),
            ("load_path", fake.file("x.tar").to_str().unwrap().into()),
        ];
        assert!(play(&MODULE, &load, &Play { shell: fake.shell(), check: false }).result.unwrap().changed);
        let outcome = run(&[("source", "local".into()), ("push", true.into())]).unwrap();
        assert_eq!(outcome.result["actions"], Value::list(vec!["Pushed image a:2".into()]));
        assert!(run(&[]).unwrap_err().message.contains("source"));
        let wrong = crate::value::object([("path", "/s".into()), ("nonsense", 1.into())]);
        assert!(
            run(&[("source", "build".into()), ("force_source", true.into()), ("build", wrong.into())])
                .unwrap_err()
                .message
                .contains("`nonsense`")
        );
    }
}
