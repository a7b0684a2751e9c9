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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::fake_systemd::FakeSystemd;
    use crate::modules::testing::{Play, Played, check_module, play, run_module};
    use crate::value::Value;

    #[test]
    fn a_service_that_is_not_there_is_named_by_every_init_system() {
        for state in ["started", "stopped"] {
            let given = [("name", "no-such-service".into()), ("state", state.into())];
            let failure = run_module(&MODULE, &given).unwrap_err();
            assert_eq!(failure.message, "Could not find the requested service no-such-service: host");
            assert!(check_module(&MODULE, &given).is_err());
        }
    }

    fn on(systemd: &FakeSystemd, given: &[(&str, Value)], check: bool) -> Played {
        play(&MODULE, given, &Play { shell: systemd.shell(), check })
    }

    #[test]
    fn a_unit_is_brought_there_once_and_can_be_brought_back() {
        let systemd = FakeSystemd::new();
        systemd.unit("irqbalance", "active", "enabled", "Type=simple\n");
        let given = [("name", "irqbalance".into()), ("state", "stopped".into()), ("enabled", false.into())];
        assert!(on(&systemd, &given, true).result.unwrap().changed);
        assert_eq!(systemd.log(), "");
        let played = on(&systemd, &given, false);
        let outcome = played.result.unwrap();
        assert_eq!(systemd.log(), "disable irqbalance\nstop irqbalance\n");
        assert_eq!((outcome.changed, played.batches), (true, 1));
        assert_eq!(outcome.result["state"], "stopped".into());
        assert_eq!(outcome.result["status"].get("ActiveState"), Some(&"inactive".into()));
        assert!(!on(&systemd, &given, false).result.unwrap().changed);
        systemd.undo(&played.changes);
        assert_eq!(systemd.state("irqbalance"), "active enabled");
    }

    #[test]
    fn a_reload_of_systemd_comes_first_and_is_no_change() {
        let systemd = FakeSystemd::new();
        systemd.unit("tuned", "active", "enabled", "");
        let given = [("name", "tuned.service".into()), ("state", "started".into()), ("daemon_reload", true.into())];
        let played = on(&systemd, &given, false);
        assert!(!played.result.unwrap().changed);
        assert_eq!((played.changes.len(), systemd.log().trim()), (1, "daemon-reload"));
        let given = [("name", "tuned".into()), ("state", "restarted".into()), ("daemon_reload", true.into())];
        assert!(on(&systemd, &given, false).result.unwrap().changed);
        assert_eq!(systemd.log(), "daemon-reload \nrestart tuned\n");
    }
}
