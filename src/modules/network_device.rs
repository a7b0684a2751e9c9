//! What the modules for network devices have in common: the name, and the device that carries this connection.

use crate::host::reads::Script;
use crate::host::{Failure, Footprint, Host};

use super::{Arg, Args, Type};

pub(super) const INTERFACE: Arg =
    Arg::new("interface", Type::Str, "the network device, as `eth0`").required().aliases(&["device", "name"]);

/// The name of the device; refused if no device can have it.
pub(super) fn interface_of(args: &Args) -> Result<String, Failure> {
    let name = args.text("interface");
    // Up to 15 bytes without blanks, slashes and colons (kernel: dev_valid_name).
    let valid = (1..=15).contains(&name.len())
        && !matches!(name, "." | "..")
        && !name.contains(|c: char| c.is_ascii_whitespace() || c.is_control() || c == '/' || c == ':')
        && !name.starts_with('-');
    if !valid {
        return Err(Failure::new(format!("`{name}` cannot be the name of a network device")));
    }
    Ok(name.to_owned())
}

/// Refuses a name that is no word of ethtool's.
pub(super) fn name_check(name: &str) -> Result<(), Failure> {
    if name.is_empty()
        || name.starts_with('-')
        || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    {
        return Err(Failure::new(format!("`{name}` cannot be the name of a feature")));
    }
    Ok(())
}

/// The devices that carry this SSH connection: the one with the address it came to, and those it is made of. Empty for a
/// local connection.
pub(super) async fn ssh_interfaces(host: &Host) -> Result<Vec<String>, Failure> {
    // After sudo the variable is gone, but the login shell above still has it.
    let text = r#"p=$$ c=$SSH_CONNECTION
while [ -z "$c" ] && [ "${p:-0}" -gt 1 ]; do
  c=$(tr '\000' '\n' <"/proc/$p/environ" 2>/dev/null | sed -n 's/^SSH_CONNECTION=//p')
  p=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$p/status" 2>/dev/null)
done
set -- $c
[ -n "$3" ] || exit 0
d=$(ip -o addr show 2>/dev/null | awk -v a="$3" '{ split($4, x, "/"); if (x[1] == a) { sub(/@.*/, "", $2); print $2; exit } }')
while [ -n "$d" ]; do
  n=
  for i in $d; do
    echo "$i"
    for l in "/sys/class/net/$i"/lower_*; do [ -e "$l" ] && n="$n ${l##*/lower_}"; done
  done
  d=$n
done"#;
    let answer = host.read(Script { text: text.to_owned(), footprint: Footprint::named("connection") }).await?;
    Ok(answer.text().lines().map(str::to_owned).collect())
}

/// A network namespace with a device of four queues, for tests.
#[cfg(test)]
pub(super) mod testing {
    use std::process::Command;
    use std::sync::atomic::{AtomicU32, Ordering};

    use crate::host::{Change, Inverse};

    /// Removed when dropped.
    pub struct Namespace {
        name: String,
    }

    /// Makes the namespace with a pair `veth0` and `veth1`; `None` where that is not allowed or ethtool is missing.
    pub fn set_up() -> Option<Namespace> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("trimtab-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let run =
            |line: &str| Command::new("sh").args(["-c", line]).output().is_ok_and(|output| output.status.success());
        if !run(&format!("command -v ethtool >/dev/null && ip netns add {name}")) {
            return None;
        }
        let namespace = Namespace { name };
        let queues = "numrxqueues 4 numtxqueues 4";
        let made = run(&format!(
            "ip -n {0} link add veth0 {queues} type veth peer name veth1 {queues} && ip -n {0} link set veth0 up && ip -n {0} link set veth1 up",
            namespace.name
        ));
        made.then_some(namespace)
    }

    impl Namespace {
        /// A shell inside of it.
        pub fn shell(&self) -> &'static str {
            Box::leak(format!("ip netns exec {} sh", self.name).into_boxed_str())
        }

        /// Runs a line inside of it and returns its output without the last newline.
        pub fn run(&self, line: &str) -> String {
            let output = Command::new("ip").args(["netns", "exec", &self.name, "sh", "-c", line]).output().unwrap();
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
        }

        /// Takes changes back inside of it.
        pub fn undo(&self, changes: &[Change]) {
            for change in changes.iter().rev() {
                let Inverse::Steps(steps) = &change.inverse else { panic!("{} has no inverse", change.what) };
                for step in steps {
                    self.run(&step.script);
                }
            }
        }
    }

    impl Drop for Namespace {
        fn drop(&mut self) {
            let _ = Command::new("ip").args(["netns", "del", &self.name]).output();
        }
    }
}
