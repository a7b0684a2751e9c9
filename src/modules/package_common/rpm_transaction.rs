//! What dnf and yum say they are about to do: the table before `Transaction Summary`.

use super::rpm_version::Evr;

/// What is done to a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Install,
    /// To another version, up or down, or the same again.
    Replace,
    Remove,
    /// A group or an environment is noted as installed or removed; dnf tells of an installed one each time.
    Group,
    /// A module's stream or profile is chosen.
    Module,
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub action: Action,
    pub name: String,
    pub architecture: String,
    /// `[epoch:]version-release`
    pub evr: String,
}

impl Item {
    /// `name-version-release.architecture`, without epoch; the name alone of what is no package.
    pub fn label(&self) -> String {
        if self.evr.is_empty() {
            return self.name.clone();
        }
        let evr = Evr::parse(&self.evr);
        let release = evr.release.map(|release| format!("-{release}")).unwrap_or_default();
        format!("{}-{}{release}.{}", self.name, evr.version, self.architecture)
    }
}

/// What the tool said of a command that it was not to carry out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    pub items: Vec<Item>,
    /// Names that no repository knows, in the order they were complained of.
    pub missing: Vec<String>,
    /// What it says under `Error:`.
    pub errors: String,
    /// It said that there is nothing to do.
    pub nothing: bool,
}

/// Reads the output of `dnf --assumeno`, `yum --assumeno` or `dnf5 --assumeno`.
pub fn parse(output: &str) -> Plan {
    let mut plan = Plan::default();
    let mut action = None;
    let mut in_table = false;
    let mut entry: Vec<&str> = Vec::new();
    let mut in_errors = false;
    for line in output.lines() {
        if let Some(name) = missing_name(line) {
            plan.missing.push(name.to_owned());
        }
        plan.nothing |= line.trim_start_matches("Error: ").starts_with("Nothing to do");
        if line.starts_with("Error:") || line.starts_with("Failed to resolve the transaction:") {
            in_errors = true;
        }
        if in_errors && !line.trim().is_empty() {
            plan.errors.push_str(line.trim_start_matches("Error: "));
            plan.errors.push('\n');
        }
        if line.starts_with("Transaction Summary") {
            finish(&mut plan, action, &mut entry);
            in_table = false;
            action = None;
            continue;
        }
        let is_entry = line.starts_with(' ') && !line.starts_with("  ");
        if is_entry && line.split_whitespace().next() == Some("Package") && line.contains("Version") {
            in_table = true;
            continue;
        }
        // dnf5 writes the head of the table without a blank in front
        if line.starts_with("Package ") && line.contains("Version") {
            in_table = true;
            continue;
        }
        if !in_table {
            continue;
        }
        if is_entry {
            finish(&mut plan, action, &mut entry);
            entry.extend(line.split_whitespace());
        } else if line.starts_with(' ') {
            if line.trim_start().starts_with("replacing ") {
                replaced(&mut plan, action, &mut entry);
            } else if !entry.is_empty() {
                entry.extend(line.split_whitespace());
            }
        } else if line.trim_end().ends_with(':') {
            finish(&mut plan, action, &mut entry);
            action = heading(line);
        }
    }
    plan
}

/// An entry that takes the place of another package is not new.
fn replaced(plan: &mut Plan, action: Option<Action>, entry: &mut Vec<&str>) {
    finish(plan, action.map(|_| Action::Replace), entry);
    if let Some(last) = plan.items.last_mut().filter(|last| last.action == Action::Install) {
        last.action = Action::Replace;
    }
}

fn finish(plan: &mut Plan, action: Option<Action>, entry: &mut Vec<&str>) {
    if let (Some(action), [name, rest @ ..]) = (action, entry.as_slice()) {
        match (action, rest) {
            (Action::Group | Action::Module, _) => {
                plan.items.push(Item { action, name: entry.join(" "), architecture: String::new(), evr: String::new() })
            }
            (_, [architecture, evr, ..]) => plan.items.push(Item {
                action,
                name: (*name).to_owned(),
                architecture: (*architecture).to_owned(),
                evr: (*evr).to_owned(),
            }),
            _ => {}
        }
    }
    entry.clear();
}

/// What a heading says of the lines below it; `None` for what is only told (skipped packages).
fn heading(line: &str) -> Option<Action> {
    let line = line.to_ascii_lowercase();
    let ends_with = |words: &[&str]| words.iter().any(|word| line.trim_end().ends_with(word));
    if ends_with(&["profiles:", "streams:", "modules:"]) {
        return Some(Action::Module);
    }
    if ends_with(&["groups:", "environments:"]) {
        return Some(Action::Group);
    }
    let first = line.split([' ', ':']).next().unwrap_or_default();
    match first {
        "installing" => Some(Action::Install),
        "upgrading" | "updating" | "downgrading" | "reinstalling" | "changing" => Some(Action::Replace),
        "removing" | "erasing" => Some(Action::Remove),
        _ => None,
    }
}

