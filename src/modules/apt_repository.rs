//! ansible.builtin.apt_repository: a line in the source lists of apt.

use regex::Regex;

use crate::host::reads::Script;
use crate::host::{Change, Failure, Footprint, Host, Inverse};

use super::execution::environment;
use super::file_common::content::difference;
use super::file_common::destination::{Manner, look, plan_edit};
use super::file_common::permissions::MODE;
use super::package_common::apt_work::LOCK;
use super::package_common::deb_request::preparation;
use super::package_common::removal::remove;
use super::package_common::tool::texts;
use super::package_common::update_lists;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.apt_repository",
    aliases: &[],
    summary: "Adds a line to the source lists of apt, or removes it",
    args: &[
        Arg::new("repo", Type::Str, "The line: `deb [options] URI suite component…`").required(),
        Arg::new("state", Type::Str, "Whether it is there").default("present").choices(&["absent", "present"]),
        Arg::new("filename", Type::Str, "The file in sources.list.d, without `.list`"),
        MODE,
        Arg::new("update_cache", Type::Bool, "Fetch the package lists after a change")
            .default("true")
            .aliases(&["update-cache"]),
        Arg::new("update_cache_retries", Type::Int, "How often to try to fetch the package lists").default("5"),
        Arg::new("update_cache_retry_max_delay", Type::Int, "The longest pause between two tries in seconds")
            .default("12"),
        Arg::new("validate_certs", Type::Bool, "Has no effect: it concerns PPAs alone").default("true"),
        Arg::new("codename", Type::Str, "Not supported: it concerns PPAs alone"),
        Arg::new("install_python_apt", Type::Bool, "Has no effect: nothing is needed on the host").default("true"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("repo", "the line"),
        ("sources_added", "files that were made"),
        ("sources_removed", "files that were removed"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let repo = args.text("repo").trim();
    if repo.starts_with("ppa:") || args.has("codename") {
        return Err(Failure::new(format!(
            "`{repo}`: the address and the key of a PPA can only be asked of launchpad.net, which is not supported: \
             write its `deb` line, and its key with deb822_repository or get_url"
        )));
    }
    let wanted = Source::parse(repo).filter(|source| source.enabled);
    let Some(wanted) = wanted else { return Err(Failure::new(format!("Invalid repository string: {repo}"))) };
    let present = args.text("state") == "present";
    let environment = preparation(&environment(&settings)?);
    let text = format!(
        "{environment}e=/etc/apt/\n[ -z \"$APT_CONFIG\" ] || eval \"$(apt-config shell e Dir::Etc/d)\"\nprintf '%s' \"$e\"\n\
         for f in \"${{e}}sources.list\" \"${{e}}sources.list.d\"/*.list; do \
         [ ! -f \"$f\" ] || {{ printf '\\036%s\\n' \"$f\"; cat \"$f\"; }}; done\n"
    );
    let answer = host.read(Script { text, footprint: Footprint::tree("/etc/apt") }).await?.text();
    let mut parts = answer.split('\u{1e}');
    let directory = format!("{}sources.list.d", parts.next().unwrap_or_default());
    let files: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('\n')).collect();

    let mut edits: Vec<(String, String)> = Vec::new();
    if present {
        if !files.iter().any(|(_, text)| has(text, &wanted)) {
            let disabled = files.iter().find_map(|(path, text)| Some(((*path).to_owned(), enabled(text, &wanted)?)));
            let file = || {
                let path = target(&directory, &wanted.source, args.str("filename"));
                let old = files.iter().find(|(name, _)| *name == path).map_or("", |(_, text)| *text);
                let newline = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
                (path, format!("{old}{newline}{repo}\n"))
            };
            edits.push(disabled.unwrap_or_else(file));
        }
    } else {
        edits.extend(files.iter().filter_map(|(path, text)| Some(((*path).to_owned(), without(text, &wanted)?))));
    }

    let mut outcome = Outcome::with_changed(!edits.is_empty());
    let (mut added, mut removed, mut made) = (Vec::new(), Vec::new(), Vec::new());
    for (path, new) in &edits {
        let seen = look(&host, &args, path, true).await?;
        let change = if new.is_empty() {
            removed.push(path.clone());
            remove(&seen)
        } else {
            if seen.attributes.is_none() {
                added.push(path.clone());
            }
            plan_edit(&seen, Some(new.clone().into_bytes()), &Manner::default()).change
        };
        let Some(change) = change else { continue };
        let shown = difference((path, path), seen.content.as_deref(), false, new.as_bytes());
        outcome = outcome.differences([shown.clone()]);
        let change = change.difference(shown);
        made.push(change.inverse.clone());
        host.change(change).await?;
    }
    if !edits.is_empty() && args.bool("update_cache") {
        update(&host, &environment, &args, made).await?;
    }
    Ok(outcome
        .with("repo", repo)
        .with("state", args.text("state"))
        .with("sources_added", texts(&added))
        .with("sources_removed", texts(&removed)))
}

/// Fetches the package lists; if they cannot be had, the source lists become what they were.
async fn update(host: &Host, environment: &str, args: &Args, made: Vec<Inverse>) -> Result<(), Failure> {
    let Err(failure) = update_lists::run(host, environment, args, LOCK).await else { return Ok(()) };
    for inverse in made.into_iter().rev() {
        if let Inverse::Steps(steps) = inverse {
            let mut back = Change::uncertain("source lists of apt as they were", Footprint::tree("/etc/apt"))
                .inverse(Inverse::None("this takes back what was not right".to_owned()));
            back.steps = steps;
            host.change(back).await?;
        }
    }
    Err(failure)
}

/// A line that names a source.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    enabled: bool,
    /// With single blanks, without remark.
    source: String,
}

