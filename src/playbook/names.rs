//! Names of imports that are templates: they are rendered while the playbook is loaded.

use super::load::{Around, Loader};
use super::{Settings, Written};
use crate::error::{Error, Result};

impl Loader<'_> {
    /// The text of a name that must be known while loading. It may use extra variables, `vars` of the import and of
    /// blocks around it, variables of the role and of the play.
    pub fn static_name(&self, name: &Written, _own: &Settings, _around: &Around) -> Result<String> {
        if name.value.has_templates() {
            return Err(Error::input("the name of an import cannot be a template yet").at(&name.place));
        }
        Ok(name.value.to_text().into_owned())
    }
}
