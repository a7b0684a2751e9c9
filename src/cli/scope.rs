//! The variables that are known before any host is looked at.

use std::sync::Arc;

use crate::template::{Context, Scope};
use crate::value::{Interruption, Map, Value};

/// Extra variables, and below them those of a play.
pub struct ExtraScope {
    pub extra: Arc<Map>,
    pub play: Arc<Map>,
}

impl ExtraScope {
    pub fn context(self) -> Context {
        Context::new(Arc::new(self), Arc::default(), Default::default())
    }
}

impl Scope for ExtraScope {
    fn get(&self, name: &str) -> Result<Option<Value>, Interruption> {
        Ok(self.extra.get(name).or_else(|| self.play.get(name)).cloned())
    }

    fn names(&self) -> Vec<String> {
        self.extra.keys().chain(self.play.keys()).map(|key| key.to_text().into_owned()).collect()
    }
}
