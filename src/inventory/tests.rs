//! Whole inventories: files, directories, precedence, patterns, additions, and what is refused.

use std::collections::HashSet;
use std::path::Path;

use super::*;
use crate::source::Source;

pub(super) struct Tree(pub(super) tempfile::TempDir);

impl Tree {
    pub(super) fn new(files: &[(&str, &str)]) -> Tree {
        let tree = Tree(tempfile::tempdir().unwrap());
        for (name, text) in files {
            let path = tree.0.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        tree
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    pub(super) fn load(&self, names: &[&str]) -> Result<Inventory> {
        load(&names.iter().map(|name| self.path(name)).collect::<Vec<_>>())
    }
}

pub(super) fn hosts(inventory: &Inventory, pattern: &str) -> String {
    let selection = inventory.select(&[pattern]).unwrap();
    selection.hosts.iter().map(|host| inventory.host(*host).name.as_ref()).collect::<Vec<_>>().join(" ")
}

pub(super) fn var(inventory: &Inventory, host: &str, name: &str) -> String {
    let host = inventory.find_host(host).unwrap();
    inventory.host_var(host, name).unwrap().map_or("-".to_owned(), |value| value.to_repr())
}

#[test]
fn broken_inventories_say_where_and_what_to_do() {
    let cases: &[(&str, &str, &str, &str, &str)] = &[
        ("h.ini", "[web:chldren]\nx", "has unknown type `chldren`", "1:6", "did you mean `children`?"),
        ("h.ini", "[web\nx", "lacks its closing `]`", "1:1", ""),
        ("h.ini", "a\n  [web : vars]\n", "invalid section entry", "2:3", "without spaces"),
        (
            "h.ini",
            "[web]\nweb1 user = x\n",
            "expected `name=value` after the host, got `user`",
            "2:6",
            "one host on a line",
        ),
        ("h.ini", "web1 a='b", "quote is not closed", "1:8", ""),
        ("h.ini", "web[3:1]", "must not end before it begins", "1:1", ""),
        ("h.ini", "web1:\n", "colon must be followed by a port", "1:1", "`.yml`"),
        ("h.ini", "[kp]\n[db:children]\nkq\n", "includes the undefined group `kq`", "3:1", "did you mean `kp`?"),
        ("h.ini", "[kp]\n[kq:vars]\na=1\n", "sets variables of the undefined group `kq`", "2:2", "did you mean `kp`?"),
        ("h.ini", "[a:vars]\nb\n[a]", "expected `name=value` in `[a:vars]`", "2:1", ""),
        ("h.ini", "[a:children]\nb\n[b:children]\na\n", "cannot be a child of `b`", "4:1", ""),
        ("h.ini", "[a:children]\nall\n", "`all` contains every group", "2:1", ""),
        (
            "h.yml",
            "all: {hosts: [web1]}",
            "`hosts` of the group `all` must be a mapping",
            "1:14",
            "write each host as a key",
        ),
        ("h.yml", "all: {host: {web1: }}", "unexpected key `host`", "1:7", "did you mean `hosts`?"),
        ("h.yml", "web: [x]", "the group `web` must be a mapping", "1:6", ""),
        ("h.yml", "- x", "must be a mapping of groups, this is a sequence", "1:1", ""),
        ("h.yml", "all: {hosts: {7: }}", "Host pattern 7 must be a string, this is a integer", "1:15", "quote it"),
        ("h.yml", "all: {hosts: {x: 1}}", "the variables of `x` must be a mapping", "1:18", ""),
        ("h.yml", "plugin: aws_ec2", "the inventory plugin `aws_ec2` is not supported", "1:1", "ansible-inventory"),
        ("h.yml", "a: {children: {b: {children: {a: }}}}", "cannot be a child of `b`", "1:31", ""),
        ("h.yml", "a: {vars: {ansible_group_priority: high}}", "must be a whole number, not `high`", "1:36", ""),
    ];
    for (file, text, message, place, hint) in cases {
        let error = Tree::new(&[(file, text)]).load(&[file]).expect_err(text);
        assert!(error.message().contains(message), "{text}: {error}");
        assert!(error.to_string().contains(&format!("/{file}:{place}: ")), "{text}: {error}");
        assert!(error.hints().join("\n").contains(hint), "{text}: {:?}", error.hints());
    }
}

#[test]
fn a_text_is_read_by_the_name_of_its_source() {
    let inventory = parse(&Source::new("hosts", "[web]\nweb[1:2] a=1\n")).unwrap();
    assert_eq!((hosts(&inventory, "web"), var(&inventory, "web2", "a")), ("web1 web2".to_owned(), "1".to_owned()));
    let inventory = parse(&Source::new("hosts.yml", "web: {hosts: {web1: {a: x}}}\n")).unwrap();
    assert_eq!((hosts(&inventory, "web"), var(&inventory, "web1", "a")), ("web1".to_owned(), "'x'".to_owned()));
    assert!(parse(&Source::new("hosts.toml", "")).is_err());
}

#[test]
fn a_source_that_cannot_be_read_is_refused() {
    let tree = Tree::new(&[("latin1", ""), ("h.toml", "")]);
    std::fs::write(tree.0.path().join("latin1"), b"[web]\n# \xe9\n").unwrap();
    for (name, words) in [("latin1", "not UTF-8"), ("h.toml", "TOML")] {
        let error = tree.load(&[name]).expect_err(name);
        assert!(error.message().contains(words), "{error}");
    }
    // one that is not there may be meant to come later
    let inventory = tree.load(&["nosuch"]).unwrap();
    assert!(inventory.missing[0].message().contains("no such file"), "{:?}", inventory.missing);
    assert_eq!(hosts(&inventory, "all"), "");
}

#[test]
fn maps_that_are_set_twice_may_be_merged() {
    let tree = Tree::new(&[
        ("one.yml", "g: {hosts: {h: {m: {a: 1, b: {c: 2}}}}, vars: {n: {a: 1}}}"),
        ("two.yml", "g: {hosts: {h: {m: {a: 3, b: {d: 4}}}}, vars: {n: {b: 2}}}"),
    ]);
    let sources = ["one.yml", "two.yml"].map(|name| tree.0.path().join(name).to_string_lossy().into_owned());
    for (merges, m, n) in
        [(false, "{'a': 3, 'b': {'d': 4}}", "{'b': 2}"), (true, "{'a': 3, 'b': {'c': 2, 'd': 4}}", "{'a': 1, 'b': 2}")]
    {
        let inventory = {
            let reading = super::Reading { merges_maps: merges, ..Default::default() };
            super::load_as(&sources, &Default::default(), &Default::default(), reading)
        }
        .unwrap();
        let host = inventory.find_host("h").unwrap();
        let var = |name: &str| {
            inventory.host_layers(host).unwrap().iter().rev().find_map(|(_, map)| map.get(name).map(Value::to_repr))
        };
        assert_eq!((var("m").as_deref(), var("n").as_deref()), (Some(m), Some(n)), "{merges}");
    }
}

#[test]
fn files_without_an_ending_are_told_apart() {
    for (text, expected) in [
        ("[web]\nweb1\n", "web1"),
        ("# hosts\nweb1 a=b\n", "web1"),
        ("web1:22\n", "web1"),
        ("---\nall:\n  hosts:\n    web1:\n", "web1"),
        ("all:  # fleet\n  hosts: web1\n", "web1"),
        ("{\"all\": {\"hosts\": {\"web1\": {}}}}", "web1"),
        ("", ""),
    ] {
        let inventory = Tree::new(&[("hosts", text)]).load(&["hosts"]).unwrap();
        assert_eq!(hosts(&inventory, "all"), expected, "{text}");
    }
}

#[test]
fn a_directory_is_read_in_order_without_what_is_no_inventory() {
    let tree = Tree::new(&[
        ("inv/20-late.ini", "[web]\nb a=late\n"),
        ("inv/10-early", "[web]\nc\nb a=early\n"),
        ("inv/sub/x.yml", "web: {hosts: {d: }}"),
        ("inv/.hidden", "[broken"),
        ("inv/old.bak", "[broken"),
        ("inv/ansible.cfg", "[broken"),
        ("inv/notes~", "[broken"),
        ("inv/readme.md", "[broken"),
        ("inv/group_vars/web.yml", "g: 1"),
        ("inv/host_vars/b/x.yaml", "h: 1"),
    ]);
    let inventory = tree.load(&["inv"]).unwrap();
    assert_eq!(hosts(&inventory, "web"), "c b d");
    assert_eq!(var(&inventory, "b", "a"), "'late'");
    assert_eq!(var(&inventory, "d", "g"), "1");
    assert_eq!(var(&inventory, "b", "h"), "1");
    assert_eq!(var(&inventory, "b", "inventory_file"), format!("'{}'", tree.path("inv/10-early")));
}

#[test]
fn lists_of_hosts_and_several_sources() {
    let tree = Tree::new(&[("h.ini", "[web]\nweb1 a=1\n")]);
    let inventory = load(&["x1, kp[1:2]:2222,".to_owned(), tree.path("h.ini"), "web1,".to_owned()]).unwrap();
    assert_eq!(hosts(&inventory, "all"), "x1 kp1 kp2 web1");
    assert_eq!(hosts(&inventory, "ungrouped"), "x1 kp1 kp2");
    assert_eq!(var(&inventory, "kp2", "ansible_port"), "2222");
}

#[test]
fn localhost_needs_no_inventory() {
    let inventory = load::<&str>(&[]).unwrap();
    assert_eq!(hosts(&inventory, "all"), "");
    assert_eq!(hosts(&inventory, "localhost"), "localhost");
    assert_eq!(var(&inventory, "localhost", "ansible_connection"), "'local'");
    assert!(inventory.host(inventory.find_host("127.0.0.1").unwrap()).implicit);
    let inventory = load(&["localhost,"]).unwrap();
    assert_eq!(hosts(&inventory, "all"), "localhost");
    assert_eq!(hosts(&inventory, "127.0.0.1"), "localhost");
    assert_eq!(var(&inventory, "localhost", "ansible_connection"), "-");
}

#[test]
fn layers_come_in_order_of_precedence() {
    let tree = Tree::new(&[
        ("inv/h.ini", "[web]\nw1 v=1\n[all:vars]\nv=2\n[web:vars]\nv=3\n[low:children]\nweb\n[low:vars]\nv=4\n"),
        ("inv/group_vars/all.yml", "v: 5"),
        ("inv/group_vars/web/10.yml", "v: 6"),
        ("inv/group_vars/web/sub/x", "v: 7"),
        ("inv/group_vars/web/skipped.txt", "v: bad"),
        ("inv/group_vars/web.yml", "v: not read, the directory comes first"),
        ("inv/host_vars/w1.json", "{\"v\": 8,\t\"e\": 1e3, \"t\": \"{{ x }}\"}"),
        ("play/group_vars/all", "v: 9"),
        ("play/group_vars/low.yaml", "v: 10"),
        ("play/host_vars/w1.yml", "v: 11"),
        ("play/host_vars/w2.yml", "[broken"),
    ]);
    let mut inventory = tree.load(&["inv/h.ini"]).unwrap();
    inventory.set_playbook_directory(tree.path("play"));
    let host = inventory.find_host("w1").unwrap();
    let layers: Vec<(Level, String)> = inventory
        .host_layers(host)
        .unwrap()
        .iter()
        .map(|(level, map)| (*level, map.get("v").unwrap().to_repr()))
        .collect();
    let expected = [
        (Level::InventoryGroup, 2),
        (Level::InventoryGroup, 4),
        (Level::InventoryGroup, 3),
        (Level::InventoryGroupVarsAll, 5),
        (Level::PlaybookGroupVarsAll, 9),
        (Level::InventoryGroupVars, 6),
        (Level::InventoryGroupVars, 7),
        (Level::PlaybookGroupVars, 10),
        (Level::InventoryHost, 1),
        (Level::InventoryHostVars, 8),
        (Level::PlaybookHostVars, 11),
    ];
    assert_eq!(layers, expected.map(|(level, number)| (level, number.to_string())));
    assert!(layers.is_sorted_by_key(|(level, _)| *level));
    assert_eq!(var(&inventory, "w1", "e"), "1000.0");
    let template = inventory.host_var(host, "t").unwrap().unwrap();
    assert!(template.has_templates());
}

#[test]
fn a_broken_file_of_variables_is_reported_for_its_host_alone() {
    let tree = Tree::new(&[("h", "a\nb\n"), ("host_vars/a.yml", "x: 1\n y: 2\n"), ("host_vars/b.yml", "- x")]);
    let inventory = tree.load(&["h"]).unwrap();
    let error = |name| inventory.host_layers(inventory.find_host(name).unwrap()).unwrap_err().to_string();
    assert!(error("a").contains("host_vars/a.yml:2:3: not valid YAML"), "{}", error("a"));
    assert!(error("b").contains("a file of variables must be a mapping"), "{}", error("b"));
}

#[test]
fn priority_decides_between_groups_of_equal_depth() {
    let text = "h\n[b]\nh\n[a]\nh\n[c]\nh\n[a:vars]\nansible_group_priority=10\nv=a\n[b:vars]\nv=b\n[c:vars]\nv=c\n";
    let inventory = Tree::new(&[("h.ini", text)]).load(&["h.ini"]).unwrap();
    assert_eq!(var(&inventory, "h", "v"), "'a'");
    assert_eq!(var(&inventory, "h", "ansible_group_priority"), "-");
    let host = inventory.find_host("h").unwrap();
    assert_eq!(inventory.group_names(host).join(" "), "a b c");
    let order: Vec<&str> =
        inventory.host(host).groups.iter().map(|group| inventory.group(*group).name.as_ref()).collect();
    assert_eq!(order, ["all", "b", "c", "a"]);
}

#[test]
fn patterns_and_limits() {
    let tree = Tree::new(&[
        ("h.ini", "[web]\nweb[1:4]\n[db]\ndb1\nweb4\n[six]\n2001:db8::1\n"),
        ("failed.retry", "web2\n\ndb1\n"),
    ]);
    let inventory = tree.load(&["h.ini"]).unwrap();
    let cases = [
        ("web:db", "web1 web2 web3 web4 db1"),
        ("!db:web", "web1 web2 web3"),
        ("web:&db", "web4"),
        ("web[0]", "web1"),
        ("web[-1]", "web4"),
        ("web[1:2]", "web2 web3"),
        ("web[9:]", ""),
        ("web*[0:1]", "web1 web2"),
        ("2001:db8::1", "2001:db8::1"),
        ("*1", "web1 db1 2001:db8::1"),
        ("~web[12]$", "web1 web2"),
        ("nosuch,web1", "web1"),
    ];
    for (pattern, expected) in cases {
        assert_eq!(hosts(&inventory, pattern), expected, "{pattern}");
    }
    assert_eq!(inventory.select(&["wbe", "web1"]).unwrap().unmatched, ["wbe"]);
    assert_eq!(inventory.no_match("wbe").hints(), ["did you mean `web`?"]);
    assert!(inventory.select(&["web[7]"]).unwrap_err().message().contains("`web` has 4 hosts"));

    let limited = |text: &str| inventory.limit(text).map(|hosts| hosts.len());
    assert_eq!(limited("db:!web4").unwrap(), 1);
    assert_eq!(limited(&format!("@{}", tree.path("failed.retry"))).unwrap(), 2);
    assert_eq!(limited("!web").unwrap(), 2);
    let error = limited("webb").unwrap_err();
    assert_eq!(
        (error.message(), error.hints()),
        ("no host matches `--limit webb`", &["did you mean `web`?".to_owned()][..])
    );
    assert!(limited("@/nosuch").unwrap_err().message().contains("no such file"));
}

#[test]
fn hosts_and_groups_are_added_to_a_copy() {
    let tree = Tree::new(&[("h.ini", "u1\n[web]\nweb1\n[web:vars]\nv=web\n"), ("group_vars/os_el.yml", "os: el")]);
    let original = tree.load(&["h.ini"]).unwrap();
    let mut copy = original.clone();
    let vars = crate::value::object([("x", 1.into())]);
    assert!(copy.add_host("new1", vars.clone(), &["web", "fresh"]));
    assert!(!copy.add_host("new1", vars, &["web"]));
    assert_eq!(var(&copy, "new1", "v"), "'web'");
    assert_eq!(hosts(&copy, "fresh"), "new1");
    assert!(copy.add_host("new2", Map::new(), &[]));
    assert_eq!(hosts(&copy, "ungrouped"), "u1 new2");

    let host = copy.find_host("u1").unwrap();
    assert!(copy.add_to_group(host, "os_el", &["os"]));
    assert!(!copy.add_to_group(host, "os_el", &["os"]));
    assert_eq!(hosts(&copy, "os"), "u1");
    assert_eq!(hosts(&copy, "ungrouped"), "new2");
    assert_eq!(copy.group_names(host).join(" "), "os os_el");
    assert_eq!(var(&copy, "u1", "os"), "'el'");
    assert_eq!(hosts(&copy, "all").split(' ').count(), 4);
    assert_eq!(hosts(&original, "all"), "u1 web1");
}

#[test]
fn places_point_to_the_first_mention() {
    let tree = Tree::new(&[("h.ini", "[web]\n  web1 a=1\n")]);
    let inventory = tree.load(&["h.ini"]).unwrap();
    let place = inventory.host(inventory.find_host("web1").unwrap()).place.as_ref().unwrap();
    assert_eq!((place.line, place.column, place.source.path()), (2, 3, Path::new(&tree.path("h.ini"))));
    let place = inventory.group(inventory.find_group("web").unwrap()).place.as_ref().unwrap();
    assert_eq!((place.line, place.column), (1, 2));
}

#[test]
fn ten_thousand_hosts_load_from_either_format() {
    let mut yaml = "all:\n  children:\n".to_owned();
    let mut ini = String::new();
    for rack in 0..100 {
        yaml.push_str(&format!("    rack{rack}:\n      hosts:\n"));
        ini.push_str(&format!("[rack{rack}]\n"));
        for host in 0..100 {
            let number = rack * 100 + host;
            yaml.push_str(&format!(
                "        kp{number:05}: {{ansible_host: 10.0.{rack}.{host}, cores: 128, arm: yes}}\n"
            ));
            ini.push_str(&format!("kp{number:05} ansible_host=10.0.{rack}.{host} cores=128 arm=True\n"));
        }
    }
    let tree = Tree::new(&[("h.yml", &yaml), ("h.ini", &ini), ("group_vars/rack7.yml", "row: 1")]);
    for name in ["h.yml", "h.ini"] {
        let inventory = tree.load(&[name]).unwrap();
        assert_eq!(inventory.hosts().count(), 10_000);
        assert_eq!(inventory.select(&["kp*:!rack7"]).unwrap().hosts.len(), 9_900);
        let with_row = inventory.hosts().filter(|(id, _)| inventory.host_var(*id, "row").unwrap().is_some()).count();
        assert_eq!(with_row, 100);
    }
}

#[test]
fn work_that_hosts_share_does_not_grow_with_them() {
    for count in [120, 1200] {
        let mut ini = "[site:children]\nrack0\nrack1\nrack2\n".to_owned();
        for (group, groups) in [("rack", 3), ("app", 4)] {
            for number in 0..groups {
                ini.push_str(&format!("[{group}{number}]\n"));
                let members = (0..count).filter(|host| host % groups == number);
                members.for_each(|host| ini.push_str(&format!("kp{host:05}\n")));
            }
        }
        let tree = Tree::new(&[
            ("hosts", &ini),
            ("group_vars/all.yml", "a: 1"),
            ("group_vars/site.yml", "b: 1"),
            ("group_vars/rack0.yml", "c: 1"),
            ("host_vars/kp00000.yml", "d: 1"),
        ]);
        let inventory = tree.load(&["hosts"]).unwrap();
        let orders: HashSet<_> = inventory.hosts().map(|(_, host)| host.groups.as_ptr()).collect();
        assert_eq!(orders.len(), 12, "orders of groups that were worked out for {count} hosts");
        let layers = |id| inventory.host_layers(id).unwrap();
        let maps: HashSet<_> =
            inventory.hosts().flat_map(|(id, _)| layers(id)).map(|(_, map)| Arc::as_ptr(&map)).collect();
        assert_eq!(maps.len(), 5, "a map for each file and the inventory itself of {count} hosts");
        let read: usize = inventory.beside_inventory.iter().map(|directory| directory.count_read()).sum();
        assert_eq!(read, 4, "files that were read for {count} hosts");
    }
}

#[test]
fn the_hosts_of_a_range_share_their_variables() {
    let inventory = parse(&Source::new("hosts", "h[1:500]:2222 a=1 b=2\n[g]\nh[1:499] c=3\n")).unwrap();
    let maps: HashSet<_> = inventory.hosts().map(|(_, host)| Arc::as_ptr(&host.vars)).collect();
    assert_eq!(maps.len(), 2);
    let values = |host| ["ansible_port", "a", "c"].map(|name| var(&inventory, host, name)).join(" ");
    assert_eq!((values("h1"), values("h500")), ("2222 1 3".to_owned(), "2222 1 -".to_owned()));
}

#[test]
fn hosts_leave_ungrouped_in_their_order() {
    let mut ini: String = (0..20).map(|host| format!("kp{host:02}\n")).collect();
    ini.push_str("[web]\nkp[00:19:2]\n");
    let inventory = parse(&Source::new("hosts", ini)).unwrap();
    let odd: Vec<String> = (1..20).step_by(2).map(|host| format!("kp{host:02}")).collect();
    assert_eq!(hosts(&inventory, "ungrouped"), odd.join(" "));
    assert_eq!(inventory.group_names(inventory.find_host("kp00").unwrap()), ["web".into()]);
}

#[test]
fn members_follow_what_a_run_adds() {
    let mut inventory = load(&["a,b"]).unwrap();
    let json = |inventory: &Inventory| inventory.members().to_json().to_string();
    assert_eq!(json(&inventory), r#"{"all":["a","b"],"ungrouped":["a","b"]}"#);
    let before = inventory.clone();
    inventory.add_host("c", Map::new(), &["new"]);
    assert_eq!(json(&inventory), r#"{"all":["a","b","c"],"ungrouped":["a","b"],"new":["c"]}"#);
    let a = inventory.find_host("a").unwrap();
    inventory.add_to_group(a, "new", &[]);
    assert_eq!(json(&inventory), r#"{"all":["a","b","c"],"ungrouped":["b"],"new":["c","a"]}"#);
    assert_eq!(json(&before), r#"{"all":["a","b"],"ungrouped":["a","b"]}"#);
}
