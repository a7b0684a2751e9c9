//! Whether the host is a guest or a host of other systems.

use crate::value::{Map, Value};

use super::{Group, Sections, known, set};

pub const GROUP: Group = Group {
    name: "virtual",
    parts_of: &["virtualization_type", "virtualization_role", "virtualization_tech_guest", "virtualization_tech_host"],
    needs: &["platform"],
    script: SCRIPT,
    parse,
};

const SCRIPT: &str = r#"
section virtual
[ ! -e /.dockerenv ] && [ ! -e /.dockerinit ] || echo docker=yes
[ ! -e /run/.containerenv ] || echo podman=yes
[ ! -d /proc/vz ] || [ -e /proc/lve ] || echo openvz=yes
[ ! -d /proc/bc ] || echo openvz_host=yes
[ ! -d /proc/xen ] || echo xen=yes
[ ! -c /dev/kvm ] || echo kvm_device=yes
line xen_capabilities /proc/xen/capabilities
line systemd_container /run/systemd/container
line hypervisor /sys/hypervisor/type
for trimtab_name in bios_vendor product_name product_family sys_vendor chassis_asset_tag; do
    line $trimtab_name /sys/class/dmi/id/$trimtab_name
done
section cgroup
text /proc/1/cgroup
section modules
while read -r trimtab_name trimtab_line; do
    case $trimtab_name in kvm | vboxdrv | vboxguest | virtio | xen_netfront) echo $trimtab_name ;; esac
done </proc/modules 2>/dev/null
section hypervisor_flag
grep -m 1 -E '^(model name.*QEMU Virtual CPU|vendor_id.*(User Mode Linux|IBM/S390))' /proc/cpuinfo
section init_environment
cat /proc/1/environ 2>/dev/null
section end
"#;

/// The type, the role, and the techniques by which it is a guest and a host.
#[derive(Debug, Default, PartialEq, Eq)]
struct Virtual {
    found: Option<(String, &'static str)>,
    guest: Vec<&'static str>,
    host: Vec<&'static str>,
}

impl Virtual {
    /// Notes what was found; what was found first decides the type.
    fn is(&mut self, kind: &str, role: &'static str) {
        self.found.get_or_insert_with(|| (kind.to_owned(), role));
    }

    fn guest_of(&mut self, kind: &'static str) {
        if !self.guest.contains(&kind) {
            self.guest.push(kind);
        }
        self.is(kind, "guest");
    }

    fn container(&mut self, kind: &'static str) {
        self.guest_of(kind);
        if !self.guest.contains(&"container") {
            self.guest.push("container");
        }
    }

