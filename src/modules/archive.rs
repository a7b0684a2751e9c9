//! `community.general.archive`: files of the host are packed into an archive.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Inverse, Step};
use crate::value::Value;

use super::file_common::account::Myself;
use super::file_common::destination::look_self;
use super::file_common::path::{absolute, parent};
use super::file_common::permissions::{MODE, OWNERSHIP, Permissions, chmod_word};
use super::programs::{SYSTEM_PATH, make, parts};
use super::shell_words::is_pattern;
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "community.general.archive",
    aliases: &[],
    summary: "Packs files and directories of the host into an archive",
    args: &[
        Arg::new("path", Type::List, "what is packed: paths or patterns").required(),
        Arg::new("dest", Type::Path, "the archive; may be left out for one path"),
        Arg::new("format", Type::Str, "how it is packed").default("gz").choices(&["bz2", "gz", "tar", "xz", "zip"]),
        Arg::new("exclude_path", Type::List, "paths or patterns of what is not packed"),
        Arg::new("exclusion_patterns", Type::List, "patterns of names that are not packed"),
        Arg::new("force_archive", Type::Bool, "a tar or zip even of a single file").default("false"),
        Arg::new("remove", Type::Bool, "remove what is packed").default("false"),
        MODE,
        Arg::shared(OWNERSHIP),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[
        ("dest", "the archive"),
        ("dest_state", "`archive`, `compress`, `incomplete` or `absent`"),
        ("state", "the same"),
        ("arcroot", "the directory that the paths in it begin at"),
        ("archived", "what is packed"),
        ("missing", "paths that are not there"),
        ("expanded_paths", "the paths that the patterns meant"),
        ("expanded_exclude_paths", "those of the exclusions"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let mut patterns = Vec::new();
    for path in args.list("path") {
        patterns.push(absolute(&host, &path).await?);
    }
    let mut excluded = Vec::new();
    for path in args.list("exclude_path") {
        excluded.push(absolute(&host, &path).await?);
    }
    let format = args.text("format");
    let given = match args.str("dest").filter(|dest| !dest.is_empty()) {
        Some(dest) => Some(absolute(&host, dest).await?),
        None => None,
    };
    // patterns are the shell's; what matches nothing is missing
    let words = |patterns: &[String]| {
        let word = |pattern: &String| if is_pattern(pattern) { glob(pattern) } else { quote(pattern) };
        patterns.iter().map(word).collect::<Vec<_>>().join(" ")
    };
    let list = |patterns: &[String]| {
        format!(
            "for p in {}; do if [ -e \"$p\" ] || [ -L \"$p\" ]; then if [ -d \"$p\" ] && [ ! -L \"$p\" ]; then echo \"d $p\"; else echo \"f $p\"; fi; else echo \"m $p\"; fi; done",
            words(patterns)
        )
    };
    let script = format!(
        "{}; printf '\\036'; {}",
        list(&patterns),
        if excluded.is_empty() { ":".to_owned() } else { list(&excluded) }
    );
    let footprint = patterns.iter().fold(Footprint::nothing(), |all, pattern| {
        let literal = pattern.split(['*', '?', '[']).next().unwrap_or_default();
        all.and(Footprint::tree(if is_pattern(pattern) { parent(literal) } else { pattern.as_str() }))
    });
    let (answer, (me, permissions)) =
        futures_util::try_join!(host.read(Script { text: script, footprint }), look_self(&host, &args))?;
    let parts = parts(&answer, 2);
    let lines = |text: &str, kinds: &[char]| -> Vec<(char, String)> {
        text.lines()
            .filter_map(|line| Some((line.chars().next()?, line.get(2..)?.to_owned())))
            .filter(|(kind, _)| kinds.contains(kind))
            .collect()
    };
    let out: Vec<String> = lines(&parts[1], &['d', 'f']).into_iter().map(|(_, path)| path).collect();
    let found: Vec<(char, String)> =
        lines(&parts[0], &['d', 'f']).into_iter().filter(|(_, path)| !out.contains(path)).collect();
    let missing: Vec<String> = lines(&parts[0], &['m']).into_iter().map(|(_, path)| path).collect();
    let paths: Vec<String> = found.iter().map(|(_, path)| path.clone()).collect();
    let single = found.len() == 1
        && patterns.len() == 1
        && !is_pattern(&patterns[0])
        && found[0].0 == 'f'
        && !args.bool("force_archive");
    let ending = match format {
        "gz" | "bz2" | "xz" if !single => format!("tar.{format}"),
        other => other.to_owned(),
    };
    let dest = match given {
        Some(dest) => dest,
        None if patterns.len() == 1 && !is_pattern(&patterns[0]) => format!("{}.{ending}", patterns[0]),
        None => return Err(Failure::new("dest is required if there are several paths or a pattern")),
    };
    if args.bool("remove") && paths.iter().any(|path| dest.starts_with(&format!("{path}/"))) {
        return Err(Failure::new(format!(
            "Error, created archive can not be contained in source paths when remove=true: {dest}"
        )));
    }
    let root = common(&paths);
    let texts = |items: &[String]| Value::list(items.iter().map(|item| Value::from(item.as_str())).collect());
    let outcome = Outcome::ok()
        .with("dest", dest.as_str())
        .with("arcroot", root.as_str())
        .with("archived", texts(&paths))
        .with("missing", texts(&missing))
        .with("expanded_paths", texts(&paths))
        .with("expanded_exclude_paths", texts(&out));
    if paths.is_empty() {
        return match patterns.iter().any(|pattern| is_pattern(pattern)) || args.bool("remove") {
            true => Ok(outcome.with("dest_state", "absent").with("state", "absent")),
            false => Err(Failure::new("Error, no source paths were found").with("missing", texts(&missing))),
        };
    }
    let state = match (single, missing.is_empty()) {
        (true, _) => "compress",
        (false, true) => "archive",
        (false, false) => "incomplete",
    };
    let outcome = outcome.with("dest_state", state).with("state", state);
    let job = Job {
        dest: &dest,
        root: &root,
        paths: &paths,
        out: &out,
        names: &args.list("exclusion_patterns"),
        format,
        single,
    };
    let question = Script { text: job.compare(), footprint: Footprint::Everything };
    let answer = host.read(question).await?;
    match answer.code {
        Some(0 | 1) => {}
        _ => return Err(Failure::new(format!("cannot pack {}: {}", paths.join(", "), answer.error_text().trim()))),
    }
    let is_same = answer.success();
    let remove = args.bool("remove");
    let attributes = attributes(&dest, &permissions, &me);
    if is_same && !remove {
        return settle(&host, &dest, outcome, &permissions, &me).await;
    }
    let mut code = if is_same { String::new() } else { job.pack() };
    code.push_str(&attributes);
    if remove {
        code.push_str(&format!(
            "rm -rf {} || exit\n",
            paths.iter().map(|path| quote(path)).collect::<Vec<_>>().join(" ")
        ));
    }
    let old = super::file_common::install::see(&host, &dest, true).await?;
    let inverse = match (remove, &old.here) {
        (true, _) => Inverse::None("what was packed and removed is in the archive alone".to_owned()),
        (false, None) => Inverse::Steps(vec![Step::new(format!("rm -f {}", quote(&dest)))]),
        (false, Some(_)) => Inverse::None(format!("the archive {dest} was there before, with another content")),
    };
    let mut footprint = Footprint::path(dest.as_str());
    for path in paths.iter().filter(|_| remove) {
        footprint = footprint.and(Footprint::tree(path.as_str()));
    }
    let change =
        Change::uncertain(format!("archive {dest}"), footprint).step(Step::new(code)).inverse(inverse).difference(
            Difference::new(dest.as_str(), "", paths.iter().map(|path| format!("{path}\n")).collect::<String>()),
        );
    make(&host, change).await?;
    Ok(Outcome { changed: true, ..outcome })
}

/// Brings mode and owner of an archive that is right.
async fn settle(
    host: &crate::host::Host,
    dest: &str,
    outcome: Outcome,
    permissions: &Permissions,
    me: &Myself,
) -> Result<Outcome, Failure> {
    let read = crate::host::reads::Attributes { path: dest.to_owned(), follow: true };
    let Some(before) = host.read(read).await? else { return Ok(outcome) };
    let after = permissions.on(&before, me.umask);
    match super::file_common::destination::attribute_change(dest, &before, &after) {
        None => Ok(outcome),
        Some(change) => {
            host.change(change).await?;
            Ok(Outcome { changed: true, ..outcome })
        }
    }
}

fn attributes(dest: &str, permissions: &Permissions, me: &Myself) -> String {
    let path = quote(dest);
    let mut code = String::new();
    let owner = permissions.owner.as_ref().map(|owner| owner.id.to_string()).unwrap_or_default();
    let group = permissions.group.as_ref().map(|group| format!(":{}", group.id)).unwrap_or_default();
    if !owner.is_empty() || !group.is_empty() {
        code.push_str(&format!("chown {owner}{group} {path} || exit\n"));
    }
    if let Some(mode) = &permissions.mode {
        code.push_str(&format!(
            "chmod {} {path} || exit\n",
            chmod_word(mode.apply(0o666 & !me.umask, false, me.umask))
        ));
    }
    code
}

/// A pattern with all but its signs quoted.
fn glob(pattern: &str) -> String {
    let mut out = String::new();
    let mut plain = String::new();
    for letter in pattern.chars() {
        if matches!(letter, '*' | '?' | '[' | ']') {
            if !plain.is_empty() {
                out.push_str(&quote(&plain));
                plain.clear();
            }
            out.push(letter);
        } else {
            plain.push(letter);
        }
    }
    if !plain.is_empty() {
        out.push_str(&quote(&plain));
    }
    out
}

/// The directory that all paths are in, with a slash at its end.
fn common(paths: &[String]) -> String {
    let mut root = paths.first().map(|path| parent(path).trim_end_matches('/').to_owned()).unwrap_or_default();
    while !paths.iter().all(|path| path.starts_with(&format!("{root}/"))) {
        root = root.rsplit_once('/').map_or(String::new(), |(shorter, _)| shorter.to_owned());
    }
    root + "/"
}

struct Job<'a> {
    dest: &'a str,
    root: &'a str,
    paths: &'a [String],
    out: &'a [String],
    names: &'a [String],
    format: &'a str,
    single: bool,
}

impl Job<'_> {
    fn members(&self) -> String {
        let relative = |path: &String| quote(&format!("./{}", path.strip_prefix(self.root).unwrap_or(path)));
        self.paths.iter().map(relative).collect::<Vec<_>>().join(" ")
    }

    /// Lists what is to be packed, below the root.
    fn find(&self) -> String {
        let mut tests = String::new();
        for path in self.out.iter().map(String::as_str).chain([self.dest]) {
            let relative = format!("./{}", path.strip_prefix(self.root).unwrap_or(path));
            tests.push_str(&format!(" -path {} -prune -o", quote(&relative)));
        }
        for name in self.names {
            tests.push_str(&format!(" -name {} -prune -o", quote(name)));
        }
        format!("find {}{tests} -print", self.members())
    }

    fn packer(&self) -> &'static str {
        match self.format {
            "gz" => "gzip -nc",
            "bz2" => "bzip2 -c",
            "xz" => "xz -c",
            _ => "cat",
        }
    }

    fn unpacker(&self) -> &'static str {
        match self.format {
            "gz" => "gzip -dc",
            "bz2" => "bzip2 -dc",
            "xz" => "xz -dc",
            _ => "cat",
        }
    }

    fn start(&self) -> String {
        let needed = if self.format == "zip" { "zip" } else { self.packer().split(' ').next().unwrap_or("cat") };
        format!(
            "{SYSTEM_PATH}export LC_ALL=C\ncommand -v {needed} >/dev/null || {{ echo 'the host has no `{needed}`' >&2; exit 127; }}\ncd {} || exit 3\n",
            quote(self.root)
        )
    }

    /// Succeeds if the archive holds just what would be packed: the same names and contents.
    fn compare(&self) -> String {
        let dest = quote(self.dest);
        let file = self.members();
        let code = if self.single && self.format != "zip" && self.format != "tar" {
            format!("{} {dest} 2>/dev/null | cmp -s - {file}", self.unpacker())
        } else if self.format == "zip" {
            format!(
                "[ \"$({} | sed 's,^\\./,,' | sort)\" = \"$(unzip -Z1 {dest} 2>/dev/null | sed 's,/$,,' | sort)\" ] || exit 1\n\
                 {} | while IFS= read -r n; do [ ! -f \"$n\" ] || [ -L \"$n\" ] || unzip -p {dest} \"${{n#./}}\" | cmp -s - \"$n\" || exit 1; done",
                self.find(),
                self.find()
            )
        } else {
            format!(
                "[ \"$({} | sed 's,^\\./,,' | sort)\" = \"$({} {dest} 2>/dev/null | tar -tf - 2>/dev/null | sed 's,^\\./,,; s,/$,,' | sort)\" ] || exit 1\n\
                 {} {dest} | tar --diff -f - >/dev/null 2>&1 || exit 1",
                self.find(),
                self.unpacker(),
                self.unpacker()
            )
        };
        format!("{}[ -f {dest} ] || exit 1\n{code}", self.start())
    }

    fn pack(&self) -> String {
        let dest = quote(self.dest);
        let part = quote(&format!("{}.part", self.dest));
        let code = if self.format == "zip" {
            format!("rm -f {part}; {} | zip -qy - -@ >{part}", self.find())
        } else if self.single && self.format != "tar" {
            format!("{} {} >{part}", self.packer(), self.members())
        } else {
            format!("{} | tar -cf - --no-recursion -T - | {} >{part}", self.find(), self.packer())
        };
        format!("{}trap 'rm -f {part}' EXIT\n{code} || exit\nmv {part} {dest} || exit\n", self.start())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, Played, play, run_module, skip, snapshot, undo};

    struct Lab(tempfile::TempDir);

    impl Lab {
        fn new() -> Lab {
            let lab = Lab(tempfile::tempdir().unwrap());
            std::fs::create_dir_all(lab.0.path().join("src/d")).unwrap();
            for (name, content) in [("src/a", "one\n"), ("src/d/b.log", "two\n"), ("src/d/c", "three\n")] {
                std::fs::write(lab.0.path().join(name), content).unwrap();
            }
            lab
        }

        fn at(&self, name: &str) -> String {
            self.0.path().join(name).to_str().unwrap().to_owned()
        }

        fn play(&self, path: &[&str], more: &[(&'static str, Value)], check: bool) -> Played {
            let paths = Value::list(path.iter().map(|name| Value::from(self.at(name))).collect());
            play(&MODULE, &[&[("path", paths)], more].concat(), &Play { check, ..Play::default() })
        }
    }

    fn has(program: &str) -> bool {
        let found = std::process::Command::new("sh").args(["-c", &format!("command -v {program} >/dev/null")]).status();
        let has = found.is_ok_and(|status| status.success());
        if !has {
            skip(&format!("this machine has no {program}"));
        }
        has
    }

    #[test]
    fn archives_of_all_kinds_are_made_once() {
        for (format, program) in [("gz", "gzip"), ("bz2", "bzip2"), ("xz", "xz"), ("tar", "tar"), ("zip", "zip")] {
            if !has(program) {
                continue;
            }
            let lab = Lab::new();
            let before = snapshot(lab.0.path());
            let more = [("format", format.into()), ("dest", lab.at("out").into()), ("mode", "0640".into())];
            assert!(lab.play(&["src"], &more, true).result.unwrap().changed, "{format}");
            assert_eq!(snapshot(lab.0.path()), before);
            let made = lab.play(&["src"], &more, false);
            let outcome = made.result.unwrap();
            assert_eq!((outcome.changed, outcome.result["state"].clone()), (true, "archive".into()), "{format}");
            for check in [true, false] {
                assert!(!lab.play(&["src"], &more, check).result.unwrap().changed, "{format}");
            }
            std::fs::create_dir(lab.at("copy")).unwrap();
            let unpack = [("src", lab.at("out").into()), ("dest", lab.at("copy").into()), ("remote_src", true.into())];
            run_module(&crate::modules::unarchive::MODULE, &unpack).unwrap();
            assert_eq!(std::fs::read_to_string(lab.at("copy/src/d/c")).unwrap(), "three\n", "{format}");
            std::fs::remove_dir_all(lab.at("copy")).unwrap();
            std::fs::write(lab.at("src/a"), "changed\n").unwrap();
            assert!(lab.play(&["src"], &more, false).result.unwrap().changed, "{format}");
            std::fs::write(lab.at("src/a"), "one\n").unwrap();
            undo(&made.changes);
            assert_eq!(snapshot(lab.0.path()), before, "{format}");
        }
    }

    #[test]
    fn single_files_patterns_and_exclusions() {
        let lab = Lab::new();
        let single = lab.play(&["src/a"], &[], false).result.unwrap();
        assert_eq!(
            (single.result["state"].clone(), single.result["dest"].clone()),
            ("compress".into(), lab.at("src/a.gz").into())
        );
        assert!(!lab.play(&["src/a"], &[], false).result.unwrap().changed);
        std::fs::remove_file(lab.at("src/a.gz")).unwrap();
        let names = [("dest", lab.at("o.tgz").into()), ("exclusion_patterns", "*.log".into())];
        let outcome = lab.play(&["src/*"], &names, false).result.unwrap();
        assert!(outcome.changed && outcome.result["archived"].as_list().unwrap().len() == 2);
        let listed = std::process::Command::new("tar").args(["-tzf", &lab.at("o.tgz")]).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.contains("./d/c") && !listed.contains("b.log"), "{listed}");
        let removed = lab.play(&["src/d"], &[("dest", lab.at("r.tgz").into()), ("remove", true.into())], false);
        assert!(removed.result.unwrap().changed && !std::path::Path::new(&lab.at("src/d")).exists());
        let missing = lab.play(&["src/a", "src/no"], &[("dest", lab.at("m.tgz").into())], false).result.unwrap();
        assert_eq!(missing.result["state"], "incomplete".into());
        assert!(lab.play(&["none"], &[], false).result.unwrap_err().message.contains("no source paths"));
    }
}
