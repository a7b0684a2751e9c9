//! ansible.builtin.systemd_service: starts, stops, enables and masks units of systemd.

use crate::host::{Change, Failure, Footprint, Inverse, Step, Subject};

use super::unit::{self, Wanted};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.systemd_service",
    aliases: &["ansible.builtin.systemd"],
    summary: "Starts, stops, enables and masks units of systemd",
    args: &[
        Arg::new("name", Type::Str, "The unit; `.service` may be left out").aliases(&["service", "unit"]),
        super::service::STATE,
        super::service::ENABLED,
        MASKED,
        DAEMON_RELOAD,
        DAEMON_REEXEC,
        SCOPE,
        NO_BLOCK,
        FORCE,
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: super::service::RETURNS,
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

pub(super) const MASKED: Arg = Arg::new("masked", Type::Bool, "Whether it is made impossible to start");
pub(super) const DAEMON_RELOAD: Arg =
    Arg::new("daemon_reload", Type::Bool, "Let systemd read all unit files again first")
        .aliases(&["daemon-reload"])
        .default("false");
pub(super) const DAEMON_REEXEC: Arg = Arg::new("daemon_reexec", Type::Bool, "Let systemd start itself anew first")
    .aliases(&["daemon-reexec"])
    .default("false");
pub(super) const SCOPE: Arg = Arg::new("scope", Type::Str, "Whose manager: of the system, the user, or all users")
    .default("system")
    .choices(&["system", "user", "global"]);
pub(super) const NO_BLOCK: Arg =
    Arg::new("no_block", Type::Bool, "Do not wait until the unit has started or stopped").default("false");
pub(super) const FORCE: Arg = Arg::new("force", Type::Bool, "Replace links that are in the way").default("false");

/// `service` with `daemon_reload`, which only systemd has.
pub(super) async fn run_for_service(invocation: Invocation) -> Result<Outcome, Failure> {
    run(invocation).await
}

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let wanted = Wanted::of(&args);
    if wanted.name.is_empty() && (wanted.state.is_some() || wanted.enabled.is_some() || wanted.masked.is_some()) {
        return Err(Failure::new("missing parameter(s) required by 'state', 'enabled' or 'masked': name"));
    }
    for (name, verb) in [("daemon_reload", "daemon-reload"), ("daemon_reexec", "daemon-reexec")] {
        if args.bool(name) {
            host.change(manager_change(verb, &wanted)).await?;
        }
    }
    if wanted.name.is_empty() {
        return Ok(Outcome::ok().with("status", crate::value::Map::new()));
    }
    match unit::read(&host, &wanted).await? {
        Some(unit) => bring(&host, &wanted, unit).await,
        None => Err(Failure::new(format!(
            "service {}: systemd does not run this host; the module `service` knows other init systems too",
            wanted.name
        ))),
    }
}

/// `daemon-reload` and `daemon-reexec`: of all units only what their files say can change.
fn manager_change(verb: &str, wanted: &Wanted) -> Change {
    let scope = match wanted.scope {
        unit::Scope::User => "--user ",
        _ => "",
    };
    Change::certain(format!("systemd {verb}"), Footprint::Of(vec![Subject::Units]))
        .step(Step::new(format!("systemctl {scope}{verb}")))
        .inverse(Inverse::None("unit files that were read cannot be forgotten".to_owned()))
}

/// Brings a unit to where it is wanted.
pub(super) async fn bring(
    host: &crate::host::Host,
    wanted: &Wanted,
    unit: unit::UnitState,
) -> Result<Outcome, Failure> {
    let verbs = unit::plan(wanted, &unit)?;
    if verbs.is_empty() {
        return Ok(Outcome { result: unit::result(wanted, &unit), ..Outcome::ok() });
    }
    let change = unit::change(wanted, &unit, &verbs);
    let differences = change.differences.clone();
    let applied = host.change(change).await?;
    let unit = if applied.check { unit } else { unit::judge(wanted, &verbs, &applied.responses)? };
    Ok(Outcome { result: unit::result(wanted, &unit), ..Outcome::changed() }.differences(differences))
}
