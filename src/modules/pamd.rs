//! `community.general.pamd`: rules of PAM's services.

use crate::host::Failure;

use super::edited_file::{bring, text_of};
use super::file_common::content::backup_name;
use super::file_common::destination::{Manner, look};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

const TYPES: &[&str] = &["account", "-account", "auth", "-auth", "password", "-password", "session", "-session"];

pub const MODULE: Module = Module {
    name: "community.general.pamd",
    aliases: &[],
    summary: "Keeps rules in the files of PAM's services",
    args: &[
        Arg::new("name", Type::Str, "the service: the name of its file").required(),
        Arg::new("type", Type::Str, "the type of the rules that are meant").required().choices(TYPES),
        Arg::new("control", Type::Str, "their control, `[…]` in square brackets").required(),
        Arg::new("module_path", Type::Str, "their module").required(),
        Arg::new("new_type", Type::Str, "the new type").choices(TYPES),
        Arg::new("new_control", Type::Str, "the new control"),
        Arg::new("new_module_path", Type::Str, "the new module"),
        Arg::new("module_arguments", Type::List, "arguments of the module; an empty text removes them"),
        Arg::new("state", Type::Str, "`updated`: they are changed; `before`, `after`: a new rule stands there")
            .default("updated")
            .choices(&["absent", "before", "after", "args_absent", "args_present", "updated"]),
        Arg::new("path", Type::Path, "the directory of the services").default("/etc/pam.d"),
        Arg::new("backup", Type::Bool, "keep the old file under a name with the time").default("false"),
    ],
    rules: &[
        Rule::RequiredIf("state", "args_present", &["module_arguments"]),
        Rule::RequiredIf("state", "args_absent", &["module_arguments"]),
        Rule::RequiredIf("state", "before", &["new_control", "new_type", "new_module_path"]),
        Rule::RequiredIf("state", "after", &["new_control", "new_type", "new_module_path"]),
    ],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("change_count", "how many rules were changed"), ("backupdest", "where the old file is kept")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let name = args.text("name");
    if name.is_empty() || name.contains(['/', '\n']) {
        return Err(Failure::new(format!("`{name}` cannot be the name of a service")));
    }
    let path = format!("{}/{name}", args.text("path").trim_end_matches('/'));
    let seen = look(&host, &args, &path, false).await?;
    if seen.attributes.is_none() {
        return Err(Failure::new(format!("Unable to open/read PAM module file {path}: there is no such file")));
    }
    let old = text_of(&seen)?;
    let (new, count) = edit(&old, &Edit::parse(&args));
    let manner = Manner { backup: args.bool("backup").then(|| backup_name(&path)), ..Manner::default() };
    let (outcome, written) = bring(&host, &seen, (new != old).then_some(new), &manner, Outcome::ok()).await?;
    let outcome = outcome.with("change_count", count);
    Ok(match written.backup {
        Some(backup) => outcome.with("backupdest", backup),
        None => outcome,
    })
}

/// A rule of pam.d(5).
#[derive(Debug, Clone, PartialEq, Eq)]
struct PamRule {
    kind: String,
    control: String,
    module: String,
    arguments: Vec<String>,
}

impl PamRule {
    /// `None` for comments, includes by `@` and empty lines.
    fn parse(line: &str) -> Option<PamRule> {
        let line = line.trim();
        if line.starts_with(['#', '@']) {
            return None;
        }
        let words = words(line.split('#').next().unwrap_or_default());
        let [kind, control, module, arguments @ ..] = words.as_slice() else { return None };
        Some(PamRule {
            kind: kind.clone(),
            control: control.clone(),
            module: module.clone(),
            arguments: arguments.to_vec(),
        })
    }

    fn line(&self) -> String {
        let mut line = format!("{}\t{}\t{}", self.kind, self.control, self.module);
        if !self.arguments.is_empty() {
            line.push(' ');
            line.push_str(&self.arguments.join(" "));
        }
        line
    }
}

