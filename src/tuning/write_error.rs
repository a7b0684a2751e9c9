//! What it means when the kernel refuses a tuning value, from the words the shell printed.

/// The errors that writes to /proc, /sys and cgroup files give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errno {
    InvalidArgument,
    OutOfRange,
    Overflow,
    InputOutput,
    NotPermitted,
    NoSpace,
    AccessDenied,
    Busy,
    ReadOnly,
    NotFound,
    NotSupported,
}

/// Each error with its symbol and the text of glibc and of musl/busybox (errno(3), strerror(3)).
const TEXTS: &[(Errno, &str, &[&str])] = &[
    (Errno::InvalidArgument, "EINVAL", &["invalid argument"]),
    (Errno::OutOfRange, "ERANGE", &["numerical result out of range", "result not representable"]),
    (Errno::Overflow, "EOVERFLOW", &["value too large for defined data type", "value too large for data type"]),
    (Errno::InputOutput, "EIO", &["input/output error", "i/o error"]),
    (Errno::NotPermitted, "EPERM", &["operation not permitted"]),
    (Errno::NoSpace, "ENOSPC", &["no space left on device"]),
    (Errno::AccessDenied, "EACCES", &["permission denied"]),
    (Errno::Busy, "EBUSY", &["device or resource busy", "resource busy"]),
    (Errno::ReadOnly, "EROFS", &["read-only file system"]),
    // A shell that cannot create a file below /proc or /sys words it so (dash).
    (Errno::NotFound, "ENOENT", &["no such file or directory", "directory nonexistent", "nonexistent directory"]),
    (Errno::NotSupported, "EOPNOTSUPP", &["operation not supported", "not supported"]),
];

impl Errno {
    /// Finds the error in what a shell or a tool printed.
    pub fn find(text: &str) -> Option<Errno> {
        let text = text.to_lowercase();
        TEXTS.iter().find(|(_, _, texts)| texts.iter().any(|words| text.contains(words))).map(|(errno, _, _)| *errno)
    }

    /// The name in errno(3).
    pub fn symbol(self) -> &'static str {
        TEXTS.iter().find(|(errno, _, _)| *errno == self).map_or("", |(_, symbol, _)| symbol)
    }
}

/// The file that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interface {
    Sysctl,
    Scheduler,
    RequestCount,
    /// `/proc/irq/N/smp_affinity(_list)`.
    InterruptAffinity,
    /// `rps_cpus`, `xps_cpus`, `rps_flow_cnt`.
    PacketSteering,
    /// `cpuset.cpus`, `cpuset.mems`, and moving a task.
    Cpuset,
    /// `ethtool -L`, `-G`.
    Channels,
    Other,
}

/// What is to be made of a refused write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The wanted value is wrong.
    Failed,
    /// This kernel, device or host does not have it: not a failure.
    Unsupported,
    /// It may succeed a little later.
    Retry,
    /// It must not be done here (inside a container, without the rights).
    Refused,
}

/// A refused write, explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteError {
    pub errno: Option<Errno>,
    pub outcome: Outcome,
    /// Why, and what to do; lower case, no final stop.
    pub reason: String,
}

/// Explains the text of a failed write.
pub fn explain(text: &str, interface: Interface, as_root: bool) -> WriteError {
    let errno = Errno::find(text);
    let (outcome, reason) = match errno {
        None => (Outcome::Failed, text.trim().to_owned()),
        Some(errno) => {
            let (outcome, reason) = meaning(errno, interface, as_root);
            (outcome, format!("{reason} ({})", errno.symbol()))
        }
    };
    WriteError { errno, outcome, reason }
}