/// The name in a complaint that nothing has that name.
fn missing_name(line: &str) -> Option<&str> {
    let line = line.trim();
    if let Some(name) = line.strip_prefix("No package ").and_then(|rest| rest.strip_suffix(" available.")) {
        return Some(name.trim());
    }
    if let Some(name) = line.strip_prefix("No match for argument: ") {
        return Some(name.trim());
    }
    let quoted = line.strip_prefix("Module or Group '").or_else(|| line.strip_prefix("Warning: Group "));
    quoted
        .filter(|rest| rest.contains("not available") || rest.contains("does not exist"))
        .map(|rest| rest.split("' is not").next().and_then(|name| name.split(" does not exist").next()).unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(output: &str) -> Vec<(Action, String)> {
        parse(output).items.iter().map(|item| (item.action, item.label())).collect()
    }

    #[test]
    fn the_table_of_dnf_is_read() {
        let output = "\
Last metadata expiration check: 0:00:14 ago on Mon Nov 30 23:46:53 2026.
Dependencies resolved.
================================================================================
 Package              Architecture       Version           Repository      Size
================================================================================
Installing:
 zz-alpha             noarch             1:1.2-1           zz             5.4 k
     replacing  zz-old.noarch 1.0-1
 zz-beta              noarch             2-1               zz                0  
Upgrading:
 zz-gamma             x86_64             1.2-1             zz             5.4 k
Installing dependencies:
 zz-dep               noarch             0.2-1             zz             5.4 k
Removing unused dependencies:
 zz-gone              noarch             3-1               @zz               0  
Installing Groups:
 Zz Tools                                                                     
Enabling module streams:
 zz                                      12                                   

Transaction Summary
================================================================================
Install  3 Packages

Total size: 16 k
Operation aborted.
";
        assert_eq!(
            items(output),
            [
                (Action::Replace, "zz-alpha-1.2-1.noarch".to_owned()),
                (Action::Install, "zz-beta-2-1.noarch".to_owned()),
                (Action::Replace, "zz-gamma-1.2-1.x86_64".to_owned()),
                (Action::Install, "zz-dep-0.2-1.noarch".to_owned()),
                (Action::Remove, "zz-gone-3-1.noarch".to_owned()),
                (Action::Group, "Zz Tools".to_owned()),
                (Action::Module, "zz 12".to_owned()),
            ]
        );
    }

    #[test]
    fn the_table_of_yum_has_broken_lines() {
        let output = "\
Resolving Dependencies
--> Running transaction check
---> Package zz.noarch 0:1.0-1 will be installed
--> Finished Dependency Resolution

Dependencies Resolved

================================================================================
 Package          Arch          Version                    Repository      Size
================================================================================
Installing:
 zz-a-very-long-package-name-that-wraps
                  noarch        1.20251130.3-1.el7         zz             5.6 k
 zz-b             noarch        1.0-1                      zz             5.6 k
Updating for dependencies:
 zz-dep           noarch        1:1.0-1                    zz             5.6 k

Transaction Summary
================================================================================
Install  2 Packages

Total download size: 16 k
Exiting on user command
Your transaction was saved, rerun it with:
 yum load-transaction /tmp/yum_save_tx.2026-11-30.23-46.Xk.yumtx
";
        assert_eq!(
            items(output),
            [
                (Action::Install, "zz-a-very-long-package-name-that-wraps-1.20251130.3-1.el7.noarch".to_owned()),
                (Action::Install, "zz-b-1.0-1.noarch".to_owned()),
                (Action::Replace, "zz-dep-1.0-1.noarch".to_owned()),
            ]
        );
    }

    #[test]
    fn missing_names_and_errors_are_kept() {
        let plan = parse("No match for argument: zz-no\nError: Unable to find a match: zz-no\n");
        assert_eq!((plan.missing, plan.errors.as_str()), (vec!["zz-no".to_owned()], "Unable to find a match: zz-no\n"));
        let plan = parse("No package zz-no available.\nError: Nothing to do\n");
        assert_eq!((plan.missing.len(), plan.nothing), (1, true));
        let plan = parse("Module or Group 'zz' is not available.\nError: Nothing to do.\n");
        assert_eq!(plan.missing, ["zz"]);
        assert!(parse("Dependencies resolved.\nNothing to do.\nComplete!\n").nothing);
        let plan = parse("Error: \n Problem: conflicting requests\n  - nothing provides x\n");
        assert_eq!(plan.errors.trim(), "Problem: conflicting requests\n  - nothing provides x");
    }
}