/// Words apart by blanks; `[a b]` is one.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut depth = 0;
    for letter in text.chars() {
        match letter {
            c if c.is_whitespace() && depth == 0 => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            other => {
                depth += match other {
                    '[' => 1,
                    ']' if depth > 0 => -1,
                    _ => 0,
                };
                word.push(other);
            }
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// `[a=b  c=d]` with one blank between.
fn control(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("[ ", "[").replace(" ]", "]")
}

struct Edit {
    kind: String,
    control: String,
    module: String,
    new: (Option<String>, Option<String>, Option<String>),
    arguments: Option<Vec<String>>,
    state: String,
}

impl Edit {
    fn parse(args: &Args) -> Edit {
        let text = |name: &str| args.str(name).filter(|text| !text.is_empty()).map(str::to_owned);
        let arguments = args.has("module_arguments").then(|| {
            let given = args.list("module_arguments");
            given.iter().flat_map(|argument| words(argument)).collect()
        });
        Edit {
            kind: args.text("type").to_owned(),
            control: control(args.text("control")),
            module: args.text("module_path").to_owned(),
            new: (text("new_type"), text("new_control").map(|text| control(&text)), text("new_module_path")),
            arguments,
            state: args.text("state").to_owned(),
        }
    }

    fn means(&self, rule: &PamRule) -> bool {
        rule.kind == self.kind && control(&rule.control) == self.control && rule.module == self.module
    }

    fn new_rule(&self) -> PamRule {
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        PamRule {
            kind: part(&self.new.0),
            control: part(&self.new.1),
            module: part(&self.new.2),
            arguments: self.arguments.clone().unwrap_or_default(),
        }
    }

    /// What becomes of a rule that is meant.
    fn changed(&self, rule: &PamRule) -> PamRule {
        let mut rule = rule.clone();
        let given = self.arguments.clone().unwrap_or_default();
        // `name=value` stands for `name`
        let key = |argument: &str| argument.split('=').next().unwrap_or_default().to_owned();
        match self.state.as_str() {
            "args_absent" => rule.arguments.retain(|own| !given.contains(own)),
            "args_present" => {
                for argument in given {
                    let is_pair = argument.contains('=') && !argument.starts_with('[');
                    match rule.arguments.iter().position(|own| {
                        *own == argument || (is_pair && own.contains('=') && key(own) == key(&argument))
                    }) {
                        Some(at) => rule.arguments[at] = argument,
                        None => rule.arguments.push(argument),
                    }
                }
            }
            _ => {
                for (own, new) in
                    [(&mut rule.kind, &self.new.0), (&mut rule.control, &self.new.1), (&mut rule.module, &self.new.2)]
                {
                    if let Some(new) = new {
                        own.clone_from(new);
                    }
                }
                if let Some(arguments) = &self.arguments {
                    rule.arguments.clone_from(arguments);
                }
            }
        }
        rule
    }
}

/// The new text, and how many rules were changed.
fn edit(text: &str, edit: &Edit) -> (String, usize) {
    let lines: Vec<&str> = text.lines().collect();
    let rules: Vec<Option<PamRule>> = lines.iter().map(|line| PamRule::parse(line)).collect();
    let same = |rule: &PamRule, other: &PamRule| {
        rule.kind == other.kind
            && control(&rule.control) == control(&other.control)
            && rule.module == other.module
            && rule.arguments == other.arguments
    };
    let neighbour = |at: usize, forth: bool| -> Option<&PamRule> {
        let mut others: Box<dyn Iterator<Item = &Option<PamRule>>> =
            if forth { Box::new(rules[at + 1..].iter()) } else { Box::new(rules[..at].iter().rev()) };
        others.find_map(Option::as_ref)
    };
    let mut out = Vec::new();
    let mut count = 0;
    for (at, line) in lines.iter().enumerate() {
        let Some(rule) = rules[at].as_ref().filter(|rule| edit.means(rule)) else {
            out.push((*line).to_owned());
            continue;
        };
        match edit.state.as_str() {
            "absent" => count += 1,
            "before" | "after" => {
                let new = edit.new_rule();
                let after = edit.state == "after";
                let is_there = neighbour(at, after).is_some_and(|other| same(other, &new));
                if !is_there && !after {
                    out.push(new.line());
                }
                out.push((*line).to_owned());
                if !is_there && after {
                    out.push(new.line());
                }
                count += usize::from(!is_there);
            }
            _ => {
                let new = edit.changed(rule);
                if same(rule, &new) {
                    out.push((*line).to_owned());
                } else {
                    count += 1;
                    out.push(new.line());
                }
            }
        }
    }
    let end = if text.ends_with('\n') && !out.is_empty() { "\n" } else { "" };
    (out.join("\n") + end, count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, play, snapshot, undo};
    use crate::value::Value;

    const FILE: &str = "#%PAM-1.0\nauth\t[success=1 default=ignore]\tpam_unix.so nullok\nauth required pam_deny.so\n@include common\nsession optional pam_x.so a=1 b\n";

    #[test]
    fn rules_are_changed_once_and_brought_back() {
        let deny = [("type", "auth"), ("control", "required"), ("module_path", "pam_deny.so")];
        let unix = [("type", "auth"), ("control", "[success=1  default=ignore]"), ("module_path", "pam_unix.so")];
        let other = [("type", "session"), ("control", "optional"), ("module_path", "pam_x.so")];
        let new = [("new_type", "auth"), ("new_control", "requisite"), ("new_module_path", "pam_faillock.so")];
        let cases: Vec<(Vec<(&'static str, &str)>, &str, &str)> = vec![
            ([&deny[..], &[("state", "absent")]].concat(), "auth required pam_deny.so\n", ""),
            (
                [&deny[..], &[("new_control", "requisite")]].concat(),
                "auth required pam_deny.so",
                "auth\trequisite\tpam_deny.so",
            ),
            (
                [&deny[..], &new, &[("state", "before"), ("module_arguments", "preauth")]].concat(),
                "auth required pam_deny.so",
                "auth\trequisite\tpam_faillock.so preauth\nauth required pam_deny.so",
            ),
            (
                [&unix[..], &new, &[("state", "after")]].concat(),
                "pam_unix.so nullok\n",
                "pam_unix.so nullok\nauth\trequisite\tpam_faillock.so\n",
            ),
            ([&unix[..], &[("module_arguments", "")]].concat(), "pam_unix.so nullok", "pam_unix.so"),
            (
                [&other[..], &[("state", "args_present"), ("module_arguments", "a=2,c")]].concat(),
                "session optional pam_x.so a=1 b",
                "session\toptional\tpam_x.so a=2 b c",
            ),
            (
                [&other[..], &[("state", "args_absent"), ("module_arguments", "b")]].concat(),
                "session optional pam_x.so a=1 b",
                "session\toptional\tpam_x.so a=1",
            ),
        ];
        for (given, old, new) in cases {
            let root = tempfile::tempdir().unwrap();
            let file = root.path().join("su");
            std::fs::write(&file, FILE).unwrap();
            let before = snapshot(root.path());
            let own = [("name", Value::from("su")), ("path", root.path().to_str().unwrap().into())];
            let mut args = own.to_vec();
            args.extend(given.iter().map(|(name, value)| (*name, Value::from(*value))));
            assert!(play(&MODULE, &args, &Play { check: true, ..Play::default() }).result.unwrap().changed);
            let played = play(&MODULE, &args, &Play::default());
            assert_eq!(played.result.unwrap().result["change_count"], 1.into());
            assert_eq!(std::fs::read_to_string(&file).unwrap(), FILE.replace(old, new), "{given:?}");
            assert!(!play(&MODULE, &args, &Play::default()).result.unwrap().changed, "{given:?}");
            undo(&played.changes);
            assert_eq!(snapshot(root.path()), before);
        }
    }

    #[test]
    fn missing_services_and_arguments_are_told() {
        let own = [
            ("name", "none".into()),
            ("type", "auth".into()),
            ("control", "required".into()),
            ("module_path", "x".into()),
        ];
        let failed = |more: &[(&'static str, Value)]| {
            play(&MODULE, &[&own[..], more].concat(), &Play::default()).result.unwrap_err().message
        };
        assert!(failed(&[("path", "/no/such".into())]).contains("no such file"));
        assert!(failed(&[("state", "before".into())]).contains("new_control"));
    }
}
