//! An inventory that is read again while a run is under way: what it says now, with the numbers that hosts have already.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Host, HostId, Inventory};

impl Inventory {
    /// This inventory, as `fresh` has it now. A host that is in both keeps its number; one that is gone is no longer
    /// found, but those who know its number may still ask for it.
    pub fn renewed(&self, fresh: Inventory) -> Inventory {
        let mut hosts = self.hosts.clone();
        let known: HashMap<Arc<str>, HostId> =
            hosts.iter().enumerate().map(|(index, host)| (Arc::clone(&host.name), HostId(index as u32))).collect();
        for host in &mut hosts {
            if !fresh.host_ids.contains_key(&host.name) {
                *host = Arc::new(Host { implicit: true, groups: Arc::default(), ..Host::clone(host) });
            }
        }
        let mut numbers = Vec::with_capacity(fresh.hosts.len());
        for host in &fresh.hosts {
            let number = known.get(&host.name).copied().unwrap_or(HostId(hosts.len() as u32));
            match hosts.get_mut(number.index()) {
                Some(place) => *place = Arc::clone(host),
                None => hosts.push(Arc::clone(host)),
            }
            numbers.push(number);
        }
        let number = |id: &HostId| numbers[id.index()];
        let mut groups = fresh.groups.clone();
        for group in &mut groups {
            let group = Arc::make_mut(group);
            group.hosts = group.hosts.iter().map(number).collect();
        }
        Inventory {
            host_ids: Arc::new(fresh.host_ids.iter().map(|(name, id)| (Arc::clone(name), number(id))).collect()),
            order: fresh.order.iter().map(number).collect(),
            hosts,
            groups,
            beside_playbook: self.beside_playbook.as_ref().map(|directory| Arc::new(directory.unread())),
            members: Arc::default(),
            ..fresh
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Tree, hosts, var};

    #[test]
    fn hosts_keep_their_numbers_and_those_that_are_gone_are_not_found() {
        let tree = Tree::new(&[
            ("old", "one x=1\ntwo x=2\n[web]\none\ntwo\n"),
            ("new", "four x=4\ntwo x=22\n[web]\nfour\n[db]\ntwo\n"),
        ]);
        let old = tree.load(&["old"]).unwrap();
        let renewed = old.renewed(tree.load(&["new"]).unwrap());
        assert_eq!(hosts(&renewed, "all"), "four two");
        assert_eq!(hosts(&renewed, "web"), "four");
        assert_eq!(renewed.find_host("two"), old.find_host("two"));
        assert!(renewed.find_host("one").is_none());
        let gone = old.find_host("one").unwrap();
        assert_eq!(renewed.host(gone).name.as_ref(), "one");
        assert!(renewed.group_names(gone).is_empty());
        assert_eq!((var(&renewed, "two", "x"), var(&renewed, "four", "x")), ("22".to_owned(), "4".to_owned()));
        let back = renewed.renewed(tree.load(&["old"]).unwrap());
        assert_eq!(back.find_host("one"), Some(gone));
        assert_eq!(hosts(&back, "all"), "one two");
    }
}
