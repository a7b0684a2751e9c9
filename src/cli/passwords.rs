//! Passwords of the login and of become: asked for, or read from files. They never stand on a command line.

use std::path::Path;

use super::args::ConnectionArgs;
use super::settings::{Settings, Surroundings};
use crate::connect::Secret;
use crate::engine::options::Options;
use crate::error::{Error, Result};
use crate::ui;

/// Puts the passwords into the options.
pub fn fill(
    options: &mut Options,
    reach: &ConnectionArgs,
    settings: &Settings,
    surroundings: &Surroundings,
) -> Result<()> {
    let file = |given: &Option<String>, key: &str| match given {
        Some(file) => Some(surroundings.here.join(file)),
        None => settings.path(key, surroundings),
    };
    options.connection.password = match file(&reach.connection_password_file, "connection_password_file") {
        Some(path) => Some(read(&path, &surroundings.here)?),
        None if reach.ask_pass || settings.flag("ask_pass")? => Some(Secret::new(ui::ask("SSH password: ", true)?)),
        None => None,
    };
    options.privilege.password = match file(&reach.become_password_file, "become_password_file") {
        Some(path) => Some(read(&path, &surroundings.here)?),
        None if reach.ask_become_pass || settings.flag("become_ask_pass")? => {
            let login = options.connection.password.clone();
            let question = match login {
                Some(_) => "BECOME password[defaults to SSH password]: ",
                None => "BECOME password: ",
            };
            let answer = ui::ask(question, true)?;
            Some(login.filter(|_| answer.is_empty()).unwrap_or_else(|| Secret::new(answer)))
        }
        None => None,
    };
    Ok(())
}

/// The first line of a file.
fn read(path: &Path, here: &Path) -> Result<Secret> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let shown = path.strip_prefix(here).unwrap_or(path);
        Error::input(format!("cannot read the password file `{}`: {error}", shown.display()))
    })?;
    Ok(Secret::new(text.lines().next().unwrap_or_default()))
}
