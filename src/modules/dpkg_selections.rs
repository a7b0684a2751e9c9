//! ansible.builtin.dpkg_selections: what dpkg is to do with a package: keep it on hold, for one.

use crate::connect::shell::{Response, quote};
use crate::host::reads::{Read, Script};
use crate::host::{Change, Difference, Failure, Footprint, Inverse, Step, Subject};

use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.dpkg_selections",
    aliases: &[],
    summary: "Sets what dpkg is to do with a package, such as to keep it on hold",
    args: &[
        Arg::new("name", Type::Str, "The package").required(),
        Arg::new("selection", Type::Str, "What is to be done with it").required().choices(&[
            "install",
            "hold",
            "deinstall",
            "purge",
        ]),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("before", "the selection before"), ("after", "the selection after")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let (name, selection) = (args.text("name"), args.text("selection"));
    let footprint = Footprint::Of(vec![Subject::Packages]);
    let text = format!("dpkg-query -W -f '${{db:Status-Want}}' -- {}", quote(name));
    let script = Script { text, footprint: footprint.clone() };
    let response = host.read(script.clone()).await?;
    if response.code == Some(127) {
        return Err(Failure::new("the host has no `dpkg-query`: is `dpkg_selections` the right module for it?"));
    }
    let before = response.text().trim().to_owned();
    if !response.success() || before.is_empty() {
        return Err(Failure::new(format!("Failed to find package '{name}' to perform selection '{selection}'.")));
    }
    let mut outcome = Outcome::with_changed(before != selection);
    if before != selection {
        let set = |selection: &str| {
            Step::new(format!("printf '%s %s\\n' {} {selection} | dpkg --set-selections", quote(name)))
        };
        let proof = Step::new(format!("{}\n{}", set(selection).script, script.text)).expect(selection);
        let shown = Difference::new(format!("selection of {name}"), format!("{before}\n"), format!("{selection}\n"));
        let change = Change::certain(format!("selection of package {name}"), footprint)
            .step(proof)
            .difference(shown)
            .inverse(Inverse::Steps(vec![set(&before)]))
            .leaves(script.query(), Response::output(selection));
        outcome = Outcome::of_change(&change);
        host.change(change).await?;
    }
    Ok(outcome.with("before", before).with("after", selection))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::package_common::lab::DebLab;
    use crate::modules::testing::{Play, play};

    #[test]
    fn a_package_is_put_on_hold_once() {
        let Some(lab) = DebLab::new() else { return };
        lab.run("apt-get -qq -y install zz-lonely");
        let run = |name: &str, selection: &str, check| {
            let given = [("name", name.into()), ("selection", selection.into())];
            play(&MODULE, &given, &Play { shell: lab.shell(), check })
        };
        assert!(run("zz-lonely", "hold", true).result.unwrap().changed);
        let played = run("zz-lonely", "hold", false);
        let outcome = played.result.unwrap();
        assert_eq!(
            (outcome.result["before"].clone(), outcome.result["after"].clone()),
            ("install".into(), "hold".into())
        );
        assert_eq!(lab.known(), "zz-lonely=2.0=hi");
        assert!(!run("zz-lonely", "hold", false).result.unwrap().changed);
        let Inverse::Steps(steps) = &played.changes[0].inverse else { panic!("no inverse") };
        lab.run(&steps[0].script);
        assert_eq!(lab.known(), "zz-lonely=2.0=ii");
        assert!(run("zz-no-such", "hold", true).result.unwrap_err().message.contains("Failed to find package"));
    }
}
