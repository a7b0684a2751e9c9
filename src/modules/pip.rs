//! `ansible.builtin.pip`: packages of Python, by the host's own pip.

use std::collections::BTreeMap;

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Host, Inverse, Step};
use crate::value::{Interruption, Value};

use super::execution::environment;
use super::file_common::path::absolute;
use super::pip_version::{Requirement, normal};
use super::programs::{SYSTEM_PATH, make, parts};
use super::shell_words::expanded;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Settings, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.pip",
    aliases: &[],
    summary: "Installs and removes packages of Python by the host's pip",
    args: &[
        Arg::new("name", Type::List, "packages, as pip takes them: `name`, `name>=1.2`, a URL, a path"),
        Arg::new("version", Type::Str, "the version, of one package"),
        Arg::new("requirements", Type::Path, "a file of requirements on the host"),
        Arg::new("state", Type::Str, "whether they are installed").default("present").choices(&[
            "absent",
            "forcereinstall",
            "latest",
            "present",
        ]),
        Arg::new("virtualenv", Type::Path, "the virtual environment to use, made if missing"),
        Arg::new("virtualenv_command", Type::Path, "what makes it").default("virtualenv"),
        Arg::new("virtualenv_python", Type::Str, "the Python that it gets"),
        Arg::new("virtualenv_site_packages", Type::Bool, "it sees the packages of the system").default("false"),
        Arg::new("executable", Type::Path, "the pip to use"),
        Arg::new("extra_args", Type::Str, "more words for pip"),
        Arg::new("editable", Type::Bool, "install in editable mode").default("false"),
        Arg::new("chdir", Type::Path, "the directory to run it in"),
        Arg::new("umask", Type::Str, "the umask for new files, octal"),
        Arg::new("break_system_packages", Type::Bool, "go on where the system's packages are managed otherwise")
            .default("false"),
    ],
    rules: &[
        Rule::RequiredOneOf(&["name", "requirements"]),
        Rule::MutuallyExclusive(&["name", "requirements"]),
        Rule::MutuallyExclusive(&["executable", "virtualenv"]),
    ],
    free_form: FreeForm::No,
    check_mode: Support::Partial,
    diff: Support::Full,
    returns: &[
        ("cmd", "the command that did it"),
        ("name", "the packages"),
        ("requirements", "the file of requirements"),
        ("version", "as given"),
        ("virtualenv", "the virtual environment"),
        ("state", "as given"),
        ("stdout", "what pip said"),
        ("stderr", "its errors"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let request = Request::parse(&args, &host).await?;
    let preparation = request.preparation(&args, &settings)?;
    // the packages of Python lie anywhere
    let read = Script { text: request.look(&preparation), footprint: Footprint::Everything };
    let response = host.read(read).await?;
    if response.code == Some(127) {
        return Err(Failure::new(match &request.virtualenv {
            Some(_) => format!("Failed to find required executable \"{}\"", request.virtualenv_command),
            None => "Unable to find any of pip3, pip to use. pip needs to be installed.".to_owned(),
        }));
    }
    let parts = parts(&response, 3);
    let has_environment = parts[0].trim() == "yes";
    if !response.success() && has_environment {
        return Err(Failure::new(format!("pip cannot list its packages: {}", response.error_text().trim())));
    }
    let installed = installed(&parts[1]);
    let outcome = Outcome::ok()
        .with("name", Value::list(request.names.iter().map(|name| Value::from(name.as_str())).collect()))
        .with("requirements", args.str("requirements").map_or(Value::Null, Value::from))
        .with("version", args.str("version").map_or(Value::Null, Value::from))
        .with("virtualenv", request.virtualenv.as_deref().map_or(Value::Null, Value::from))
        .with("state", request.state.as_str());
    let needs = request.needs(&installed);
    if needs == Need::Nothing && has_environment {
        return Ok(outcome.with("cmd", request.command()));
    }
    let is_open = needs == Need::Unknown && has_environment;
    if is_open && host.is_check() {
        let reason = format!("whether `{}` would change anything is known to pip alone", request.command());
        return Err(Failure::interrupted(Interruption::Unknown(reason)));
    }
    let mut script = preparation.clone();
    if !has_environment {
        script.push_str(&format!("{} >&2 || exit\n", request.make_environment()));
    }
    if needs != Need::Nothing {
        script.push_str(&format!("{} || exit\n", request.command()));
    }
    script.push_str(&format!("printf '\\036'; {} 2>/dev/null || {}", request.list(), request.freeze()));
    let shown = request.shown(&installed);
    let change = Change::uncertain(format!("pip: {}", request.words()), Footprint::Everything)
        .step(Step::new(script))
        .inverse(request.inverse(&preparation, &installed, has_environment))
        .difference(Difference::new("packages of Python", shown.0, shown.1));
    let differences = change.differences.clone();
    let responses = make(&host, change).await?;
    let outcome = outcome.with("cmd", request.command());
    let Some(responses) = responses else { return Ok(Outcome { changed: true, ..outcome }.differences(differences)) };
    let answer = responses.first().cloned().unwrap_or_default();
    let text = answer.text();
    let (said, after) = text.split_once('\u{1e}').unwrap_or((&text, ""));
    let changed = !is_open
        || self::installed(after) != installed
        || said.contains("Successfully installed")
        || said.contains("Successfully uninstalled");
    let outcome = outcome.with("stdout", said).with("stderr", answer.error_text());
    Ok(if changed { Outcome { changed, ..outcome }.differences(differences) } else { outcome })
}

/// What must be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Nothing,
    Change,
    /// Only pip can tell.
    Unknown,
}

