//! The command line: one file a subcommand. `compat` answers to the names of Ansible's own tools.

mod args;
mod check;
mod check_report;
mod compat;
mod doc;
mod doc_markdown;
mod extra_vars;
mod history;
mod inventory;
mod journal;
mod keyring;
mod listing;
mod magic;
mod passwords;
mod plan;
mod play;
mod prompt;
mod replay;
mod run;
mod scope;
mod session;
pub mod settings;
mod undo;
mod vault;
mod version;

use std::ffi::OsString;
use std::path::Path;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::error::Result;
use crate::ui::{Colour, Ui};
use session::Session;
use settings::{Settings, Surroundings};

/// The exit code of a command line that cannot be understood, as of ansible-playbook.
const BAD_COMMAND_LINE: u8 = 2;

/// Leaves what a value holds to the end of the process, which is near: to free a fleet or a playbook piece by piece takes
/// a good part of the time that showing it does.
fn leave_memory<T>(value: T) {
    std::mem::forget(value);
}

/// Brings fleets of servers to a declared state over plain SSH, from Ansible playbooks
#[derive(Debug, Parser)]
#[command(name = "trimtab", version, args_override_self = true, max_term_width = 100)]
struct Trimtab {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs playbooks
    Play(play::PlayArgs),
    /// Says all that is wrong with playbooks and roles, and what they use that is missing here; needs no host
    Check(check::CheckArgs),
    /// Runs one module on hosts
    Run(run::AdHocArgs),
    /// Writes to a file what playbooks would change
    Plan(plan::PlanArgs),
    /// Makes the changes of a plan
    Apply(plan::ApplyArgs),
    /// Lists what runs changed, from the journal
    History(history::HistoryArgs),
    /// Shows a run of the journal, or a plan, with its changes
    Show(history::ShowArgs),
    /// Takes back what a run changed
    Undo(undo::UndoArgs),
    /// Shows an inventory
    Inventory(inventory::ShowArgs),
    /// Encrypts and decrypts files and values as ansible-vault does
    Vault(vault::VaultCommand),
    /// Shows modules, filters, keywords and settings
    Doc(doc::DocArgs),
    /// Says which trimtab this is
    Version,
}

/// Does what the command line asks; returns the exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    log();
    let surroundings = Surroundings::of_process();
    let settings = Settings::load(&surroundings);
    let mut ui = Ui::terminal(settings.as_ref().map_or(Colour::Auto, colour));
    let name = arguments.first().and_then(|name| Path::new(name).file_name()).unwrap_or_default();
    let as_ansible = compat::command(name, &arguments);
    if as_ansible.is_some() {
        ui.speak_as_ansible();
    }
    let command = match as_ansible.unwrap_or_else(|| {
        let matches = Trimtab::command().try_get_matches_from(&arguments)?;
        Ok(Trimtab::from_arg_matches(&matches)?.command)
    }) {
        Ok(command) => command,
        Err(error) => return refuse(&error, &mut ui),
    };
    let ended = match (command, settings) {
        // wrong settings are a finding among others
        (Command::Check(args), Err(error)) => check::run_despite(error, args, &mut ui, surroundings),
        (command, settings) => settings.and_then(|settings| perform(command, &mut ui, settings, surroundings)),
    };
    let code = match ended {
        Ok(code) => code,
        Err(error) => {
            ui.error(&error);
            error.kind().exit_code()
        }
    };
    ui.flush();
    code
}

fn perform(command: Command, ui: &mut Ui, settings: Settings, surroundings: Surroundings) -> Result<u8> {
    let taken = std::mem::replace(ui, Ui::memory());
    let verbose = match &command {
        Command::Play(args) => args.verbosity.verbose,
        // it shows of settings what there is to show by itself
        Command::Check(_) => 0,
        Command::Run(args) => args.verbosity.verbose,
        Command::Plan(args) => args.play.verbosity.verbose,
        Command::Apply(args) => args.verbosity.verbose,
        Command::History(args) => args.verbosity.verbose,
        Command::Show(args) => args.verbosity.verbose,
        Command::Undo(args) => args.verbosity.verbose,
        Command::Inventory(args) => args.verbosity.verbose,
        Command::Vault(args) => args.verbose(),
        Command::Doc(args) => args.verbosity.verbose,
        Command::Version => 0,
    };
    let mut session = Session::begin(taken, settings, surroundings, verbose)?;
    let ended = match command {
        Command::Play(args) => play::play(&mut session, args),
        Command::Check(args) => check::check(&mut session, args, Vec::new()),
        Command::Run(args) => run::run(&mut session, args),
        Command::Plan(args) => plan::plan(&mut session, args),
        Command::Apply(args) => plan::apply(&mut session, args),
        Command::History(args) => history::history(&mut session, &args),
        Command::Show(args) => history::show(&mut session, &args),
        Command::Undo(args) => undo::undo(&mut session, args),
        Command::Inventory(args) => inventory::show(&mut session, args),
        Command::Vault(args) => vault::run(&mut session, args),
        Command::Doc(args) => doc::show(&mut session, args),
        Command::Version => {
            version::show(&mut session);
            Ok(0)
        }
    };
    *ui = session.ui;
    ended
}

