//! What is told of a change in the open: who, where, what. Of a task with `no_log` no more than that it changed something.

use crate::engine::recorder::Intent;
use crate::host::Inverse;

/// The part of a record that is not sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    pub host: String,
    pub task: String,
    pub action: String,
    /// file:line:column
    pub place: String,
    pub item: Option<String>,
    pub no_log: bool,
    pub what: String,
    /// The method and the user, if another is become.
    pub become_as: Option<(String, String)>,
    /// Why it cannot be taken back; `None` if it can.
    pub no_inverse: Option<String>,
}

impl Told {
    pub(super) fn of(intent: &Intent) -> Told {
        let Intent { host, task, item, no_log, identity, change, .. } = intent;
        Told {
            host: host.to_string(),
            task: task.name.clone(),
            action: task.action.clone(),
            place: task.place.to_string(),
            item: item.clone().filter(|_| !no_log),
            no_log: *no_log,
            // what a task with no_log works on may be secret by its name alone
            what: if *no_log { format!("{} (no_log)", task.action) } else { change.what.clone() },
            become_as: identity.become_as.as_ref().map(|other| (other.method.clone(), other.user.clone())),
            no_inverse: match &change.inverse {
                Inverse::Steps(_) => None,
                Inverse::None(_) if *no_log => Some("it has no inverse".to_owned()),
                Inverse::None(reason) => Some(reason.clone()),
            },
        }
    }
}
