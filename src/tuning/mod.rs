//! Decisions of performance tuning as pure functions over texts the kernel prints: no host, no waiting.

pub mod cpu_set;
