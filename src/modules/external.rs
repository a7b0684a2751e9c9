//! Modules of one's own: executables in `library/` of a role or beside the playbook, or in a directory of the setting
//! `library`. They are sent to the host with their arguments in a file and answer in JSON; the host needs only what
//! they need themselves.
//!
//! Source: <https://docs.ansible.com/ansible/latest/dev_guide/developing_program_flow_architecture.html>

use std::path::{Path, PathBuf};

use crate::connect::shell::quote;
use crate::host::Failure;
use crate::template::{Context, SearchPath};
use crate::value::{Map, Value};

use super::args::ANY_NAME;
use super::execution::{Execution, heading, lines};
use super::{Action, Arg, Args, Effect, FreeForm, Invocation, Module, Outcome, Settings, Support, Type};

/// What is known of every executable before it is called.
pub const MODULE: Module = Module {
    name: "executable",
    aliases: &[],
    summary: "Runs an executable of `library/` as a module",
    args: &[Arg::new(ANY_NAME, Type::Raw, "What the executable takes")],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::None,
    diff: Support::None,
    returns: &[("ansible_facts", "what the executable says")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// Endings of files that lie beside modules but are none.
const NO_MODULES: &[&str] =
    &["bak", "cfg", "ini", "json", "md", "orig", "pyc", "pyo", "rst", "swp", "txt", "yaml", "yml"];

/// The file of a module: its name is the module's, with or without an ending.
pub fn find(name: &str, search: &SearchPath, libraries: &[PathBuf]) -> Option<PathBuf> {
    let name = name.strip_prefix("ansible.legacy.").unwrap_or(name);
    if name.is_empty() || name.contains(['.', '/']) {
        return None;
    }
    let beside = search.role_dirs.iter().chain([&search.playbook_dir]).map(|base| base.join("library"));
    beside.chain(libraries.iter().cloned()).find_map(|directory| {
        let exact = directory.join(name);
        if exact.is_file() {
            return Some(exact);
        }
        let entries = std::fs::read_dir(&directory).ok()?;
        let is_module = |path: &PathBuf| {
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            path.file_stem().is_some_and(|stem| stem == name) && !NO_MODULES.contains(&ending) && path.is_file()
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_module).collect();
        paths.sort();
        paths.into_iter().next()
    })
}

/// Why a module's file cannot be run, if that can be told from it.
pub fn refusal(path: &Path) -> Option<String> {
    match std::fs::read(path) {
        Ok(content) => {
            let lacks_line = || (!content.starts_with(b"#!") && !is_binary(&content)).then(|| no_first_line(path));
            Form::of(path, &content).err().map(|failure| failure.message).or_else(lacks_line)
        }
        Err(error) => Some(format!("cannot read {}: {error}", path.display())),
    }
}

fn no_first_line(path: &Path) -> String {
    format!("the module {} does not say in its first line what runs it: `#!/bin/sh`, say", path.display())
}

/// How an executable takes its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Its first argument is a file of JSON: binaries, and scripts that hold the word `WANT_JSON`.
    JsonFile,
    /// JSON stands in place of a mark within the script.
    JsonWithin,
    /// Its first argument is a file of `name=value` words.
    Words,
}

const JSON_MARK: &str = "<<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>";

impl Form {
    fn of(path: &Path, content: &[u8]) -> Result<Form, Failure> {
        let has = |mark: &str| content.windows(mark.len()).any(|window| window == mark.as_bytes());
        if is_binary(content) {
            return Ok(Form::JsonFile);
        }
        let of_ansible =
            ["ansible.module_utils", "#<<INCLUDE_ANSIBLE_MODULE_COMMON>>", "#Requires -Module", "#AnsibleRequires"];
        if of_ansible.iter().any(|mark| has(mark)) {
            return Err(Failure::new(format!(
                "the module {} is made for Ansible's own libraries, which it would need on the host; an executable that \
                 takes its arguments as JSON can run",
                path.display()
            )));
        }
        if has(JSON_MARK) {
            return Ok(Form::JsonWithin);
        }
        Ok(if has("WANT_JSON") { Form::JsonFile } else { Form::Words })
    }
}

/// True if the file does not begin as a text does.
fn is_binary(content: &[u8]) -> bool {
    content.iter().take(1024).any(|byte| *byte < 7 || (14..27).contains(byte) || (28..32).contains(byte))
}

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, context, settings } = invocation;
    let Some(path) = &settings.external else { return Err(Failure::new("no executable is given")) };
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    if host.is_check() {
        // it might change the host all the same
        return Ok(Outcome::skipped(format!("remote module ({name}) does not support check mode")));
    }
    let content =
        std::fs::read(path).map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
    let execution = plan(path, &name, content, args.map(), &context, &settings)?;
    let Some(end) = execution.run(&host, &Args::default(), &settings).await? else {
        return Ok(Outcome::skipped(format!("remote module ({name}) does not support check mode")));
    };
    let Some(result) = answer(&end.stdout) else {
        let message = format!("the module {name} answered nothing in JSON; see module_stdout and module_stderr");
        let failure = Failure::new(message).with("rc", i64::from(end.code));
        return Err(failure.with("module_stdout", end.stdout).with("module_stderr", end.stderr));
    };
    conclude(result)
}

