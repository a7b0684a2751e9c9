//! community.general.modprobe: modules of the kernel, now and at boot.

use futures_util::try_join;

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Host, Inverse, Subject};

use super::edited_file::{bring, text_of};
use super::file_common::content::split_words;
use super::file_common::destination::{Manner, look};
use super::programs::{MARK, SYSTEM_PATH, command, make, step};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "community.general.modprobe",
    aliases: &[],
    summary: "Loads and unloads modules of the kernel, now and at boot",
    args: &[
        Arg::new("name", Type::Str, "The module").required(),
        Arg::new("state", Type::Str, "Whether it is loaded").default("present").choices(&["absent", "present"]),
        Arg::new("params", Type::Str, "Its parameters, apart by blanks").default(""),
        Arg::new("persistent", Type::Str, "Whether it is loaded at boot, by files of modules-load.d and modprobe.d")
            .default("disabled")
            .choices(&["disabled", "absent", "present"]),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("name", "the module"), ("params", "as given"), ("state", "as given")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

const AT_BOOT: &str = "/etc/modules-load.d";
const OPTIONS: &str = "/etc/modprobe.d";

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let name = args.text("name");
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.starts_with(['-', '.']) || !name.bytes().all(valid) {
        return Err(Failure::new(format!("`{name}` cannot be the name of a kernel module")));
    }
    let params = args.text("params");
    let words =
        split_words(params).ok_or_else(|| Failure::new(format!("a quote in `params` is not closed: {params}")))?;
    let persistent = args.text("persistent") != "disabled";
    let (loaded, boot, options) = try_join!(
        host.read(is_loaded(name)),
        read_files(&host, AT_BOOT, persistent),
        read_files(&host, OPTIONS, persistent),
    )?;
    let mut outcome = Outcome::ok().with("name", name).with("params", params).with("state", args.text("state"));
    let wanted = args.text("state") == "present";
    if wanted != loaded.success() {
        let change = plan(name, &words, wanted, host.is_check());
        outcome.changed = true;
        outcome = outcome.differences(change.differences.iter().cloned());
        make(&host, change).await?;
    }
    match args.text("persistent") {
        "present" => keep(&host, &args, name, params, &boot, &options, outcome).await,
        "absent" => forget(&host, &args, name, &boot, &options, outcome).await,
        _ => Ok(outcome),
    }
}

/// Succeeds if the module is loaded or part of the kernel. A hyphen in its name is an underscore to the kernel.
fn is_loaded(name: &str) -> Script {
    let loaded = name.replace('-', "_");
    let files: String = [name.to_owned(), loaded.clone(), name.replace('_', "-")]
        .iter()
        .map(|name| format!(" -e '/{}.ko$'", name.replace('.', "\\.")))
        .collect();
    let text = format!(
        "while read -r m r; do [ \"$m\" = {} ] && exit 0; done </proc/modules\n\
         grep -q{files} \"/lib/modules/$(uname -r)/modules.builtin\" 2>/dev/null",
        quote(&loaded)
    );
    let footprint = Footprint::Of(vec![Subject::Named("kernel modules".into()), Subject::Path("/proc/modules".into())]);
    Script { text, footprint }
}

fn plan(name: &str, words: &[String], wanted: bool, check: bool) -> Change {
    // a module brings files of /proc and /sys, devices, and whatever udev does about them
    let footprint =
        if check { is_loaded(name).footprint.and(Footprint::tree("/sys/module")) } else { Footprint::Everything };
    let load = |words: &[String]| command(["modprobe", name].into_iter().chain(words.iter().map(String::as_str)));
    let unload = command(["modprobe", "-r", name]);
    let proof = format!("{{\n{}\n}} && echo loaded || echo 'not loaded'", subshell(&is_loaded(name).text));
    let (forth, back, after) = if wanted { (load(words), unload, "loaded") } else { (unload, load(&[]), "not loaded") };
    let before = if wanted { "not loaded" } else { "loaded" };
    Change::uncertain(format!("kernel module {name}"), footprint)
        .step(step(format!("{forth} || exit\n{proof}")).expect(after))
        .inverse(Inverse::Steps(vec![step(back)]))
        .difference(Difference::new(format!("kernel module {name}"), format!("{before}\n"), format!("{after}\n")))
}

fn subshell(text: &str) -> String {
    format!("({text})")
}

