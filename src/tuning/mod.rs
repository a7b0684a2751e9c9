//! Decisions of performance tuning as pure functions over texts the kernel prints: no host, no waiting.

pub mod bracket;
pub mod cgroup;
pub mod channels;
pub mod cpu_mask;
pub mod cpu_set;
pub mod device;
pub mod dirty_pair;
pub mod firewall;
pub mod irq;
pub mod placement;
pub mod scheduler;
pub mod steering;
pub mod sysctl_files;
pub mod sysctl_value;
pub mod topology;
pub mod udev;
pub mod write_error;
