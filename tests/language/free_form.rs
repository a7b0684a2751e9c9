//! Arguments on one line, as Ansible reads them.

use serde_json::Value as Json;
use trimtab::playbook::free_form::parse_key_values;
use trimtab::value::Value;

#[test]
fn arguments_on_a_line_read_as_in_ansible() {
    let golden: Json = serde_json::from_str(include_str!("goldens/free_form_args.json")).unwrap();
    for case in golden["parse_kv"].as_array().unwrap() {
        let text = case["in"].as_str().unwrap();
        let arguments = parse_key_values(text, case["check_raw"].as_bool().unwrap()).unwrap();
        assert_eq!(Value::map(arguments).to_json(), case["out"], "{text}");
    }
}