/// The files of a directory with their content; none if they are not asked for.
async fn read_files(host: &Host, directory: &str, wanted: bool) -> Result<Vec<(String, String)>, Failure> {
    if !wanted {
        return Ok(Vec::new());
    }
    let text = format!(
        "{SYSTEM_PATH}for f in {directory}/*; do [ -f \"$f\" ] || continue; printf '%s\\036' \"$f\"; cat \"$f\"; printf '\\036'; done"
    );
    let answer = host.read(Script { text, footprint: Footprint::tree(directory) }).await?.text();
    let mut parts = answer.split(MARK);
    let mut files = Vec::new();
    while let (Some(path), Some(content)) = (parts.next(), parts.next()) {
        files.push((path.to_owned(), content.to_owned()));
    }
    Ok(files)
}

/// A line that is the module's name, and perhaps a comment behind it.
fn names(line: &str, name: &str) -> bool {
    let rest = line.trim_start_matches(' ').strip_prefix(name);
    rest.is_some_and(|rest| matches!(rest.trim_start_matches(' ').chars().next(), None | Some('#' | ';')))
}

/// The parameter that a line sets for the module.
fn parameter<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let mut words = line.split_whitespace();
    let is_own = words.next() == Some("options") && words.next() == Some(name);
    words
        .next()
        .filter(|word| is_own && word.contains('='))
        .filter(|_| words.next().is_none_or(|rest| rest.starts_with(['#', ';'])))
}

fn parameters<'a>(files: &'a [(String, String)], name: &str) -> Vec<&'a str> {
    files.iter().flat_map(|(_, text)| text.lines()).filter_map(|line| parameter(line, name)).collect()
}

async fn keep(
    host: &Host,
    args: &Args,
    name: &str,
    params: &str,
    boot: &[(String, String)],
    options: &[(String, String)],
    mut outcome: Outcome,
) -> Result<Outcome, Failure> {
    if !boot.iter().any(|(_, text)| text.lines().any(|line| names(line, name))) {
        let path = format!("{AT_BOOT}/{name}.conf");
        outcome = write(host, args, &path, format!("{name}\n"), outcome).await?;
    }
    let wanted: Vec<&str> = params.split_whitespace().collect();
    let now = parameters(options, name);
    let differ = wanted.iter().any(|param| !now.contains(param)) || now.iter().any(|param| !wanted.contains(param));
    if differ {
        let own = format!("{OPTIONS}/{name}.conf");
        outcome = silence(host, args, options, Some(&own), |line| parameter(line, name).is_some(), outcome).await?;
        let text = wanted.iter().map(|param| format!("options {name} {param}\n")).collect();
        outcome = write(host, args, &own, text, outcome).await?;
    }
    Ok(outcome)
}

async fn forget(
    host: &Host,
    args: &Args,
    name: &str,
    boot: &[(String, String)],
    options: &[(String, String)],
    outcome: Outcome,
) -> Result<Outcome, Failure> {
    let outcome = silence(host, args, boot, None, |line| names(line, name), outcome).await?;
    silence(host, args, options, None, |line| parameter(line, name).is_some(), outcome).await
}

/// Turns lines into comments.
async fn silence(
    host: &Host,
    args: &Args,
    files: &[(String, String)],
    but: Option<&str>,
    is_meant: impl Fn(&str) -> bool,
    mut outcome: Outcome,
) -> Result<Outcome, Failure> {
    for (path, text) in files.iter().filter(|(path, _)| Some(path.as_str()) != but) {
        let new: String = text
            .split_inclusive('\n')
            .map(|line| if is_meant(line.trim_end_matches('\n')) { format!("#{line}") } else { line.to_owned() })
            .collect();
        if new != *text {
            outcome = write(host, args, path, new, outcome).await?;
        }
    }
    Ok(outcome)
}

