//! Facts as variables, by the names that their modules gave them.

use trimtab::engine::options::Options;
use trimtab::value::object;

use crate::support::Playing;

#[test]
fn facts_are_variables_by_their_own_names() {
    let playbook = "- hosts: all
  gather_facts: false
  tasks:
    - setup: {gather_subset: tuning}
    - name: numa
      debug: {msg: \"{{ trimtab_numa.nodes is defined }} {{ trimtab_numa == ansible_facts.trimtab_numa }} {{ hostname is defined }}\"}
    - name: default
      debug: {msg: \"{{ page_size | default('none') }} {{ trimtab_tuning.page_size }}\"}
    - bios_facts:
    - name: bios
      debug: {msg: \"{{ trimtab_bios is mapping }} {{ hostvars[inventory_hostname].trimtab_bios is mapping }} {{ 'trimtab_bios' in vars }}\"}
    - meta: clear_facts
    - name: cleared
      debug: {msg: \"{{ trimtab_bios is defined }}\"}
";
    for window in [256, 1] {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(scratch.path().join("site.yml"), playbook).unwrap();
        let options = Options { window, ..Options::default() };
        let directory = scratch.path();
        let told = Playing { directory, playbook: "site.yml", inventory: "a,", extra: object([]), options }.run();
        assert_eq!(told.message("numa"), "True True False", "{:?}", told.lines());
        assert!(told.message("default").starts_with("none "), "{}", told.message("default"));
        assert_eq!(told.message("bios"), "True True True", "{:?}", told.lines());
        assert_eq!(told.message("cleared"), "False", "{:?}", told.lines());
    }
}
