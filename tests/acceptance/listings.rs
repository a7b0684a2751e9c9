//! What can be looked at without running anything.
