//! Plays that take recorded changes back, or make them: what `trimtab undo` and `trimtab apply` share.

use std::path::{Path, PathBuf};

use indexmap::IndexSet;
use serde_json::{Map, Value as Json, json};

use super::args::{ConnectionArgs, InventoryArgs};
use super::session::Fleet;
use crate::error::{Error, Result};
use crate::journal::RecordedStep;

/// What a play of recorded changes is to be like.
pub struct Replay<'a> {
    pub name: String,
    /// Stands before the names of the tasks.
    pub verb: &'a str,
    /// `back` or `forward`.
    pub direction: &'a str,
    pub force: bool,
    /// What is left alone on a host does not keep the rest from being worked on; the host fails in the end, with these words.
    pub goes_on: Option<&'a str>,
    /// Look first whether each host is as it was when the changes were recorded.
    pub verifies: bool,
}

impl Replay<'_> {
    /// The play as JSON, which is YAML too.
    pub fn play(&self, steps: &[RecordedStep]) -> Json {
        let hosts: IndexSet<&str> = steps.iter().flat_map(|step| step.hosts.keys()).map(String::as_str).collect();
        let hosts: Vec<&str> = hosts.into_iter().collect();
        let mut tasks: Vec<Json> = Vec::new();
        let results: Vec<String> = (0..steps.len()).map(|index| format!("trimtab_step_{index}")).collect();
        if self.verifies {
            let identities: IndexSet<_> = steps.iter().map(|step| &step.become_as).collect();
            for become_as in identities {
                let numbers: Vec<usize> =
                    (0..steps.len()).filter(|index| steps[*index].become_as == *become_as).collect();
                let arguments =
                    json!({ "step": numbers[0], "steps": numbers, "direction": self.direction, "verify": true });
                tasks.push(task("as it was planned", arguments, become_as.as_ref()));
            }
        }
        for (index, step) in steps.iter().enumerate() {
            let arguments = json!({ "step": index, "direction": self.direction, "force": self.force });
            let name = format!("{}{}", self.verb, step.task);
            let mut task = task(&name, arguments, step.become_as.as_ref());
            task["no_log"] = step.no_log.into();
            if self.goes_on.is_some() {
                task["register"] = results[index].as_str().into();
                task["ignore_errors"] = true.into();
            }
            tasks.push(task);
        }
        if let Some(words) = self.goes_on {
            let failed = format!("[{}] | select('failed') | length", results.join(", "));
            tasks.push(json!({
                "name": "nothing was left alone",
                "ansible.builtin.fail": { "msg": format!("{{{{ {failed} }}}} {words}") },
                "when": format!("{failed} > 0"),
                "become": false,
            }));
        }
        json!([{ "name": self.name, "hosts": hosts, "gather_facts": false, "tasks": tasks }])
    }
}

fn task(name: &str, arguments: Json, become_as: Option<&(String, String)>) -> Json {
    let mut task = json!({
        "name": plain(name),
        "trimtab.recorded_changes": arguments,
        "become": become_as.is_some(),
    });
    if let Some((method, user)) = become_as {
        task["become_method"] = method.as_str().into();
        task["become_user"] = user.as_str().into();
    }
    task
}

/// A name that is no template.
fn plain(name: &str) -> String {
    name.replace("{{", "{ {").replace("{%", "{ %").replace("{#", "{ #")
}

/// What the command line does not say of how hosts are reached is as it was.
pub fn as_it_was_reached(
    hosts: &mut InventoryArgs,
    reach: &mut ConnectionArgs,
    inventory: &[String],
    options: &Map<String, Json>,
) {
    if hosts.inventory.is_empty() {
        hosts.inventory = inventory.to_vec();
    }
    let was = |name: &str| options.get(name).and_then(|value| value.as_str()).map(str::to_owned);
    for (option, name) in [
        (&mut reach.user, "user"),
        (&mut reach.private_key, "private-key"),
        (&mut reach.connection, "connection"),
        (&mut reach.ssh_common_args, "ssh-common-args"),
        (&mut reach.ssh_extra_args, "ssh-extra-args"),
    ] {
        if option.is_none() {
            *option = was(name);
        }
    }
}

/// Where the first playbook was, so that the variables beside it count again.
pub fn directory_of(directory: &str, playbooks: &[String]) -> PathBuf {
    let here = Path::new(directory);
    match playbooks.first().map(|playbook| here.join(playbook)) {
        Some(playbook) => playbook.parent().map_or(here.to_owned(), Path::to_owned),
        None => here.to_owned(),
    }
}

/// Refuses hosts that the inventory does not know.
pub fn all_are_known<'a>(hosts: impl Iterator<Item = &'a str>, fleet: &Fleet) -> Result<()> {
    let is_controller = |host: &str| matches!(host, "localhost" | "127.0.0.1" | "::1");
    let unknown: IndexSet<&str> =
        hosts.filter(|host| fleet.inventory.find_host(host).is_none() && !is_controller(host)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = unknown.into_iter().collect();
    Err(Error::input(format!("not in the inventory any more: {}", names.join(", ")))
        .hint("`-i` names the inventory that has them; `--limit` leaves them out"))
}
