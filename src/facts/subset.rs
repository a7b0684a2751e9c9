//! Which groups of facts `gather_subset` asks for.

use crate::error::nearest;

use super::{GROUPS, Group};

/// Names of Ansible's that stand for facts which trimtab does not have: accepted, nothing is read.
const WITHOUT_FACTS: &[&str] = &["facter", "ohai", "caps", "system_capabilities", "system_capabilities_enforced"];

/// A name that no group has.
#[derive(Debug, PartialEq, Eq)]
pub struct Unknown {
    pub name: String,
    pub nearest: Option<&'static str>,
}

/// The groups of a `gather_subset`: names add, `!names` take away, a group's own name before the name of a larger
/// one; `min` is in unless `!min` is said; an empty list is `all`. What a group needs comes with it.
pub fn select(wanted: &[String]) -> Result<Vec<&'static Group>, Unknown> {
    let names: Vec<&str> = wanted.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect();
    let (minus, plus): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| name.starts_with('!'));
    let minus: Vec<&str> = minus.into_iter().map(|name| name.trim_start_matches('!').trim()).collect();
    if let Some(wrong) = minus.iter().chain(&plus).find(|name| !is_known(name)) {
        return Err(Unknown { name: (*wrong).to_owned(), nearest: nearest(wrong, all_names()) });
    }
    let everything = plus.contains(&"all") || plus.is_empty() && !minus.contains(&"all");
    let is_chosen = |group: &Group| {
        let named = |names: &[&str]| names.iter().any(|name| group.is_named(name));
        if plus.contains(&group.name) {
            true
        } else if named(&minus) {
            false
        } else if group.parts_of.contains(&"min") {
            true
        } else {
            everything || named(&plus)
        }
    };
    let mut chosen: Vec<&str> = GROUPS.iter().filter(|group| is_chosen(group)).map(|group| group.name).collect();
    let needed = GROUPS.iter().filter(|group| chosen.contains(&group.name)).flat_map(|group| group.needs);
    let needed: Vec<&str> = needed.copied().collect();
    chosen.extend(needed);
    Ok(GROUPS.iter().filter(|group| chosen.contains(&group.name)).collect())
}

impl Group {
    fn is_named(&self, name: &str) -> bool {
        self.name == name || self.parts_of.contains(&name)
    }
}

fn all_names() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|group| std::iter::once(group.name).chain(group.parts_of.iter().copied()))
}

fn is_known(name: &str) -> bool {
    name == "all" || WITHOUT_FACTS.contains(&name) || all_names().any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(wanted: &[&str]) -> Vec<&'static str> {
        let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
        select(&wanted).unwrap().iter().map(|group| group.name).collect()
    }

    #[test]
    fn subsets_add_and_take_away() {
        assert_eq!(names(&[]).len(), GROUPS.len());
        assert_eq!(names(&["all"]).len(), GROUPS.len());
        let minimal = names(&["min"]);
        assert!(minimal.contains(&"platform") && minimal.contains(&"distribution") && !minimal.contains(&"network"));
        assert_eq!(names(&["!all"]), minimal);
        assert_eq!(names(&["!all", "!min"]), Vec::<&str>::new());
        assert_eq!(names(&["!all", "!min", "network"]), ["network", "initiators"]);
        assert_eq!(names(&["!all", "!min", "default_ipv4"]), ["network"]);
        let hardware = names(&["hardware"]);
        assert!(hardware.contains(&"processor") && hardware.contains(&"platform") && !hardware.contains(&"network"));
        let without = names(&["!hardware"]);
        assert!(!without.contains(&"processor") && without.contains(&"network") && without.contains(&"platform"));
        assert_eq!(names(&["!min", "!hardware", "!network", "!virtual", "!tuning", "mounts"]), ["mounts", "devices"]);
    }

    #[test]
    fn unknown_names_are_refused() {
        let unknown = select(&["hardwear".to_owned()]).err().unwrap();
        assert_eq!(unknown, Unknown { name: "hardwear".into(), nearest: Some("hardware") });
        assert!(select(&["!facter".to_owned()]).is_ok());
    }
}