fn plan(
    path: &Path,
    name: &str,
    content: Vec<u8>,
    args: &Map,
    context: &Context,
    settings: &Settings,
) -> Result<Execution, Failure> {
    let form = Form::of(path, &content)?;
    let mut given = args.clone();
    given.extend(internal(name, settings));
    let json = || Value::map(given.clone()).to_json().to_string();
    let (content, arguments) = match form {
        Form::JsonFile => (content, Some(json())),
        Form::Words => (content, Some(words(&given))),
        Form::JsonWithin => {
            let text = String::from_utf8(content)
                .map_err(|_| Failure::new(format!("the module {} is no text in UTF-8", path.display())))?;
            (text.replace(JSON_MARK, &json()).into_bytes(), None)
        }
    };
    let runner = match interpreter(&content, context)? {
        Some(runner) => format!("{runner} "),
        None if is_binary(&content) => String::new(),
        None => {
            return Err(Failure::new(no_first_line(path)));
        }
    };
    let file = path.file_name().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
    let (write, argument) = match &arguments {
        Some(text) => {
            let text = quote(text);
            (format!("printf %s {text} >\"$trimtab_directory/args\" || exit\n"), " \"$trimtab_directory/args\"")
        }
        None => (String::new(), ""),
    };
    let code = format!(
        "trimtab_directory=$(umask 077 && mktemp -d \"${{TMPDIR:-/tmp}}/trimtab.XXXXXXXX\") || exit\n\
         trap 'rm -rf \"$trimtab_directory\"' EXIT\n\
         trimtab_file=$trimtab_directory/{}\n\
         cat >\"$trimtab_file\" && chmod 700 \"$trimtab_file\" || exit\n\
         {write}{runner}\"$trimtab_file\"{argument} </dev/null",
        quote(&file)
    );
    Ok(Execution {
        what: heading(&format!("module: {name}")),
        code,
        stdin: Some(content),
        command: name.into(),
        program: None,
    })
}

/// What every module is told beside its own arguments.
fn internal(name: &str, settings: &Settings) -> Vec<(Value, Value)> {
    [
        ("_ansible_check_mode", settings.check.into()),
        ("_ansible_diff", settings.diff.into()),
        ("_ansible_no_log", settings.no_log.into()),
        ("_ansible_verbosity", u32::from(settings.verbosity).into()),
        ("_ansible_module_name", name.into()),
    ]
    .into_iter()
    .map(|(key, value): (&str, Value)| (key.into(), value))
    .collect()
}

/// The arguments as words of a shell.
fn words(args: &Map) -> String {
    args.iter().map(|(name, value)| format!("{}={} ", name.to_text(), quote(&value.to_text()))).collect()
}

/// What runs a script: its first line says, unless `ansible_NAME_interpreter` names another.
fn interpreter(content: &[u8], context: &Context) -> Result<Option<String>, Failure> {
    let Some(line) = content.strip_prefix(b"#!").and_then(|rest| rest.split(|byte| *byte == b'\n').next()) else {
        return Ok(None);
    };
    let line = String::from_utf8_lossy(line).trim().to_owned();
    let mut words = line.split_whitespace();
    let base = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    let first = words.next().unwrap_or_default();
    let program = if base(first) == "env" { words.next().unwrap_or(first) } else { first };
    let variable = format!("ansible_{}_interpreter", base(program));
    let chosen = context.scope.get(&variable).map_err(Failure::interrupted)?;
    let chosen = chosen.map(|raw| context.value(&raw)).transpose()?.map(|value| value.to_text().into_owned());
    // `auto` and its kin leave it to Ansible's search
    Ok(Some(chosen.filter(|chosen| !chosen.is_empty() && !chosen.starts_with("auto")).unwrap_or(line)))
}