#[derive(Debug)]
struct Request {
    names: Vec<String>,
    state: String,
    requirements: Option<String>,
    virtualenv: Option<String>,
    virtualenv_command: String,
    virtualenv_options: String,
    executable: Option<String>,
    extra: String,
    editable: bool,
    break_system: bool,
}

impl Request {
    async fn parse(args: &Args, host: &Host) -> Result<Request, Failure> {
        let text = |name: &str| args.str(name).filter(|text| !text.is_empty());
        let mut names = joined(&args.list("name"));
        let state = args.text("state").to_owned();
        if let Some(version) = text("version") {
            if state == "latest" {
                return Err(Failure::new("version is incompatible with state=latest"));
            }
            let [name] = names.as_mut_slice() else {
                return Err(Failure::new(
                    "'version' argument is ambiguous when installing multiple package distributions. Please specify version restrictions next to each package in 'name' argument.",
                ));
            };
            if name.contains(['=', '<', '>', '~', '!']) {
                return Err(Failure::new(
                    "The 'version' argument conflicts with any version specifier provided along with a package name. Please keep the version specifier, but remove the 'version' argument.",
                ));
            }
            let operator = if version.starts_with(['=', '<', '>', '~', '!']) { "" } else { "==" };
            name.push_str(&format!("{operator}{version}"));
        }
        if text("chdir").is_none() && args.bool("editable") && names.iter().any(|name| name.starts_with('.')) {
            return Err(Failure::new("an editable package by a relative path needs `chdir`"));
        }
        let virtualenv = match text("virtualenv") {
            Some(path) => Some(absolute(host, path).await?),
            None => None,
        };
        let command = args.text("virtualenv_command");
        let is_venv = command.split_whitespace().any(|word| word.starts_with("venv") || word.starts_with("pyvenv"));
        let mut options = String::new();
        if let Some(python) = text("virtualenv_python") {
            if is_venv {
                return Err(Failure::new(
                    "virtualenv_python should not be used when using the venv module or pyvenv as virtualenv_command",
                ));
            }
            options.push_str(&format!(" -p{}", quote(python)));
        }
        if args.bool("virtualenv_site_packages") {
            options.push_str(" --system-site-packages");
        }
        Ok(Request {
            names,
            state,
            requirements: text("requirements").map(str::to_owned),
            virtualenv,
            virtualenv_command: command.to_owned(),
            virtualenv_options: options,
            executable: text("executable").map(str::to_owned),
            extra: text("extra_args").unwrap_or_default().to_owned(),
            editable: args.bool("editable"),
            break_system: args.bool("break_system_packages"),
        })
    }