/// Help and versions go to stdout, mistakes to stderr.
fn refuse(error: &clap::Error, ui: &mut Ui) -> u8 {
    use clap::error::ErrorKind;
    let text = error.render();
    let text = if ui.has_colour() { text.ansi().to_string() } else { text.to_string() };
    let is_answer = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if is_answer {
        ui.raw(&text);
    } else {
        ui.note(text.trim_end(), crate::ui::Style::Plain);
    }
    ui.flush();
    if is_answer { 0 } else { BAD_COMMAND_LINE }
}

fn colour(settings: &Settings) -> Colour {
    match (settings.flag("nocolor"), settings.flag("force_color")) {
        (Ok(true), _) => Colour::Never,
        (_, Ok(true)) => Colour::Always,
        _ => Colour::Auto,
    }
}

/// Diagnostics for developers, to stderr: `TRIMTAB_LOG=debug`.
fn log() {
    let Ok(filter) = std::env::var("TRIMTAB_LOG") else { return };
    let filter = tracing_subscriber::EnvFilter::new(filter);
    // there is no other subscriber in this process
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Trimtab::command().debug_assert();
    }

    #[test]
    fn ansible_playbooks_flags_are_taken_literally() {
        let line = "trimtab play -i a -i b, -l web -e x=1 -e @f -t t1,t2 --tags t3 --skip-tags s -CD -vvv -f 7 -u me -b \
                    --become-user you --become-method su -k -K --key-file key -c local -T 3 --ssh-common-args -J\\ x \
                    --start-at-task here --flush-cache --force-handlers --output json one.yml two.yml";
        let words = line.split_whitespace().map(|word| word.replace('\\', " "));
        let parsed = Trimtab::try_parse_from(words.map(|word| word.trim().to_owned()).filter(|word| word != "x"));
        let Ok(Trimtab { command: Command::Play(args) }) = parsed else { panic!("{parsed:?}") };
        assert_eq!(args.hosts.inventory, ["a", "b,"]);
        assert_eq!(args.hosts.limit.as_deref(), Some("web"));
        assert_eq!(args.variables.extra_vars, ["x=1", "@f"]);
        assert_eq!((args.tags, args.skip_tags), (vec!["t1,t2".to_owned(), "t3".to_owned()], vec!["s".to_owned()]));
        assert_eq!((args.run.check, args.run.diff, args.verbosity.verbose, args.run.forks), (true, true, 3, Some(7)));
        assert_eq!(args.reach.private_key.as_deref(), Some("key"));
        assert_eq!(args.reach.timeout, Some(3));
        assert!(args.reach.ask_pass && args.reach.ask_become_pass && args.reach.r#become && args.force_handlers);
        assert_eq!(args.run.output.as_deref(), Some("json"));
        assert_eq!(args.playbooks, ["one.yml", "two.yml"]);
    }

    #[test]
    fn the_last_of_a_repeated_option_counts() {
        let parsed = Trimtab::try_parse_from(["trimtab", "play", "-l", "a", "-l", "b", "-C", "-C", "p.yml"]);
        let Ok(Trimtab { command: Command::Play(args) }) = parsed else { panic!("{parsed:?}") };
        assert_eq!(args.hosts.limit.as_deref(), Some("b"));
    }

    #[test]
    fn a_misspelt_flag_is_refused() {
        let error = Trimtab::try_parse_from(["trimtab", "play", "--chekc", "p.yml"]).expect_err("misspelt");
        assert!(error.to_string().contains("--check"), "{error}");
    }
}
