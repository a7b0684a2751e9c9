//! ansible.builtin.service: starts, stops and enables services of whatever init system the host has.

use crate::host::Failure;

use super::systemd_service::{self, DAEMON_RELOAD, FORCE, MASKED, NO_BLOCK, SCOPE};
use super::unit::{self, Wanted};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Rule, Support, Type, sysv};

pub const MODULE: Module = Module {
    name: "ansible.builtin.service",
    aliases: &["ansible.builtin.sysvinit"],
    summary: "Starts, stops and enables services of whatever init system the host has",
    args: &[
        Arg::new("name", Type::Str, "The service").required().aliases(&["service"]),
        STATE,
        ENABLED,
        MASKED,
        DAEMON_RELOAD,
        SCOPE,
        NO_BLOCK,
        FORCE,
        Arg::new("sleep", Type::Int, "Seconds between stop and start of a restart, where there is no systemd"),
        Arg::new(
            "pattern",
            Type::Str,
            "Words in the list of processes that show that it runs, where its script has no status",
        ),
        Arg::new("arguments", Type::Str, "Further words for the service's script").aliases(&["args"]),
        Arg::new("runlevel", Type::Str, "The runlevel of OpenRC").default("default"),
        Arg::new("runlevels", Type::List, "The runlevels of the old init system"),
        Arg::new("use", Type::Str, "The init system, if it is not to be found out").default("auto").choices(&[
            "auto",
            "systemd",
            "service",
            "sysvinit",
            "openrc",
            "ansible.builtin.systemd",
        ]),
    ],
    rules: &[Rule::RequiredOneOf(&["state", "enabled", "masked", "daemon_reload"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: RETURNS,
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

pub(super) const STATE: Arg =
    Arg::new("state", Type::Str, "Whether it runs; restarted and reloaded start one that does not").choices(&[
        "reloaded",
        "restarted",
        "started",
        "stopped",
    ]);
pub(super) const ENABLED: Arg = Arg::new("enabled", Type::Bool, "Whether it is started at boot");
pub(super) const RETURNS: &[(&str, &str)] = &[
    ("name", "the service"),
    ("state", "`started` or `stopped`, if `state` was given"),
    ("enabled", "whether it is started at boot, if `enabled` was given"),
    ("status", "what systemd says of the unit"),
];

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let use_other = matches!(invocation.args.text("use"), "service" | "sysvinit" | "openrc");
    if !use_other {
        if invocation.args.bool("daemon_reload") {
            return systemd_service::run_for_service(invocation).await;
        }
        let wanted = Wanted::of(&invocation.args);
        if let Some(unit) = unit::read(&invocation.host, &wanted).await? {
            return systemd_service::bring(&invocation.host, &wanted, unit).await;
        }
        if invocation.args.text("use").ends_with("systemd") {
            return Err(Failure::new(format!("service {}: systemd does not run this host", wanted.name)));
        }
    }
    sysv::bring(&invocation.args, &invocation.host).await
}
