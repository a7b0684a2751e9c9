//! What several targets share: a few variables, and a context that evaluates texts of unknown origin.

use std::sync::Arc;

use trimtab::source::Source;
use trimtab::template::{Context, Scope, SearchPath, Warnings};
use trimtab::value::{Interruption, Map, Value};

/// More than any sensible template of 4 KB needs, and less than a second of work.
pub const STEPS: u64 = 50_000;

const VARIABLES: &str = "\
name: web1
port: 8080
ratio: 0.5
on: true
none:
big: 123456789012345678901234567890
hosts: [web1, web2, db1]
users: [{name: ann, uid: 1001, groups: [wheel]}, {name: bob, uid: 1002, groups: []}]
sysctl: {vm.swappiness: 1, net.core.somaxconn: '4096', nested: {deep: [1, [2, [3]]]}}
address: 192.0.2.17/24
stamp: '2024-02-29 12:34:56'
greeting: hello {{ name }}
circle: '{{ circle }}'
text: \"a b\\tc\\nd\"
";

struct Variables(Map);

impl Scope for Variables {
    fn get(&self, name: &str) -> Result<Option<Value>, Interruption> {
        Ok(self.0.get(name).cloned())
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().map(|key| key.to_text().into_owned()).collect()
    }
}

/// A context with a few variables of each type.
pub fn context() -> Context {
    let variables = trimtab::yaml::load_vars(&Source::new("vars.yml", VARIABLES));
    let variables = variables.unwrap_or_else(|error| panic!("{error}"));
    Context::new(Arc::new(Variables(variables)), Arc::new(SearchPath::default()), Warnings::default())
}

/// True for a text that asks for hashing on purpose slow, or for numbers and widths beyond three digits: each such step
/// is bounded, but takes longer than a fuzzer should wait.
pub fn is_costly(text: &str) -> bool {
    let digits =
        text.as_bytes().windows(5).any(|window| window.iter().all(|byte| byte.is_ascii_digit() || *byte == b'_'));
    digits || text.contains("password_hash") || text.contains("vault") || text.contains("crypt")
}