fn meaning(errno: Errno, interface: Interface, as_root: bool) -> (Outcome, &'static str) {
    use Interface as At;
    use Outcome::{Failed, Refused, Retry, Unsupported};
    match (errno, interface) {
        (Errno::InvalidArgument, At::Scheduler) => (Failed, "the device does not offer this scheduler"),
        (Errno::InvalidArgument, At::RequestCount) => {
            (Failed, "the number of requests is above what the scheduler or the hardware queue allows")
        }
        (Errno::InvalidArgument, At::Sysctl) => (Failed, "the value is not a number or outside of the key's range"),
        (Errno::InvalidArgument, At::InterruptAffinity) => (Failed, "the set names no CPU that is online"),
        (Errno::InvalidArgument, At::PacketSteering) => (Failed, "the mask is malformed or names only isolated CPUs"),
        (Errno::InvalidArgument, At::Cpuset) => {
            (Failed, "the list is malformed, names an absent node, or overlaps an exclusive set")
        }
        (Errno::InvalidArgument, At::Channels) => {
            (Failed, "the number is above the device's maximum, zero, or below a set receive table")
        }
        (Errno::InvalidArgument, At::Other) => (Failed, "the kernel does not take this value"),
        (Errno::OutOfRange, At::Sysctl) => (Failed, "the value is outside of the key's range"),
        (Errno::OutOfRange, _) => (Unsupported, "the set names a CPU beyond those of this host"),
        (Errno::Overflow, _) => (Failed, "the mask is wider than this host's CPUs"),
        // A managed or per-CPU interrupt: EIO on older kernels, EPERM on newer ones.
        (Errno::InputOutput, At::InterruptAffinity) => {
            (Unsupported, "the kernel manages this interrupt and lets nobody move it")
        }
        (Errno::NotPermitted, At::InterruptAffinity) if as_root => {
            (Unsupported, "the kernel manages this interrupt and lets nobody move it")
        }
        (Errno::InputOutput, _) => (Failed, "the device gave an error"),
        (Errno::NotPermitted, At::PacketSteering) => (Refused, "network administration rights are missing"),
        (Errno::NotPermitted, _) => (Refused, "the user may not write this; become root"),
        (Errno::NoSpace, At::InterruptAffinity) => {
            (Failed, "the CPU has no interrupt vector left; spread the interrupts over more CPUs")
        }
        (Errno::NoSpace, At::Cpuset) => {
            (Failed, "the set has no CPU or no memory node yet, or has tasks and cannot be emptied")
        }
        (Errno::NoSpace, _) => (Failed, "no space is left"),
        (Errno::AccessDenied, At::Cpuset) => {
            (Failed, "the parent does not have all of these CPUs or nodes; widen the parent first")
        }
        (Errno::AccessDenied, At::Sysctl) => {
            (Refused, "the key cannot be written here: not root, or inside a network namespace")
        }
        (Errno::AccessDenied, _) => (Refused, "the user may not write this; become root"),
        (Errno::Busy, At::Cpuset) => (Retry, "a child still uses what would be taken away"),
        (Errno::Busy, _) => (Retry, "the device or interrupt is being reconfigured"),
        (Errno::ReadOnly, _) => (Refused, "the file system is read-only: this is a container; apply it to its host"),
        (Errno::NotFound, _) => (Unsupported, "this kernel or device does not have it"),
        (Errno::NotSupported, _) => (Unsupported, "the device or its driver does not support it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_shells_are_recognised() {
        let cases = [
            ("sh: echo: I/O error", Some(Errno::InputOutput)),
            ("bash: echo: write error: Invalid argument", Some(Errno::InvalidArgument)),
            ("sh: write error: Value too large for defined data type", Some(Errno::Overflow)),
            ("sh: 1: cannot create /proc/sys/kernel/sched_x: Directory nonexistent", Some(Errno::NotFound)),
            ("echo: write error: Numerical result out of range", Some(Errno::OutOfRange)),
            ("echo: write error: Device or resource busy", Some(Errno::Busy)),
            ("netlink error: Operation not supported", Some(Errno::NotSupported)),
            ("something else", None),
        ];
        for (text, errno) in cases {
            assert_eq!(Errno::find(text), errno, "{text}");
        }
    }

    #[test]
    fn the_same_error_means_different_things() {
        let cases = [
            ("Input/output error", Interface::InterruptAffinity, true, Outcome::Unsupported),
            ("Operation not permitted", Interface::InterruptAffinity, true, Outcome::Unsupported),
            ("Operation not permitted", Interface::InterruptAffinity, false, Outcome::Refused),
            ("Operation not permitted", Interface::PacketSteering, true, Outcome::Refused),
            ("Invalid argument", Interface::Scheduler, true, Outcome::Failed),
            ("Numerical result out of range", Interface::Cpuset, true, Outcome::Unsupported),
            ("Numerical result out of range", Interface::Sysctl, true, Outcome::Failed),
            ("No space left on device", Interface::Cpuset, true, Outcome::Failed),
            ("Permission denied", Interface::Cpuset, true, Outcome::Failed),
            ("Read-only file system", Interface::Sysctl, true, Outcome::Refused),
            ("Device or resource busy", Interface::Channels, true, Outcome::Retry),
            ("No such file or directory", Interface::Sysctl, true, Outcome::Unsupported),
        ];
        for (text, interface, as_root, outcome) in cases {
            assert_eq!(explain(text, interface, as_root).outcome, outcome, "{text} at {interface:?}");
        }
        assert!(explain("Invalid argument", Interface::Scheduler, true).reason.ends_with("scheduler (EINVAL)"));
        assert_eq!(explain("odd words\n", Interface::Other, true).reason, "odd words");
    }
}