    /// The lines before all else: `$pip` is the pip to use.
    fn preparation(&self, args: &Args, settings: &Settings) -> Result<String, Failure> {
        let mut code = format!(
            "{SYSTEM_PATH}{}export LC_ALL=C PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1\n",
            environment(settings)?
        );
        if self.break_system {
            code.push_str("export PIP_BREAK_SYSTEM_PACKAGES=1\n");
        }
        if let Some(umask) = args.str("umask") {
            if !u32::from_str_radix(umask, 8).is_ok_and(|umask| umask <= 0o777) {
                return Err(Failure::new("umask must be an octal integer"));
            }
            code.push_str(&format!("umask {umask}\n"));
        }
        if let Some(directory) = args.str("chdir") {
            code.push_str(&format!("cd {} || exit\n", expanded(directory)));
        }
        code.push_str(&match (&self.virtualenv, &self.executable) {
            (Some(path), _) => {
                let path = quote(path);
                format!("v={path}\npip() {{ for p in \"$v/bin/pip3\" \"$v/bin/pip\"; do [ -x \"$p\" ] && break; done; \"$p\" \"$@\"; }}\n")
            }
            (None, Some(executable)) => format!("pip() {{ {} \"$@\"; }}\ncommand -v {} >/dev/null || exit 127\n", quote(executable), quote(executable)),
            (None, None) => "p=$(command -v pip3 || command -v pip) || { python3 -m pip --version >/dev/null 2>&1 || exit 127; p=; }\n\
                 pip() { if [ -n \"$p\" ]; then \"$p\" \"$@\"; else python3 -m pip \"$@\"; fi; }\n"
                .to_owned(),
        });
        Ok(code)
    }

    fn list(&self) -> &'static str {
        "pip list --format=freeze"
    }

    /// What older versions of pip have.
    fn freeze(&self) -> &'static str {
        "pip freeze"
    }

    fn look(&self, preparation: &str) -> String {
        let there = match &self.virtualenv {
            Some(_) => {
                let command = self.virtualenv_command.split_whitespace().next().unwrap_or_default();
                format!(
                    "if [ -x \"$v/bin/activate\" ] || [ -e \"$v/bin/activate\" ]; then echo yes; else echo no; printf '\\036'; command -v {} >/dev/null || exit 127; exit 0; fi",
                    quote(command)
                )
            }
            None => "echo yes".to_owned(),
        };
        format!("{preparation}{there}; printf '\\036'\n{} 2>/dev/null || {}", self.list(), self.freeze())
    }

    fn make_environment(&self) -> String {
        format!("{}{} \"$v\"", self.virtualenv_command, self.virtualenv_options)
    }

    fn command(&self) -> String {
        let mut words = match self.state.as_str() {
            "absent" => "pip uninstall -y".to_owned(),
            "latest" => "pip install -U".to_owned(),
            "forcereinstall" => "pip install -U --force-reinstall".to_owned(),
            _ => "pip install".to_owned(),
        };
        if !self.extra.is_empty() {
            words.push(' ');
            words.push_str(&self.extra);
        }
        words.push(' ');
        words.push_str(&self.words());
        words
    }

    /// What it is about.
    fn words(&self) -> String {
        let mut words = Vec::new();
        for name in &self.names {
            if self.editable && self.state != "absent" {
                words.push("-e".to_owned());
            }
            words.push(quote(name));
        }
        if let Some(file) = &self.requirements {
            words.push(format!("-r {}", expanded(file)));
        }
        words.join(" ")
    }

    fn needs(&self, installed: &BTreeMap<String, String>) -> Need {
        let wanted: Vec<Option<Requirement>> = self.names.iter().map(|name| Requirement::parse(name)).collect();
        let is_there = |requirement: &Requirement| {
            installed.get(&requirement.name).is_some_and(|version| requirement.accepts(version))
        };
        let known: Vec<&Requirement> = wanted.iter().flatten().collect();
        let all_known = known.len() == wanted.len() && self.requirements.is_none() && !self.editable;
        match self.state.as_str() {
            "absent" if self.requirements.is_none() => {
                match known.iter().any(|requirement| installed.contains_key(&requirement.name)) {
                    true => Need::Change,
                    false if all_known => Need::Nothing,
                    false => Need::Unknown,
                }
            }
            "present" if all_known && known.iter().all(|requirement| is_there(requirement)) => Need::Nothing,
            "present" | "latest" if known.iter().any(|requirement| !is_there(requirement)) => Need::Change,
            "forcereinstall" => Need::Change,
            _ => Need::Unknown,
        }
    }

    fn shown(&self, installed: &BTreeMap<String, String>) -> (String, String) {
        let mut before = String::new();
        let mut after = String::new();
        for name in &self.names {
            if let Some(requirement) = Requirement::parse(name)
                && let Some(version) = installed.get(&requirement.name)
            {
                before.push_str(&format!("{}=={version}\n", requirement.name));
            }
            if self.state != "absent" {
                after.push_str(&format!("{name}\n"));
            }
        }
        if let Some(file) = &self.requirements {
            after.push_str(&format!("what {file} asks for\n"));
        }
        (before, after)
    }

    fn inverse(&self, preparation: &str, installed: &BTreeMap<String, String>, has_environment: bool) -> Inverse {
        if !has_environment && self.virtualenv.is_some() {
            return Inverse::Steps(vec![Step::new(format!("{preparation}rm -rf \"$v\""))]);
        }
        let mut remove = Vec::new();
        let mut restore = Vec::new();
        for name in &self.names {
            match Requirement::parse(name) {
                None => return Inverse::None(format!("what pip did for {name} is not known")),
                Some(requirement) => match installed.get(&requirement.name) {
                    Some(version) => restore.push(quote(&format!("{}=={version}", requirement.name))),
                    None => remove.push(quote(&requirement.name)),
                },
            }
        }
        if self.requirements.is_some() {
            return Inverse::None("what a file of requirements changed is not known".to_owned());
        }
        let mut code = preparation.to_owned();
        if !remove.is_empty() && self.state != "absent" {
            code.push_str(&format!("pip uninstall -y {} >&2 || exit\n", remove.join(" ")));
        }
        if !restore.is_empty() {
            code.push_str(&format!("pip install {} {} >&2 || exit\n", self.extra, restore.join(" ")));
        }
        Inverse::Steps(vec![Step::new(code)])
    }
}

