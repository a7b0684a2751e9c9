//! A host as a module sees it: it can be read, and it can be changed in its turn.
//!
//! [`Host::read`] and [`Host::change`] look like ordinary waiting; behind them a [`Port`] collects
//! the reads of all tasks worked on at once into one batch, and lets changes through in playbook order.
//! The engine is on the other side of the port.

pub mod change;
pub mod failure;
pub mod footprint;
pub mod port;
pub mod query;
pub mod reads;
pub mod recorded;

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

pub use change::{Applied, Change, Difference, Inverse, Step, Withheld};
pub use failure::{Failure, FailureKind};
pub use footprint::{Footprint, Subject};
pub use port::{Port, SlotId};
pub use query::Query;
pub use reads::Read;
pub use recorded::{Observation, RecordedChange, Standing};

use crate::connect::Identity;
use crate::connect::shell::Response;

/// The handle by which one invocation of a module reads and changes one host.
#[derive(Clone)]
pub struct Host {
    port: Arc<Port>,
    slot: SlotId,
    identity: Arc<Identity>,
    check: bool,
}

impl Host {
    /// The host behind `port`, for the invocation `slot`; with `check`, changes are recorded, not made.
    pub fn new(port: Arc<Port>, slot: SlotId, identity: Arc<Identity>, check: bool) -> Host {
        Host { port, slot, identity, check }
    }

    /// The name of the host in the inventory.
    pub fn name(&self) -> &str {
        self.port.name()
    }

    /// Who the host's shell runs as.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// True if this is not the user who logged in.
    pub fn is_another_user(&self) -> bool {
        self.identity.become_as.is_some()
    }

    /// True if changes are recorded, not made.
    pub fn is_check(&self) -> bool {
        self.check
    }

    /// The same host, as another user.
    #[must_use]
    pub fn as_identity(&self, identity: Arc<Identity>) -> Host {
        Host { port: Arc::clone(&self.port), slot: self.slot, identity, check: self.check }
    }

    /// Asks the host something. Reads that wait at the same time travel in one batch, so ask for
    /// everything that does not depend on an earlier answer at once, with `futures_util::join!`.
    pub async fn read<R: Read>(&self, read: R) -> Result<R::Answer, Failure> {
        let query = read.query();
        let response =
            poll_fn(|context| self.port.poll_read(self.slot, &self.identity, &query, context.waker())).await?;
        read.parse(&response)
    }

    /// Notes that what was read so far went by way of a symbolic link, so that it depends on more than its
    /// footprint says: any change makes it be asked again.
    pub fn note_link(&self) {
        self.port.note_alias(self.slot);
    }

    /// Makes a change: waits until every earlier task is done. In check mode it is only recorded.
    pub async fn change(&self, change: Change) -> Result<Applied, Failure> {
        let mut change = Some(change);
        poll_fn(|_| self.port.poll_change(self.slot, &self.identity, &mut change, self.check)).await
    }

    /// Closes the connection, opens a new one and runs shell code on it, all within this time. A host that cannot be
    /// reached is told as a failure and not given up, so it can be tried again. Only after [`Host::turn`].
    pub async fn renew(&self, text: impl Into<String>, limit: Duration) -> Result<Response, Failure> {
        let mut renewal = Some((Arc::clone(&self.identity), text.into(), limit));
        let applied = poll_fn(|_| self.port.poll_renewal(self.slot, &mut renewal)).await?;
        Ok(applied.responses.into_iter().next().unwrap_or_default())
    }

    /// Waits until every earlier task is done and its changes are made, and forgets every answer: for
    /// whatever lets time pass or acts outside of this host's shell.
    pub async fn turn(&self) -> Result<(), Failure> {
        let mut asked = false;
        poll_fn(|_| self.port.poll_turn(self.slot, &mut asked)).await
    }
}
