//! Under the names of Ansible's tools the same binary takes their command lines.

use std::ffi::{OsStr, OsString};

use clap::{CommandFactory, FromArgMatches, Parser};

use super::{Command, doc, inventory, play, run, vault};

type Parsed = Result<Command, clap::Error>;

/// A tool of Ansible: its name, and how its command line is read.
struct Tool {
    name: &'static str,
    parse: fn(&[OsString]) -> Parsed,
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "ansible-playbook",
        parse: |arguments| read::<Playbook>(arguments).map(|tool| Command::Play(tool.args)),
    },
    Tool { name: "ansible", parse: |arguments| read::<AdHoc>(arguments).map(|tool| Command::Run(tool.args)) },
    Tool {
        name: "ansible-inventory",
        parse: |arguments| read::<Inventory>(arguments).map(|tool| Command::Inventory(tool.args)),
    },
    Tool { name: "ansible-vault", parse: |arguments| read::<Vault>(arguments).map(|tool| Command::Vault(tool.args)) },
    Tool { name: "ansible-doc", parse: |arguments| read::<Doc>(arguments).map(|tool| Command::Doc(tool.args)) },
];

/// Runs Ansible playbooks
#[derive(Debug, Parser)]
#[command(name = "ansible-playbook", version, args_override_self = true)]
struct Playbook {
    #[command(flatten)]
    args: play::PlayArgs,
}

/// Runs one module on hosts
#[derive(Debug, Parser)]
#[command(name = "ansible", version, args_override_self = true)]
struct AdHoc {
    #[command(flatten)]
    args: run::AdHocArgs,
}

/// Shows an inventory
#[derive(Debug, Parser)]
#[command(name = "ansible-inventory", version, args_override_self = true)]
struct Inventory {
    #[command(flatten)]
    args: inventory::ShowArgs,
}

/// Encrypts and decrypts files and values
#[derive(Debug, Parser)]
#[command(name = "ansible-vault", version, args_override_self = true)]
struct Vault {
    #[command(flatten)]
    args: vault::VaultCommand,
}

/// Shows modules, filters and keywords
#[derive(Debug, Parser)]
#[command(name = "ansible-doc", version, args_override_self = true)]
struct Doc {
    #[command(flatten)]
    args: doc::DocArgs,
}

fn read<T: CommandFactory + FromArgMatches>(arguments: &[OsString]) -> Result<T, clap::Error> {
    T::from_arg_matches(&T::command().try_get_matches_from(arguments)?)
}

/// The command, if the program was called by the name of a tool of Ansible.
pub fn command(name: &OsStr, arguments: &[OsString]) -> Option<Parsed> {
    TOOLS.iter().find(|tool| name == tool.name).map(|tool| (tool.parse)(arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Option<Parsed> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        command(&words[0].clone(), &words)
    }

    #[test]
    fn each_name_takes_its_own_command_line() {
        assert!(
            matches!(parse("ansible-playbook -i inv site.yml -v"), Some(Ok(Command::Play(args))) if args.playbooks == ["site.yml"])
        );
        assert!(matches!(parse("ansible web -m ping -i inv"), Some(Ok(Command::Run(args))) if args.pattern == "web"));
        assert!(matches!(parse("ansible-inventory --graph web"), Some(Ok(Command::Inventory(args))) if args.graph));
        assert!(matches!(parse("ansible-doc -l"), Some(Ok(Command::Doc(args))) if args.list));
        assert!(matches!(parse("ansible-vault view --vault-id a@b f"), Some(Ok(Command::Vault(_)))));
        assert!(parse("trimtab play site.yml").is_none());
        assert!(matches!(parse("ansible-playbook"), Some(Err(_))));
    }

    #[test]
    fn the_command_lines_are_consistent() {
        Playbook::command().debug_assert();
        AdHoc::command().debug_assert();
        Inventory::command().debug_assert();
        Doc::command().debug_assert();
        Vault::command().debug_assert();
    }
}
