//! `encrypt_string`: values as YAML with the tag `!vault`.

use std::io::{IsTerminal, Read};

use clap::Args;

use super::{Common, EncryptWith, STANDARD, say_on_terminal, seal, secret, write};
use crate::cli::session::Session;
use crate::error::{Error, Result};
use crate::ui::{self, Style};

/// How far the envelope is indented, as by ansible-vault.
const INDENT: &str = "          ";

#[derive(Debug, Default, Clone, Args)]
pub struct StringArgs {
    /// Values to encrypt; `-` or none: stdin
    #[arg(value_name = "TEXT", allow_hyphen_values = false)]
    texts: Vec<String>,
    /// Ask for the value, and for its name
    #[arg(short = 'p', long)]
    prompt: bool,
    /// Show what is typed
    #[arg(long)]
    show_input: bool,
    /// The name of the variable; once for each value
    #[arg(short = 'n', long, value_name = "NAME")]
    name: Vec<String>,
    /// The name of the variable that stdin holds
    #[arg(long, value_name = "NAME")]
    stdin_name: Option<String>,
    /// Write to this file; `-`: stdout
    #[arg(long, value_name = "FILE")]
    output: Option<String>,
    #[command(flatten)]
    with: EncryptWith,
    #[command(flatten)]
    pub common: Common,
}

/// A value, where it came from, and the name of its variable.
struct Plain {
    text: Vec<u8>,
    origin: &'static str,
    name: Option<String>,
}

/// Encrypts the values and prints them as YAML.
pub fn encrypt_strings(session: &mut Session, args: &StringArgs) -> Result<()> {
    let reads_stdin = args.texts.iter().any(|text| text == STANDARD)
        || args.stdin_name.is_some()
        || (args.texts.is_empty() && !args.prompt);
    if args.prompt && reads_stdin {
        return Err(Error::usage("`--prompt` cannot be used if stdin is read too"));
    }
    let secret = secret(session, &args.common.vault, &args.with)?;
    let plain = values(session, args, reads_stdin)?;
    let mut out = String::new();
    for (index, value) in plain.iter().enumerate() {
        if plain.len() > 1 {
            let number = index + 1;
            let text = match &value.name {
                Some(name) => format!("variable (\"{name}\", the string #{number} from {})", value.origin),
                None => format!("the string #{number} from {}", value.origin),
            };
            session.ui.note(&format!("# The encrypted version of {text}."), Style::Plain);
        }
        let envelope = seal(session, &secret, &value.text)?;
        out.push_str(&yaml(value.name.as_deref(), &String::from_utf8_lossy(&envelope)));
    }
    write(session, args.output.as_deref().unwrap_or(STANDARD), out.as_bytes())?;
    say_on_terminal(session, std::io::stdout().is_terminal(), "Encryption successful");
    Ok(())
}

fn yaml(name: Option<&str>, envelope: &str) -> String {
    let mut text = name.map(|name| format!("{name}: ")).unwrap_or_default();
    text.push_str("!vault |\n");
    for line in envelope.lines() {
        text.push_str(&format!("{INDENT}{line}\n"));
    }
    text
}

/// What is to be encrypted, in Ansible's order: asked for, from stdin, from the command line.
fn values(session: &mut Session, args: &StringArgs, reads_stdin: bool) -> Result<Vec<Plain>> {
    let empty = |origin: &str| Error::usage(format!("the text from {origin} is empty, nothing is encrypted"));
    let mut all = Vec::new();
    if args.prompt {
        let name = ui::ask("Variable name (enter for no name): ", false)?;
        let question = if args.show_input { "String to encrypt: " } else { "String to encrypt (hidden): " };
        let text = ui::ask(question, !args.show_input)?.into_bytes();
        if text.is_empty() {
            return Err(empty("the prompt"));
        }
        all.push(Plain { text, origin: "the interactive prompt", name: Some(name).filter(|name| !name.is_empty()) });
    }
    if reads_stdin {
        say_on_terminal(
            session,
            std::io::stdin().is_terminal(),
            "Reading plaintext input from stdin. (ctrl-d to end input, twice if your content does not already have a newline)",
        );
        let mut text = Vec::new();
        std::io::stdin()
            .read_to_end(&mut text)
            .map_err(|error| Error::system(format!("cannot read stdin: {error}")))?;
        if text.is_empty() {
            return Err(empty("stdin"));
        }
        all.push(Plain { text, origin: "stdin", name: args.stdin_name.clone() });
    }
    let texts: Vec<&String> = args.texts.iter().filter(|text| *text != STANDARD).collect();
    if let Some(last) = args.name.last().filter(|_| texts.len() > args.name.len()) {
        session.ui.warning(&format!("there are more values than names: the last that has one is `{last}`"));
    }
    for (index, text) in texts.into_iter().enumerate() {
        if text.is_empty() {
            return Err(empty("the command line"));
        }
        let name = args.name.get(index).cloned();
        all.push(Plain { text: text.clone().into_bytes(), origin: "the command line args", name });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_yaml_with_a_tag() {
        let envelope = "$ANSIBLE_VAULT;1.1;AES256\n6162\n";
        assert_eq!(
            yaml(Some("token"), envelope),
            "token: !vault |\n          $ANSIBLE_VAULT;1.1;AES256\n          6162\n"
        );
        assert!(yaml(None, envelope).starts_with("!vault |\n"));
    }
}