/// `a[b,c]>=1,<2` was split at its commas, as all lists are: puts such pieces together again.
fn joined(pieces: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for piece in pieces.iter().flat_map(|piece| piece.split(',')).map(str::trim).filter(|piece| !piece.is_empty()) {
        let is_rest = piece.starts_with(['<', '>', '=', '~', '!'])
            || names.last().is_some_and(|last| last.contains('[') && !last.contains(']'));
        match names.last_mut().filter(|_| is_rest) {
            Some(last) => last.push_str(&format!(",{piece}")),
            None => names.push(piece.to_owned()),
        }
    }
    names
}

/// The versions of packages by their normal names.
fn installed(listing: &str) -> BTreeMap<String, String> {
    let pairs = listing.lines().filter_map(|line| line.trim().split_once("=="));
    pairs.map(|(name, version)| (normal(name), version.trim().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::fake_programs::FakePrograms;
    use crate::modules::testing::{Play, Played, play, undo_in};

    /// Keeps `name==version` lines; the newest version of all is 2.0.
    const PIP: &str = r#"
touch "$D/db"; verb=$1; shift
case $verb in
list|freeze) cat "$D/db"; exit ;;
--version) exit ;;
esac
echo "pip $verb $*" >>"$D/log"
out=
for w; do case $w in
-U|--force-reinstall|-y|-e) eval "f=\$f$w" ;;
-r) ;;
-*) ;;
/*.txt) w=$(cat "$w"); n=${w%%==*}; grep -qx "$w" "$D/db" || { echo "$w" >>"$D/db"; out="$out $n"; } ;;
*) n=${w%%[=<>]*}; v=2.0; case $w in *==*) v=${w#*==} ;; esac
 if [ $verb = uninstall ]; then sed -i "/^$n==/d" "$D/db"; out="$out $n"
 elif ! grep -qx "$n==$v" "$D/db"; then sed -i "/^$n==/d" "$D/db"; echo "$n==$v" >>"$D/db"; out="$out $n"; fi ;;
esac; done
[ -z "$out" ] || echo "Successfully ${verb}ed$out""#;

    fn fake() -> FakePrograms {
        let fake = FakePrograms::new(&[("pip3", PIP)]);
        fake.put(
            "virtualenv",
            "mkdir -p \"$1/bin\" && touch \"$1/bin/activate\" && cp \"$D/bin/pip3\" \"$1/bin/pip3\"",
        );
        fake
    }

    fn run(fake: &FakePrograms, given: &[(&'static str, Value)], check: bool) -> Played {
        play(&MODULE, given, &Play { shell: fake.shell(), check })
    }

    #[test]
    fn packages_come_and_go() {
        let fake = fake();
        let name = |name: &str, more: &[(&'static str, Value)]| [&[("name", name.into())], more].concat();
        assert!(run(&fake, &name("a", &[]), true).result.unwrap().changed && fake.read("db").is_empty());
        let added = run(&fake, &name("a==1.5", &[]), false);
        assert!(added.result.unwrap().changed);
        for right in ["a", "A", "a==1.5", "a>=1.2,<2", "a~=1.4"] {
            let again = run(&fake, &name(right, &[]), false);
            assert_eq!((again.result.unwrap().changed, again.batches), (false, 1), "{right}");
        }
        let newer = run(&fake, &name("a>1.5", &[]), false);
        assert!(newer.result.unwrap().changed);
        assert_eq!(fake.read("db"), "a==2.0\n");
        undo_in(&newer.changes, fake.shell());
        assert_eq!(fake.read("db"), "a==1.5\n");
        let latest = name("a", &[("state", "latest".into())]);
        assert!(run(&fake, &latest, true).result.is_err(), "check mode cannot know");
        assert!(run(&fake, &latest, false).result.unwrap().changed);
        assert!(!run(&fake, &latest, false).result.unwrap().changed);
        let absent = name("a,b", &[("state", "absent".into())]);
        let removed = run(&fake, &absent, false);
        assert!(removed.result.unwrap().changed && !run(&fake, &absent, true).result.unwrap().changed);
        undo_in(&removed.changes, fake.shell());
        assert_eq!(fake.read("db"), "a==2.0\n");
        fake.write("db", "a==1.5\n");
        undo_in(&added.changes, fake.shell());
        assert_eq!(fake.read("db"), "");
        run(&fake, &name("c", &[("version", "1.1".into()), ("extra_args", "--no-index".into())]), false)
            .result
            .unwrap();
        assert!(fake.read("log").ends_with("pip install --no-index c==1.1\n"), "{}", fake.read("log"));
    }

    #[test]
    fn environments_and_files_of_requirements() {
        let fake = fake();
        let path = fake.file("env").to_str().unwrap().to_owned();
        let given = [("name", "a".into()), ("virtualenv", path.as_str().into())];
        assert!(run(&fake, &given, true).result.unwrap().changed);
        let made = run(&fake, &given, false);
        assert!(made.result.unwrap().changed && std::path::Path::new(&path).join("bin/activate").exists());
        assert!(!run(&fake, &given, false).result.unwrap().changed);
        undo_in(&made.changes, fake.shell());
        assert!(!std::path::Path::new(&path).exists());
        fake.write("r.txt", "x==1");
        let given = [("requirements", fake.file("r.txt").to_str().unwrap().into())];
        assert!(run(&fake, &given, false).result.unwrap().changed);
        assert!(!run(&fake, &given, false).result.unwrap().changed);
    }

    #[test]
    fn what_cannot_be_is_told() {
        let empty = FakePrograms::new(&[("pip3", "exit 1")]);
        let failed = |given: &[(&'static str, Value)]| run(&empty, given, true).result.unwrap_err().message;
        assert!(failed(&[("name", "a".into())]).contains("cannot list"));
        assert!(failed(&[("name", "a,b".into()), ("version", "1".into())]).contains("ambiguous"));
        assert!(failed(&[("name", "a".into()), ("executable", "/no/pip".into())]).contains("Unable to find"));
        assert!(failed(&[("name", "a".into()), ("umask", "9".into())]).contains("octal"));
        assert_eq!(joined(&["a[x".into(), "y]>=1".into(), "<2".into(), "b".into()]), ["a[x,y]>=1,<2", "b"]);
    }
}
