//! Stands empty yet.
