//! What the modules for network devices have in common: the name, and the device that carries this connection.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Failure, Footprint, Host};
use crate::tuning::cpu_set::CpuSet;
use crate::tuning::topology::parse_device_node;

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

/// CPUs of a list argument in the order they were written: `[8, "0-3"]`.
pub(super) fn cpu_list(args: &Args, name: &str) -> Result<Vec<u32>, Failure> {
    let mut cpus = Vec::new();
    for item in args.list(name) {
        cpus.extend(CpuSet::parse(&item)?.iter());
    }
    Ok(cpus)
}

/// A physical device: the interface itself, or one that it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Device {
    pub interface: String,
    /// The memory node that it is attached to, if known.
    pub node: Option<u32>,
    pub interrupts: CpuSet,
}

/// Finds the devices of an interface and the numbers of their interrupts. Bonds, bridges and VLANs are followed down.
pub(super) async fn read_devices(host: &Host, interface: &str) -> Result<Vec<Device>, Failure> {
    let text = format!(
        r#"d={}
[ -e "/sys/class/net/$d" ] || exit 3
while [ -n "$d" ]; do
  n=
  for i in $d; do
    if p=$(readlink -f "/sys/class/net/$i/device") && [ -n "$p" ] && [ -e "$p" ]; then
      case ${{p##*/}} in virtio*) p=${{p%/*}} ;; esac
      printf 'interface=%s\n' "$i"
      if read -r v <"$p/numa_node"; then printf 'node=%s\n' "$v"; fi
      if [ -d "$p/msi_irqs" ]; then
        for q in "$p"/msi_irqs/*; do printf 'irq=%s\n' "${{q##*/}}"; done
      elif read -r v <"$p/irq"; then
        printf 'irq=%s\n' "$v"
      fi
    else
      for l in "/sys/class/net/$i"/lower_*; do [ -e "$l" ] && n="$n ${{l##*/lower_}}"; done
    fi
  done 2>/dev/null
  d=$n
done"#,
        quote(interface)
    );
    let footprint = Footprint::named(format!("interrupts of {interface}"));
    let answer = host.read(Script { text, footprint }).await?;
    if answer.code == Some(3) {
        return Err(Failure::new(format!("the host has no network device `{interface}`")));
    }
    Ok(parse_devices(&answer.text()))
}

fn parse_devices(text: &str) -> Vec<Device> {
    let mut devices: Vec<Device> = Vec::new();
    for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
        match (key, devices.last_mut()) {
            ("interface", _) => {
                devices.push(Device { interface: value.to_owned(), node: None, interrupts: CpuSet::new() });
            }
            ("node", Some(device)) => device.node = parse_device_node(value),
            ("irq", Some(device)) => device.interrupts.extend(value.trim().parse::<u32>()),
            _ => {}
        }
    }
    devices
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_with_their_nodes() {
        let devices = parse_devices("interface=eth0\nnode=1\nirq=40\nirq=41\ninterface=eth1\nnode=-1\nirq=50\n");
        let shown: Vec<_> = devices.iter().map(|d| (d.interface.as_str(), d.node, d.interrupts.to_string())).collect();
        assert_eq!(shown, [("eth0", Some(1), "40-41".to_owned()), ("eth1", None, "50".to_owned())]);
    }
}