async fn write(host: &Host, args: &Args, path: &str, text: String, outcome: Outcome) -> Result<Outcome, Failure> {
    let seen = look(host, args, path, true).await?;
    let new = (text_of(&seen)? != text).then_some(text);
    let manner = Manner { backup: None, validate: None, unsafe_writes: false };
    Ok(bring(host, &seen, new, &manner, outcome).await?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, check_module, play, run_module, skip, snapshot, undo_in};
    use crate::value::Value;

    #[test]
    fn lines_of_the_module_are_known() {
        for (line, is) in
            [("dummy", true), ("  dummy  # x", true), ("dummy2", false), ("#dummy", false), ("dummy;", true)]
        {
            assert_eq!(names(line, "dummy"), is, "{line}");
        }
        assert_eq!(parameter("options dummy numdummies=2", "dummy"), Some("numdummies=2"));
        assert_eq!(parameter("options dummy a=1 # c", "dummy"), Some("a=1"));
        assert_eq!(parameter("options dummy a=1 b=2", "dummy"), None);
        assert_eq!(parameter("options other a=1", "dummy"), None);
    }

    /// A shell with a modprobe of its own that keeps what is loaded in a file, seen in place of /proc/modules.
    fn shell(root: &std::path::Path) -> Option<&'static str> {
        let at = root.display();
        let modprobe = format!(
            "#!/bin/sh\nif [ \"$1\" = -r ]; then sed -i \"/^$2 /d\" {at}/modules; [ \"$2\" != busy ] || exit 1; exit 0; fi\n\
             case $1 in nosuch) echo 'modprobe: FATAL: Module nosuch not found' >&2; exit 1;; esac\n\
             n=$(echo \"$1\" | tr - _); shift; echo \"$n 1 0 - Live 0x0 $*\" >>{at}/modules\n"
        );
        // a kernel without modules has no /proc/modules to bind over, so all of /proc gives way, last
        let start = format!(
            "#!/bin/sh\nmkdir -p {at}/etc/modules-load.d {at}/etc/modprobe.d {at}/proc && cp /etc/passwd /etc/group {at}/etc && \
             touch {at}/proc/modules || exit\nexec unshare --mount sh -c 'mount --bind {at}/etc /etc && \
             mount --bind {at}/load {AT_BOOT} && mount --bind {at}/options {OPTIONS} && \
             mount --bind {at}/modules {at}/proc/modules && mount --rbind {at}/proc /proc && PATH={at}:$PATH exec sh'\n"
        );
        for (name, text) in [("modprobe", modprobe.as_str()), ("shell", &start), ("modules", "ext4 1 0 - Live\n")] {
            let path = root.join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        for name in ["load", "options"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        let shell = format!("sh {at}/shell");
        let try_it = std::process::Command::new("sh").args(["-c", &format!("{shell} </dev/null")]).output();
        if !try_it.is_ok_and(|output| output.status.success()) {
            skip("a table of kernel modules of its own needs root and unshare");
            return None;
        }
        Some(Box::leak(shell.into_boxed_str()))
    }

    #[test]
    fn a_module_is_loaded_kept_and_unloaded() {
        let root = tempfile::tempdir().unwrap();
        let Some(shell) = shell(root.path()) else { return };
        let run = |given: &[(&str, Value)]| play(&MODULE, given, &Play { shell, ..Play::default() });
        // the shell makes directories of its own when it first starts
        run(&[("name", "ext4".into())]);
        let before = snapshot(root.path());
        let given = [("name", "br-test".into()), ("params", "a=1 b=2".into()), ("persistent", "present".into())];
        let made = run(&given);
        assert!(made.result.unwrap().changed);
        let read = |name: &str| std::fs::read_to_string(root.path().join(name)).unwrap();
        assert!(read("modules").contains("br_test 1 0 - Live 0x0 a=1 b=2"));
        assert_eq!(read("load/br-test.conf"), "br-test\n");
        assert_eq!(read("options/br-test.conf"), "options br-test a=1\noptions br-test b=2\n");
        let again = run(&given);
        assert_eq!((again.result.unwrap().changed, again.batches), (false, 1));
        let other = [("name", "br-test".into()), ("state", "present".into()), ("persistent", "absent".into())];
        assert!(run(&other).result.unwrap().changed);
        assert_eq!(
            read("load/br-test.conf") + &read("options/br-test.conf"),
            "#br-test\n#options br-test a=1\n#options br-test b=2\n"
        );
        assert!(!run(&other).result.unwrap().changed);
        std::fs::write(root.path().join("load/br-test.conf"), "br-test\n").unwrap();
        std::fs::write(root.path().join("options/br-test.conf"), "options br-test a=1\noptions br-test b=2\n").unwrap();
        std::fs::write(root.path().join("modules"), read("modules").replace("br_test", "br-test")).unwrap();
        undo_in(&made.changes, shell);
        assert_eq!(snapshot(root.path()), before);
    }

    #[test]
    fn what_cannot_be_loaded_fails() {
        let root = tempfile::tempdir().unwrap();
        let Some(shell) = shell(root.path()) else { return };
        let failure =
            play(&MODULE, &[("name", "nosuch".into())], &Play { shell, ..Play::default() }).result.unwrap_err();
        assert!(failure.message.contains("Module nosuch not found"), "{}", failure.message);
        assert!(check_module(&MODULE, &[("name", "trimtab_no_such".into())]).unwrap().changed);
        assert!(
            !run_module(&MODULE, &[("name", "trimtab_no_such".into()), ("state", "absent".into())]).unwrap().changed
        );
        assert!(run_module(&MODULE, &[("name", "a b".into())]).is_err());
        assert!(run_module(&MODULE, &[("name", "a".into()), ("params", "'x".into())]).is_err());
    }
}