/// The map that the module printed: what stands before and behind it is left out.
fn answer(stdout: &str) -> Option<Map> {
    let mut rest = stdout;
    loop {
        let line = rest.lines().next()?;
        if line.trim_start().starts_with('{') {
            let mut documents = serde_json::Deserializer::from_str(rest).into_iter::<serde_json::Value>();
            if let Some(Ok(json @ serde_json::Value::Object(_))) = documents.next() {
                return Value::from_json(&json).as_map().cloned();
            }
        }
        rest = rest.get(line.len()..)?.trim_start_matches(['\r', '\n']);
        if rest.is_empty() {
            return None;
        }
    }
}

/// The outcome that a module's answer means.
fn conclude(mut result: Map) -> Result<Outcome, Failure> {
    let mut take = |name: &str| result.shift_remove(name);
    let is_true = |value: Option<Value>| value.is_some_and(|value| value.to_ansible_bool() == Some(true));
    let changed = is_true(take("changed"));
    let skipped = is_true(take("skipped"));
    let failed = take("failed");
    let warnings: Vec<String> = match take("warnings") {
        Some(Value::List(items)) => items.iter().map(|item| item.to_text().into_owned()).collect(),
        other => other.into_iter().map(|text| text.to_text().into_owned()).collect(),
    };
    let facts = take("ansible_facts").and_then(|facts| facts.as_map().cloned());
    for name in ["stdout", "stderr"] {
        let list = format!("{name}_lines");
        if let Some(text) = result.get(name).and_then(Value::as_str).map(str::to_owned)
            && !result.contains_key(list.as_str())
        {
            result.insert(list.into(), lines(&text));
        }
    }
    let bad_code = result.get("rc").is_some_and(|code| code.to_text() != "0");
    if failed.map_or(bad_code, |failed| is_true(Some(failed))) {
        let message = result.get("msg").map(|text| text.to_text().into_owned()).unwrap_or_default();
        result.insert("changed".into(), changed.into());
        return Err(Failure { result, warnings, ..Failure::new(message) });
    }
    let effect = facts.map_or(Effect::None, Effect::Facts);
    Ok(Outcome { result, changed, skipped, effect, warnings, ..Outcome::default() })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::modules::testing::{context, shells};

    fn directory_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    /// Runs a script of a module as the host would, and concludes its answer.
    fn called(script: &str, args: &[(&str, Value)]) -> Result<Outcome, Failure> {
        let root = directory_with(&[("own.sh", script)]);
        let path = root.path().join("own.sh");
        let args: Map = args.iter().map(|(name, value)| (Value::from(*name), value.clone())).collect();
        let execution = plan(&path, "own", fs::read(&path).unwrap(), &args, &context(), &Settings::default())?;
        let mut answers = Vec::new();
        for shell in shells() {
            let mut words = shell.split(' ');
            let mut child = std::process::Command::new(words.next().unwrap())
                .args(words)
                .args(["-c", &execution.code])
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), execution.stdin.as_ref().unwrap()).unwrap();
            answers.push(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap());
        }
        answers.dedup();
        assert_eq!(answers.len(), 1, "the shells differ: {answers:?}");
        conclude(answer(&answers[0]).ok_or_else(|| Failure::new("no answer"))?)
    }

    #[test]
    fn a_module_is_found_in_role_playbook_and_library() {
        let root = directory_with(&[
            ("library/near", ""),
            ("library/near.md", ""),
            ("roles/r/library/near.sh", ""),
            ("more/far.sh", ""),
            ("more/far.yml", ""),
        ]);
        let at = |path: &str| Some(root.path().join(path));
        let search = SearchPath { playbook_dir: root.path().to_owned(), ..SearchPath::default() };
        let in_role = SearchPath { role_dirs: vec![root.path().join("roles/r")], ..search.clone() };
        let libraries = [root.path().join("more"), "/dev/null".into()];
        assert_eq!(find("near", &search, &libraries), at("library/near"));
        assert_eq!(find("near", &in_role, &libraries), at("roles/r/library/near.sh"));
        assert_eq!(find("ansible.legacy.far", &search, &libraries), at("more/far.sh"));
        assert_eq!(find("a.b.near", &search, &libraries), None);
        assert_eq!(find("none", &search, &libraries), None);
    }

    #[test]
    fn words_and_json_reach_the_executable() {
        let old = "#!/bin/sh\n. \"$1\"\nprintf '{\"msg\": \"%s|%s\", \"changed\": true}' \"$name\" \"$number\"\n";
        let outcome = called(old, &[("name", "two words' $x".into()), ("number", 3.into())]).unwrap();
        assert!(outcome.changed);
        assert_eq!(outcome.result["msg"], "two words' $x|3".into());
        let json = "#!/bin/sh\n# WANT_JSON\nprintf '{\"given\": %s}' \"$(cat \"$1\")\"\n";
        let outcome = called(json, &[("list", Value::list(vec![1.into(), "ü".into()]))]).unwrap();
        let given = outcome.result["given"].as_map().unwrap();
        assert_eq!(given["list"], Value::list(vec![1.into(), "ü".into()]));
        assert_eq!(given["_ansible_check_mode"], false.into());
        let within = format!("#!/bin/sh\ncat <<'END'\n{{\"given\": {JSON_MARK}}}\nEND\n");
        let outcome = called(&within, &[("a", "b".into())]).unwrap();
        assert_eq!(outcome.result["given"].as_map().unwrap()["a"], "b".into());
    }

    #[test]
    fn what_stands_around_the_answer_is_left_out() {
        let cases = [
            ("{\"a\": 1}", true),
            ("noise\n[ no list ]\n{\"a\": 1}\nmore noise\n", true),
            ("{ broken\n  {\"a\": 1, \"b\": {\n\"c\": 2}}", true),
            ("[1, 2]\n", false),
            ("", false),
        ];
        for (text, found) in cases {
            assert_eq!(answer(text).map(|map| map["a"].clone()), found.then(|| 1.into()), "{text:?}");
        }
    }

    #[test]
    fn an_answer_may_be_a_failure() {
        let concluded = |text: &str| conclude(answer(text).unwrap());
        let failure = concluded(r#"{"failed": true, "msg": "no", "warnings": ["w"], "x": 1}"#).unwrap_err();
        assert_eq!((failure.message.as_str(), failure.warnings.len()), ("no", 1));
        assert_eq!(failure.result["x"], 1.into());
        assert!(concluded(r#"{"rc": 3}"#).is_err());
        assert!(concluded(r#"{"rc": 3, "failed": false}"#).is_ok());
        let outcome = concluded(r#"{"ansible_facts": {"f": 1}, "stdout": "a\nb"}"#).unwrap();
        assert!(matches!(outcome.effect, Effect::Facts(facts) if facts["f"] == 1.into()));
        assert_eq!(outcome.result["stdout_lines"], Value::list(vec!["a".into(), "b".into()]));
    }

    #[test]
    fn what_cannot_run_is_refused() {
        let python = "#!/usr/bin/python\nfrom ansible.module_utils.basic import AnsibleModule\n";
        let root = directory_with(&[("python.py", python), ("fine.sh", "#!/bin/sh\n")]);
        assert!(refusal(&root.path().join("python.py")).unwrap().contains("Ansible's own libraries"));
        assert_eq!(refusal(&root.path().join("fine.sh")), None);
        fs::write(root.path().join("bare"), "echo {}\n").unwrap();
        assert!(refusal(&root.path().join("bare")).unwrap().contains("first line"));
        assert!(called("echo {}\n", &[]).unwrap_err().message.contains("first line"));
    }

    #[test]
    fn the_first_line_says_what_runs_it() {
        let shown = |line: &str| interpreter(line.as_bytes(), &context()).unwrap();
        assert_eq!(shown("#!/bin/bash -e\n:"), Some("/bin/bash -e".to_owned()));
        assert_eq!(shown("#!/usr/bin/env perl\n"), Some("/usr/bin/env perl".to_owned()));
        assert_eq!(shown("echo\n"), None);
    }
}