impl Source {
    fn parse(line: &str) -> Option<Source> {
        let line = line.trim();
        let (enabled, line) = match line.strip_prefix('#') {
            Some(rest) => (false, rest),
            None => (true, line),
        };
        let line = line.find('#').filter(|at| *at > 0).map_or(line, |at| &line[..at]);
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_source = matches!(words.first(), Some(&"deb" | &"deb-src")) && words.len() > 2;
        is_source.then(|| Source { enabled, source: words.join(" ") })
    }
}

fn has(text: &str, wanted: &Source) -> bool {
    text.lines().filter_map(Source::parse).any(|source| source == *wanted)
}

/// The text with the line no longer a remark; `None` if it is not there.
fn enabled(text: &str, wanted: &Source) -> Option<String> {
    let is_it = |line: &str| Source::parse(line).is_some_and(|source| source.source == wanted.source);
    text.lines().any(is_it).then(|| {
        let line = |line: &str| if is_it(line) { format!("{}\n", wanted.source) } else { format!("{line}\n") };
        text.lines().map(line).collect()
    })
}

/// The text without the line, and nothing if no other line is left; `None` if it is not there.
fn without(text: &str, wanted: &Source) -> Option<String> {
    if !has(text, wanted) {
        return None;
    }
    let stays = |line: &&str| Source::parse(line).as_ref() != Some(wanted);
    let rest: String = text.split_inclusive('\n').filter(stays).collect();
    Some(if rest.trim().is_empty() { String::new() } else { rest })
}