    fn host_of(&mut self, kind: &'static str) {
        self.host.push(kind);
        self.is(kind, "host");
    }
}

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    let found = recognise(sections, known(facts, "architecture"));
    let (kind, role) = found.found.unwrap_or_else(|| ("NA".to_owned(), "NA"));
    let list = |names: &[&'static str]| -> Vec<Value> { names.iter().map(|name| Value::from(*name)).collect() };
    set(facts, "virtualization_type", kind);
    set(facts, "virtualization_role", role);
    set(facts, "virtualization_tech_guest", list(&found.guest));
    set(facts, "virtualization_tech_host", list(&found.host));
}

/// Words of the machine's description and the hypervisor that writes them.
const PRODUCTS: &[(&str, &str, &str)] = &[
    ("product_name", "KVM", "kvm"),
    ("product_name", "KVM Server", "kvm"),
    ("product_name", "Bochs", "kvm"),
    ("product_name", "AHV", "kvm"),
    ("product_name", "RHEV Hypervisor", "RHEV"),
    ("product_name", "VMware Virtual Platform", "VMware"),
    ("product_name", "VMware7,1", "VMware"),
    ("product_name", "VMware20,1", "VMware"),
    ("product_name", "OpenStack Compute", "openstack"),
    ("product_name", "OpenStack Nova", "openstack"),
    ("product_family", "RHV", "kvm"),
    ("bios_vendor", "Xen", "xen"),
    ("bios_vendor", "innotek GmbH", "virtualbox"),
    ("bios_vendor", "Amazon EC2", "kvm"),
    ("bios_vendor", "DigitalOcean", "kvm"),
    ("bios_vendor", "Hetzner", "kvm"),
    ("sys_vendor", "KubeVirt", "kvm"),
    ("sys_vendor", "QEMU", "kvm"),
    ("sys_vendor", "oVirt", "kvm"),
    ("sys_vendor", "Amazon EC2", "kvm"),
    ("sys_vendor", "DigitalOcean", "kvm"),
    ("sys_vendor", "Google", "kvm"),
    ("sys_vendor", "Scaleway", "kvm"),
    ("sys_vendor", "Nutanix", "kvm"),
    ("sys_vendor", "Parallels Software International Inc.", "parallels"),
    ("sys_vendor", "OpenStack Foundation", "openstack"),
    ("chassis_asset_tag", "OpenStack Nova", "openstack"),
];

fn recognise(sections: &Sections<'_>, architecture: &str) -> Virtual {
    let value = |key: &str| sections.value("virtual", key).map(str::trim);
    let mut found = Virtual::default();
    containers(sections, &mut found);
    if value("openvz").is_some() {
        if value("openvz_host").is_some() { found.host_of("openvz") } else { found.guest_of("openvz") }
    }
    if value("xen").is_some() || value("hypervisor") == Some("xen") {
        let controls = value("xen_capabilities").is_some_and(|text| text.contains("control_d"));
        if controls { found.host_of("xen") } else { found.guest_of("xen") }
    }
    for (key, words, kind) in PRODUCTS {
        if value(key) == Some(words) {
            found.guest_of(kind);
        }
    }
    if value("sys_vendor") == Some("Microsoft Corporation") && value("product_name") == Some("Virtual Machine") {
        found.guest_of("VirtualPC");
    }
    match sections.text("hypervisor_flag") {
        text if text.contains("QEMU") => found.guest_of("kvm"),
        text if text.contains("User Mode Linux") => found.guest_of("uml"),
        text if text.contains("S390") || architecture.starts_with("s390") => found.guest_of("systemz"),
        _ => {}
    }
    let loaded = |module: &str| sections.text("modules").lines().any(|line| line == module);
    if loaded("kvm") || value("kvm_device").is_some() {
        found.host_of("kvm");
    }
    if loaded("vboxdrv") {
        found.host_of("virtualbox");
    }
    if loaded("vboxguest") {
        found.guest_of("virtualbox");
    }
    if loaded("virtio") && found.host.is_empty() {
        found.guest_of("kvm");
    }
    found
}

fn containers(sections: &Sections<'_>, found: &mut Virtual) {
    let value = |key: &str| sections.value("virtual", key).map(str::trim);
    let cgroup = sections.text("cgroup");
    let in_docker = cgroup.contains("/docker/") || cgroup.contains("/docker-");
    if in_docker || value("docker").is_some() {
        found.container("docker");
    }
    if cgroup.contains("/lxc/") || cgroup.contains("/lxc.") {
        found.container("lxc");
    }
    if cgroup.contains("/system.slice/containerd.service") {
        found.container("containerd");
    }
    let variable = sections.text("init_environment").split('\0').find_map(|entry| entry.strip_prefix("container="));
    match variable.or(value("systemd_container")) {
        Some("lxc") => found.container("lxc"),
        Some("podman") => found.container("podman"),
        Some("systemd-nspawn") => found.container("systemd-nspawn"),
        Some(_) => found.container("container"),
        None if value("podman").is_some() => found.container("podman"),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recognised(text: &str) -> (String, &'static str) {
        let output = text.replace('#', "\u{1e}").replace("; ", "\n");
        recognise(&Sections::new(&output), "x86_64").found.unwrap_or_else(|| ("NA".into(), "NA"))
    }

    #[test]
    fn guests_and_hosts_are_told_apart() {
        let cases = [
            ("#virtual; sys_vendor=QEMU; product_name=Standard PC", ("kvm", "guest")),
            ("#virtual; product_name=VMware Virtual Platform", ("VMware", "guest")),
            ("#virtual; sys_vendor=Microsoft Corporation; product_name=Virtual Machine", ("VirtualPC", "guest")),
            ("#virtual; sys_vendor=Huawei; product_name=TaiShan 200; #modules; kvm", ("kvm", "host")),
            ("#virtual; sys_vendor=Huawei; product_name=TaiShan 200", ("NA", "NA")),
            ("#virtual; docker=yes; sys_vendor=QEMU", ("docker", "guest")),
            ("#virtual; #cgroup; 1:name=systemd:/docker/0123", ("docker", "guest")),
            ("#virtual; #init_environment; container=systemd-nspawn", ("systemd-nspawn", "guest")),
            ("#virtual; xen=yes; xen_capabilities=control_d", ("xen", "host")),
            ("#virtual; #modules; virtio", ("kvm", "guest")),
        ];
        for (text, (kind, role)) in cases {
            assert_eq!(recognised(text), (kind.to_owned(), role), "{text}");
        }
    }
}
