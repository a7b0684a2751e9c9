//! The passwords of Ansible Vault that the command line and the settings name.

use super::args::VaultArgs;
use super::session::Session;
use crate::error::Result;
use crate::ui;
use crate::vault::secrets::{self, Identity, Use};
use crate::vault::{Keyring, Secret};

impl Session {
    /// The passwords of a run: those of the settings first. None is needed.
    pub fn keyring(&mut self, args: &VaultArgs) -> Result<Keyring> {
        let identities =
            self.vault_identities(&args.vault_id, &args.vault_password_file, args.ask_vault_password, true)?;
        let secrets = self.load_secrets(&identities, Use::Decrypt)?;
        self.keyring_of(secrets)
    }

    pub fn keyring_of(&self, secrets: Vec<Secret>) -> Result<Keyring> {
        Ok(Keyring::new(secrets, self.settings.flag("vault_id_match")?))
    }

    /// All vault ids, in the order in which they count: those of `vault_identity_list` (if they are wanted), the given
    /// ids, the given files, the file of the settings, and the question.
    pub fn vault_identities(
        &self,
        ids: &[String],
        files: &[String],
        asks: bool,
        with_list: bool,
    ) -> Result<Vec<Identity>> {
        let listed = self.settings.text("vault_identity_list").filter(|_| with_list).unwrap_or_default();
        let listed = listed.split(',').map(str::trim).filter(|id| !id.is_empty());
        let mut identities =
            listed.chain(ids.iter().map(String::as_str)).map(Identity::parse).collect::<Result<Vec<_>>>()?;
        for file in files {
            identities.push(Identity { label: None, ..Identity::parse(&format!("@{file}"))? });
        }
        identities.extend(self.settings.path("vault_password_file", &self.surroundings).map(Identity::file));
        if asks || self.settings.flag("ask_vault_pass")? {
            identities.push(Identity::ask());
        }
        Ok(identities)
    }

    /// Reads the files and asks the questions.
    pub fn load_secrets(&mut self, identities: &[Identity], purpose: Use) -> Result<Vec<Secret>> {
        let default_id = self.settings.text("vault_identity").unwrap_or_default();
        let (secrets, warnings) =
            secrets::load(identities, &default_id, purpose, &mut |question| ui::ask(question, true))?;
        for warning in warnings {
            self.ui.warning(&warning);
        }
        Ok(secrets)
    }
}
