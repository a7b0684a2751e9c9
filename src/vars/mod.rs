//! Variables: which of the many values of a name counts for a task on a host.

pub mod fleet;
pub mod precedence;
pub mod reserved;
pub mod runtime;
pub mod scope;
pub mod special;

pub use fleet::{Fleet, Stamp};
pub use precedence::Level;
pub use runtime::{Delta, Pending, Runtime};
pub use scope::{HostView, PlayVars, RunVars, TaskScope};
