//! Inventories that are worked out: scripts and `constructed`.

use std::os::unix::fs::PermissionsExt;

use super::tests::{Tree, hosts, var};
use super::*;
use crate::value::object;

/// A tree of files in which those that begin with `#!` may be run.
fn tree(files: &[(&str, &str)]) -> Tree {
    let tree = Tree::new(files);
    for (name, _) in files.iter().filter(|(_, text)| text.starts_with("#!")) {
        std::fs::set_permissions(tree.path(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    tree
}

#[test]
fn a_script_tells_hosts_groups_and_variables() {
    let script = r#"#!/bin/sh
[ "$1" = --list ] || exit 9
cat <<END
{"web": {"hosts": ["w1", "w2"], "vars": {"port": 80, "url": "{{ inventory_hostname }}:{{ port }}"}},
 "db": ["d1"], "site": {"children": ["web", "db"]}, "lone": {"colour": "red"},
 "_meta": {"hostvars": {"w1": {"rack": 7}, "unknown": {"x": 1}}}}
END
"#;
    let inventory = tree(&[("inv.sh", script)]).load(&["inv.sh"]).unwrap();
    assert_eq!(hosts(&inventory, "all"), "lone w1 w2 d1");
    assert_eq!(hosts(&inventory, "site"), "w1 w2 d1");
    assert_eq!(var(&inventory, "w1", "rack"), "7");
    assert_eq!(var(&inventory, "w2", "port"), "80");
    assert_eq!(var(&inventory, "lone", "colour"), "'red'");
    let url = inventory.host_var(inventory.find_host("w2").unwrap(), "url").unwrap().unwrap();
    assert!(url.has_templates());
    assert!(inventory.find_host("unknown").is_none());
}

#[test]
fn a_script_without_meta_is_asked_for_each_host() {
    let script = "#!/bin/sh\ncase $1 in --list) echo '{\"web\": [\"w1\", \"w2\"], \"too\": [\"w1\"]}' ;;\n\
                  --host) [ $2 = w2 ] || echo \"{\\\"me\\\": \\\"$2\\\"}\" ;; esac\n";
    let inventory = tree(&[("inv", script)]).load(&["inv"]).unwrap();
    assert_eq!(var(&inventory, "w1", "me"), "'w1'");
    assert_eq!(var(&inventory, "w2", "me"), "-");
}

#[test]
fn what_is_wrong_with_a_script_is_said() {
    let cases = [
        ("#!/bin/sh\necho no route >&2; exit 3\n", "failed: exit code 3", "it said: no route"),
        ("#!/bin/sh\nkill -9 $$\n", "signal: 9", ""),
        ("#!/no/such/program\n", "cannot run the inventory script", "its first line names the program"),
        ("#!/bin/sh\necho '{\"web\": '\n", "must print JSON", ""),
        ("#!/bin/sh\necho '[]'\n", "must print a JSON object", ""),
        ("#!/bin/sh\necho '{\"web\": {\"hosts\": \"w1\"}}'\n", "`hosts` of the group `web` must be a list", ""),
        ("#!/bin/sh\necho '{\"web\": {\"vars\": 1}}'\n", "`vars` of the group `web` must be an object", ""),
        (
            "#!/bin/sh\necho '{\"web\": [\"a\"], \"_meta\": {\"hostvars\": {\"a\": 1}}}'\n",
            "variables of `a` must be",
            "",
        ),
        ("#!/bin/sh\necho '{\"a\": {\"children\": [\"a\"]}}'\n", "a group cannot contain itself", ""),
    ];
    for (script, message, hint) in cases {
        let error = tree(&[("inv", script)]).load(&["inv"]).expect_err(script);
        assert!(error.message().contains(message), "{script}: {error}");
        assert!(error.hints().join("\n").contains(hint), "{script}: {:?}", error.hints());
    }
    let noisy = "#!/bin/sh\necho careful >&2; echo '{}'\n";
    let inventory = tree(&[("inv", noisy)]).load(&["inv"]).unwrap();
    assert!(inventory.warnings[0].message().contains("said: careful"));
}

const HOSTS: &str = "[web]\nw1 rack=7 os=el8 tags='[\"a-b\", \"\"]'\nw2 rack='' os='' sizes='{\"cpu\": 4, \"gpu\": \"\"}'\n\
                     [web:vars]\nsite=north\ncode={{ site }}/{{ rack }}\n";

fn constructed(rest: &str) -> Result<Inventory> {
    let file = format!("plugin: constructed\n{rest}");
    tree(&[("inv/1-hosts.ini", HOSTS), ("inv/2.yml", &file), ("inv/group_vars/web.yml", "beside: yes\n")])
        .load(&["inv"])
}

#[test]
fn variables_and_groups_are_made_of_what_is_known() {
    let inventory = constructed(
        "compose:\n  place: site ~ '-' ~ rack\n  fixed: 5\n  nothing: undefined_variable\n  long: code | length\n\
         groups:\n  north-web: site == 'north' and 'web' in group_names\n  placed: place is search('7')\n  no: no_such > 1\n",
    )
    .unwrap();
    assert_eq!(var(&inventory, "w1", "place"), "'north-7'");
    assert_eq!(var(&inventory, "w1", "fixed"), "5");
    assert_eq!(var(&inventory, "w1", "nothing"), "-");
    assert_eq!(var(&inventory, "w1", "long"), "7");
    assert_eq!(hosts(&inventory, "north_web"), "w1 w2");
    assert_eq!(hosts(&inventory, "placed"), "w1");
    assert!(inventory.find_group("no").is_none());
}

#[test]
fn keyed_groups_have_names_of_their_parts() {
    let cases = [
        ("{key: os}", "_el8: w1"),
        ("{key: os, prefix: os}", "os_el8: w1"),
        ("{key: os, prefix: os, separator: '-'}", "os_el8: w1"),
        ("{key: os, prefix: os, separator: ''}", "osel8: w1"),
        ("{key: rack, prefix: rack}", "rack_7: w1"),
        ("{key: os, prefix: os, default_value: none}", "os_el8: w1, os_none: w2"),
        ("{key: os, prefix: os, parent_group: 'all_{{ site }}'}", "all_north: w1, os_el8: w1"),
        ("{key: tags, prefix: tag}", "tag_: w1, tag_a_b: w1"),
        ("{key: tags, prefix: tag, default_value: x}", "tag_a_b: w1, tag_x: w1"),
        ("{key: sizes}", "_cpu_4: w2, _gpu_: w2"),
        ("{key: sizes, trailing_separator: false}", "_cpu_4: w2, _gpu: w2"),
        ("{key: sizes, default_value: no}", "_cpu_4: w2, _gpu_False: w2"),
    ];
    for (entry, expected) in cases {
        let inventory = constructed(&format!("keyed_groups:\n  - {entry}\n")).unwrap();
        let mut made: Vec<String> = inventory
            .groups()
            .filter(|(_, group)| !["all", "ungrouped", "web"].contains(&group.name.as_ref()))
            .map(|(_, group)| format!("{}: {}", group.name, hosts(&inventory, &group.name)))
            .collect();
        made.sort();
        assert_eq!(made.join(", "), expected, "{entry}");
    }
    let inventory = constructed("leading_separator: false\nkeyed_groups:\n  - key: os\n").unwrap();
    assert_eq!(hosts(&inventory, "el8"), "w1");
}

#[test]
fn constructed_says_what_is_wrong() {
    let cases = [
        ("strict: true\ncompose: {x: undefined_variable}", "cannot set `x` for the host `w1`", "2.yml:3:14"),
        ("strict: true\ngroups: {x: undefined_variable}", "cannot decide about the group `x`", "2.yml:3:13"),
        ("strict: true\nkeyed_groups: [{key: undefined_variable}]", "cannot make a keyed group", "2.yml:3:16"),
        ("strict: true\nkeyed_groups: [{key: os}]", "is empty for the host `w2`", "2.yml:3:16"),
        ("keyed_groups: [{key: os, default_value: x, trailing_separator: false}]", "exclude each other", "2.yml:2:16"),
        ("keyed_groups: [{kye: os}]", "has no key `kye`", "2.yml:2:17"),
        ("keyed_groups: [{prefix: os}]", "needs a `key`", "2.yml:2:16"),
        ("keyed_group: []", "has no key `keyed_group`", "2.yml:2:1"),
        ("compose: [x]", "must be a mapping of names and expressions", "2.yml:2:10"),
        ("strict: maybe", "must be `true` or `false`", "2.yml:2:9"),
    ];
    for (text, message, place) in cases {
        let error = constructed(text).expect_err(text);
        assert!(error.message().contains(message), "{text}: {error}");
        assert!(error.to_string().contains(place), "{text}: {error}");
    }
    let inventory = constructed("compose: {x: '1 +'}").unwrap();
    assert!(inventory.warnings[0].message().contains("this expression is left out"), "{}", inventory.warnings[0]);
}

#[test]
fn constructed_sees_the_sources_before_it_and_what_it_asks_for() {
    let plugin = "plugin: ansible.builtin.constructed\nuse_extra_vars: true\nuse_vars_plugins: true\n\
                  compose: {both: beside ~ given, where: rack}\n";
    let script = "#!/bin/sh\necho '{\"web\": [\"s1\"], \"_meta\": {\"hostvars\": {\"s1\": {\"rack\": 9}}}}'\n";
    let files =
        [("inv/a.ini", HOSTS), ("inv/group_vars/web.yml", "beside: 1\n"), ("run", script), ("zz.config", plugin)];
    let tree = tree(&files);
    let extra = Arc::new(object([("given", "x".into())]));
    let inventory =
        load_with(&["inv", "run", "zz.config"].map(|name| tree.path(name)), &extra, &Arc::default()).unwrap();
    assert_eq!(var(&inventory, "w1", "both"), "'1x'");
    assert_eq!(var(&inventory, "s1", "where"), "9");
    let inventory = load_with(&["zz.config", "inv"].map(|name| tree.path(name)), &extra, &Arc::default()).unwrap();
    assert_eq!(var(&inventory, "w1", "both"), "-");
    assert!(inventory.warnings[0].message().contains("sees no host"));
}
