//! ansible.builtin.ping: proves that the host can be reached and its shell answers.

use crate::host::reads::Script;
use crate::host::{Failure, Footprint};

use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.ping",
    aliases: &[],
    summary: "Proves that the host can be reached and its shell answers",
    args: &[Arg::new("data", Type::Str, "What to return; `crash` makes the module fail").default("pong")],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[("ping", "the value of `data`")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let data = invocation.args.text("data");
    if data == "crash" {
        // as where the module is a program that ends by an exception
        let failure = Failure::new("boom").with("rc", 1);
        return Err(failure.with("module_stdout", "").with("module_stderr", "Exception: boom\n"));
    }
    // the answer must come from the host
    let answer = invocation.host.read(Script { text: "echo pong".to_owned(), footprint: Footprint::nothing() }).await?;
    if answer.text().trim() != "pong" {
        return Err(Failure::new(format!("the host's shell does not answer as it should: {:?}", answer.text())));
    }
    Ok(Outcome::ok().with("ping", data))
}