/// The file for a new line: named, or by the address.
fn target(directory: &str, source: &str, name: Option<&str>) -> String {
    if let Some(name) = name {
        return if name.starts_with('/') { format!("{name}.list") } else { format!("{directory}/{name}.list") };
    }
    let pattern = |text: &str| Regex::new(text).map_err(|_| ());
    let (Ok(options), Ok(scheme)) = (pattern(r"\[[^\]]+\]"), pattern(r"\w+://")) else { return String::new() };
    let bare = scheme.replace_all(&options.replace_all(source, ""), "").into_owned();
    let address = bare.split_whitespace().find(|word| !matches!(*word, "deb" | "deb-src")).unwrap_or_default();
    let address = address.split_once('@').map_or(address, |(_, rest)| rest);
    let words: Vec<&str> =
        address.split(|sign: char| !sign.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
    format!("{directory}/{}.list", words.join("_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::package_common::lab::DebLab;
    use crate::modules::testing::{Play, Played, play};
    use crate::value::Value;

    #[test]
    fn a_file_is_named_by_the_address() {
        let cases = [
            ("deb https://download.docker.com/linux/debian bookworm stable", "download_docker_com_linux_debian"),
            ("deb [arch=amd64 signed-by=/a/b.asc] https://user:pw@repo.example.org/x/ ./ main", "repo_example_org_x"),
            ("deb-src http://a.example/ b c", "a_example"),
        ];
        for (line, name) in cases {
            let source = Source::parse(line).unwrap();
            assert_eq!(target("/d", &source.source, None), format!("/d/{name}.list"), "{line}");
        }
        assert_eq!(target("/d", "", Some("mine")), "/d/mine.list");
        for line in ["", "# a remark", "deb http://a", "rpm http://a b c"] {
            assert_eq!(Source::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_line_is_added_enabled_and_removed() {
        let Some(lab) = DebLab::new() else { return };
        let list = lab.path("root/etc/apt/sources.list");
        let own = std::fs::read_to_string(&list).unwrap();
        let repository = lab.path("repo").display().to_string();
        let line = format!("deb  [trusted=yes]  file:{repository} ./");
        let run = |state: &str, update: bool, check: bool| -> Played {
            let given: Vec<(&str, Value)> = vec![
                ("repo", line.as_str().into()),
                ("state", state.into()),
                ("filename", "mine".into()),
                ("update_cache", update.into()),
            ];
            play(&MODULE, &given, &Play { shell: lab.shell(), check })
        };
        let mine = lab.path("root/etc/apt/sources.list.d/mine.list");
        assert!(run("present", true, true).result.unwrap().changed && !mine.exists());
        let outcome = run("present", true, false).result.unwrap();
        assert_eq!(outcome.result["sources_added"].to_repr(), format!("['{}']", mine.display()));
        assert_eq!(std::fs::read_to_string(&mine).unwrap(), format!("{line}\n"));
        let again = run("present", true, false);
        assert_eq!((again.result.unwrap().changed, again.batches), (false, 1));
        assert!(run("absent", false, false).result.unwrap().changed && !mine.exists());
        assert!(!run("absent", false, false).result.unwrap().changed);
        std::fs::write(&list, format!("{own}# {line} # off\n")).unwrap();
        assert!(run("present", false, false).result.unwrap().changed);
        assert_eq!(std::fs::read_to_string(&list).unwrap(), format!("{own}deb [trusted=yes] file:{repository} ./\n"));
        assert!(run("absent", false, false).result.unwrap().changed);
        assert_eq!(std::fs::read_to_string(&list).unwrap(), own);
    }

    #[test]
    fn a_source_that_cannot_be_read_is_taken_back() {
        let Some(lab) = DebLab::new() else { return };
        let given = [
            ("repo", "deb [trusted=yes] file:/no/such/place ./".into()),
            ("filename", "bad".into()),
            ("update_cache_retries", 1.into()),
        ];
        let failure = play(&MODULE, &given, &Play { shell: lab.shell(), check: false }).result.unwrap_err();
        assert!(failure.message.contains("Failed to update apt cache"), "{}", failure.message);
        assert!(!lab.path("root/etc/apt/sources.list.d/bad.list").exists());
        let failure = play(&MODULE, &[("repo", "ppa:a/b".into())], &Play::default()).result.unwrap_err();
        assert!(failure.message.contains("launchpad.net"));
    }
}
