//! `trimtab version`.

use super::magic::COMPATIBLE_VERSION;
use super::session::Session;

/// Prints the version, the system, and the language that is spoken.
pub fn show(session: &mut Session) {
    let (major, minor, _) = COMPATIBLE_VERSION;
    let file = session.settings.file.as_ref().map_or("none".to_owned(), |path| path.display().to_string());
    session.ui.line(&format!("trimtab {}", env!("CARGO_PKG_VERSION")));
    session.ui.line(&format!("  system: {} {}", std::env::consts::OS, std::env::consts::ARCH));
    session.ui.line(&format!("  playbooks: as of Ansible {major}.{minor}"));
    session.ui.line(&format!("  config file: {file}"));
}
