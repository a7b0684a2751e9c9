//! Decisions of performance tuning as pure functions over texts the kernel prints: no host, no waiting.

pub mod bracket;
pub mod cpu_mask;
pub mod cpu_set;
pub mod scheduler;
pub mod topology;
pub mod write_error;
