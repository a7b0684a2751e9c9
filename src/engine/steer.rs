//! What a task does to the play itself: `meta`, add_host, group_by.

use std::sync::Arc;

use crate::inventory::Inventory;
use crate::modules::Effect;
use crate::playbook::Role;
use crate::value::Value;

use super::event::Event;
use super::perform::Ended;
use super::play::Addition;
use super::result::Steer;
use super::view::host_view;
use super::walk::{HostEnd, Walker};

/// The effect of `meta: NAME`; `None` if there is no such action (or it is done where it stands).
pub(super) fn meta(name: &str) -> Option<Steer> {
    Some(match name {
        "end_host" => Steer::EndHost,
        "end_play" => Steer::EndPlay,
        "end_batch" => Steer::EndBatch,
        "end_role" => Steer::EndRole,
        "clear_host_errors" => Steer::ClearHostErrors,
        "clear_facts" => Steer::ClearFacts,
        "reset_connection" => Steer::ResetConnection,
        "refresh_inventory" => Steer::RefreshInventory,
        _ => return None,
    })
}

/// What `meta: NAME` did, and why it was passed over, in Ansible's words.
pub(super) fn in_words(name: &str, host: &str, role: Option<&Role>) -> (String, String) {
    let role = role.map_or("", |role| role.name.as_str());
    let (done, instead) = match name {
        "end_host" => (format!("ending play for {host}"), format!("continuing execution for {host}")),
        "end_play" => ("ending play".to_owned(), "continuing play".to_owned()),
        "end_batch" => ("ending batch".to_owned(), "continuing current batch".to_owned()),
        "end_role" => (format!("ending role {role} for {host}"), format!("continuing role {role} for {host}")),
        "clear_host_errors" => ("cleared host errors".to_owned(), format!("not clearing host error state for {host}")),
        "clear_facts" => ("facts cleared".to_owned(), format!("not clearing facts and fact cache for {host}")),
        "flush_handlers" => {
            (format!("triggered running handlers for {host}"), format!("not running handlers for {host}"))
        }
        "refresh_inventory" => ("inventory successfully refreshed".to_owned(), String::new()),
        "reset_connection" => ("reset connection".to_owned(), String::new()),
        other => (other.to_owned(), String::new()),
    };
    let passed_over = match instead.as_str() {
        "" => format!("{name} conditional evaluated to False"),
        instead => format!("{name} conditional evaluated to False, {instead}"),
    };
    (done, passed_over)
}

impl Walker {
    /// Whether add_host and group_by change anything depends on the inventory as it is now.
    pub(super) fn with_real_change(&self, ended: Ended) -> Ended {
        let Ended::Module(Ok(mut outcome)) = ended else { return ended };
        let addition = match outcome.effect.clone() {
            Effect::AddHost { name, groups, variables } => Addition::Host { name, groups, variables },
            Effect::GroupBy { group, parents } => Addition::Group { host: Arc::clone(&self.view.name), group, parents },
            _ => return Ended::Module(Ok(outcome)),
        };
        outcome.changed = addition.add_to(&mut Inventory::clone(&self.play.run.inventory()));
        Ended::Module(Ok(outcome))
    }

    pub(super) fn steer(&mut self, steer: Steer) {
        match steer {
            Steer::Add(addition) => {
                self.play.run.add(addition);
                self.view = Arc::new(host_view(&self.play.run.inventory(), self.host));
            }
            Steer::EndHost => self.leave(HostEnd::Done),
            Steer::EndBatch => {
                self.play.course.end_batch();
                self.leave(HostEnd::Done);
            }
            Steer::EndPlay => {
                self.play.course.stop();
                self.leave(HostEnd::EndPlay);
            }
            Steer::EndRole => {
                self.drop_from(0);
                if let Some(role) = self.growth.cursor.end_role() {
                    Arc::make_mut(&mut self.growth.ended_roles).insert(role.identity.clone());
                }
                self.at_end = false;
            }
            Steer::ClearFacts => {
                Arc::make_mut(&mut self.runtime).clear_facts();
                self.play.run.fleet.clear_facts(self.host);
                let forgotten = self.play.run.options.fact_cache.as_ref().map(|cache| cache.forget(&self.view.name));
                if let Some(Err(error)) = forgotten {
                    self.play.run.tell(Event::Warning(error.to_string()));
                }
            }
            Steer::Stats { data, per_host, aggregate } => {
                let host = per_host.then(|| Arc::clone(&self.view.name));
                self.play.run.tell(Event::CustomStats { host, data: Value::map(data), aggregate });
            }
            Steer::Abort(error) => {
                self.play.run.abort(error);
                self.play.course.stop();
            }
            Steer::ResetConnection => self.resets_connection = true,
            // hosts that failed and have left their walk take part again from the next play on
            Steer::ClearHostErrors => {
                self.drop_from(0);
                self.growth.cursor.forgive();
                self.play.run.clear_host_errors();
                self.play.run.tell(Event::ErrorsCleared);
            }
            Steer::RefreshInventory => {
                match self.play.run.refresh_inventory(&self.play.stamp(self.committed.clone())) {
                    Ok(()) => self.view = Arc::new(host_view(&self.play.run.inventory(), self.host)),
                    Err(error) => {
                        self.play.run.abort(error);
                        self.play.course.stop();
                    }
                }
            }
        }
    }

    /// Ends the play for this host, without a failure.
    fn leave(&mut self, end: HostEnd) {
        self.drop_from(0);
        self.growth.cursor.end();
        self.growth.rest = None;
        self.growth.flushed = None;
        self.at_end = true;
        self.end = end;
        self.depart();
    }
}
