//! Arguments on one line, as Ansible reads them.

use trimtab::playbook::free_form::parse_key_values;
use trimtab::value::Value;

use crate::goldens::{of_kind, text};

#[test]
fn arguments_on_a_line_read_as_in_ansible() {
    for case in of_kind("lines").iter().flat_map(|golden| &golden.cases) {
        let text = text(case, "in");
        let arguments = parse_key_values(text, case["check_raw"].as_bool().unwrap()).unwrap();
        assert_eq!(Value::map(arguments).to_json(), case["out"], "{text}");
    }
}
