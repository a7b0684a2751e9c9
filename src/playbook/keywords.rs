//! The table of Ansible's keywords: where each may stand, what it holds, and one line of help.

use crate::error::Error;
use crate::value::Value;
use crate::yaml::Node;

/// What a keyword can stand on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    Play,
    /// `import_playbook`.
    Import,
    /// An entry of `roles:` or of a role's dependencies.
    Role,
    Block,
    Task,
    Handler,
}

impl On {
    /// With its article, for messages.
    pub fn word(self) -> &'static str {
        match self {
            On::Play => "a play",
            On::Import => "`import_playbook`",
            On::Role => "a role",
            On::Block => "a block",
            On::Task => "a task",
            On::Handler => "a handler",
        }
    }
}

/// What a keyword holds. Where the value is a template, it must give this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    Text,
    Bool,
    Int,
    Float,
    /// A number or a percentage.
    Percent,
    /// A text or a list of texts.
    Texts,
    /// A condition or a list of them.
    Conditions,
    /// A map, or a list of maps.
    Maps,
    /// A list of tasks.
    Tasks,
    List,
    Any,
}

impl Holds {
    /// For documentation and messages.
    pub fn word(self) -> &'static str {
        match self {
            Holds::Text => "text",
            Holds::Bool => "`true` or `false`",
            Holds::Int => "an integer",
            Holds::Float => "a number",
            Holds::Percent => "a number or a percentage",
            Holds::Texts => "text or a list of texts",
            Holds::Conditions => "a condition or a list of conditions",
            Holds::Maps => "a mapping or a list of mappings",
            Holds::Tasks => "a list of tasks",
            Holds::List => "a list",
            Holds::Any => "any value",
        }
    }
}

/// One keyword.
#[derive(Debug)]
pub struct Keyword {
    pub name: &'static str,
    pub on: &'static [On],
    pub holds: Holds,
    pub help: &'static str,
    /// Set if the keyword is accepted but has no effect here: why.
    pub no_effect: Option<&'static str>,
}

const fn keyword(name: &'static str, on: &'static [On], holds: Holds, help: &'static str) -> Keyword {
    Keyword { name, on, holds, help, no_effect: None }
}

impl Keyword {
    const fn no_effect(mut self, why: &'static str) -> Keyword {
        self.no_effect = Some(why);
        self
    }
}

use Holds::{Any, Bool, Conditions, Float, Int, List, Maps, Percent, Tasks, Text, Texts};

const EVERYWHERE: &[On] = &[On::Play, On::Import, On::Role, On::Block, On::Task, On::Handler];
const BELOW_PLAY: &[On] = &[On::Role, On::Block, On::Task, On::Handler];
const CONDITIONAL: &[On] = &[On::Import, On::Role, On::Block, On::Task, On::Handler];
const BLOCKS_AND_TASKS: &[On] = &[On::Block, On::Task, On::Handler];
const TASKS: &[On] = &[On::Task, On::Handler];
const PLAY: &[On] = &[On::Play];
const BLOCK: &[On] = &[On::Block];

/// All keywords, by what they stand on and name.
#[rustfmt::skip]
pub const KEYWORDS: &[Keyword] = &[
    keyword("any_errors_fatal", EVERYWHERE, Bool, "A failure on one host ends the play for all hosts"),
    keyword("become", EVERYWHERE, Bool, "Act as another user"),
    keyword("become_exe", EVERYWHERE, Text, "Path of the program that changes the user"),
    keyword("become_flags", EVERYWHERE, Text, "Options for the program that changes the user"),
    keyword("become_method", EVERYWHERE, Text, "How to become another user: `sudo`, `su`"),
    keyword("become_user", EVERYWHERE, Text, "The user to become; default `root`"),
    keyword("check_mode", EVERYWHERE, Bool, "Record changes and make none, or make them even in check mode"),
    keyword("collections", EVERYWHERE, List, "Collections in which short names of roles are looked for"),
    keyword("connection", EVERYWHERE, Text, "How to reach the host: `ssh`, `local`"),
    keyword("debugger", EVERYWHERE, Text, "When to start the task debugger").no_effect("there is no task debugger"),
    keyword("diff", EVERYWHERE, Bool, "Show what a task changes"),
    keyword("environment", EVERYWHERE, Maps, "Environment variables for what runs on the host"),
    keyword("ignore_errors", EVERYWHERE, Bool, "Go on after a failed task"),
    keyword("ignore_unreachable", EVERYWHERE, Bool, "Go on with a host that could not be reached"),
    keyword("module_defaults", EVERYWHERE, Maps, "Default arguments by module"),
    keyword("name", EVERYWHERE, Text, "What is shown for it"),
    keyword("no_log", EVERYWHERE, Bool, "Show and keep no results"),
    keyword("port", EVERYWHERE, Int, "Port of the host's SSH server"),
    keyword("remote_user", EVERYWHERE, Text, "The user to log in as"),
    keyword("run_once", EVERYWHERE, Bool, "Run on the first host, the result is for all"),
    keyword("tags", EVERYWHERE, Texts, "Names by which tasks are selected"),
    keyword("throttle", EVERYWHERE, Int, "The most hosts that may run it at a time"),
    keyword("timeout", EVERYWHERE, Int, "Seconds after which the task fails"),
    keyword("vars", EVERYWHERE, Maps, "Variables"),
    keyword("when", CONDITIONAL, Conditions, "Run only if all conditions are true"),
    keyword("delegate_facts", BELOW_PLAY, Bool, "Facts are those of the host that is delegated to"),
    keyword("delegate_to", BELOW_PLAY, Text, "Act on this host instead"),
    keyword("notify", BLOCKS_AND_TASKS, Texts, "Handlers or topics to notify of a change"),

    keyword("fact_path", PLAY, Text, "Directory of local facts on the hosts"),
    keyword("force_handlers", PLAY, Bool, "Run notified handlers even on hosts that failed"),
    keyword("gather_facts", PLAY, Bool, "Gather facts before the first task; default `true`"),
    keyword("gather_subset", PLAY, Texts, "Groups of facts to gather"),
    keyword("gather_timeout", PLAY, Int, "Seconds to wait for slow facts"),
    keyword("handlers", PLAY, Tasks, "Tasks that run when they are notified"),
    keyword("hosts", PLAY, Texts, "Patterns that select the hosts"),
    keyword("max_fail_percentage", PLAY, Percent, "End the play if more hosts of a batch fail"),
    keyword("order", PLAY, Text, "Order of the hosts: `inventory`, `sorted`, `reverse_inventory`, `reverse_sorted`, `shuffle`"),
    keyword("post_tasks", PLAY, Tasks, "Tasks after `tasks`"),
    keyword("pre_tasks", PLAY, Tasks, "Tasks before `roles`"),
    keyword("roles", PLAY, List, "Roles, between `pre_tasks` and `tasks`"),
    keyword("serial", PLAY, Any, "Sizes of the batches of hosts: numbers or percentages"),
    keyword("strategy", PLAY, Text, "How hosts wait for each other: `linear`, `free`, `host_pinned`"),
    keyword("tasks", PLAY, Tasks, "The main tasks"),
    keyword("user", PLAY, Text, "Old name of `remote_user`"),
    keyword("vars_files", PLAY, Any, "Files of variables; of a list within the list, the first that exists"),
    keyword("vars_prompt", PLAY, Any, "Variables to ask for"),

    keyword("block", BLOCK, Tasks, "The tasks of the block"),
    keyword("rescue", BLOCK, Tasks, "Tasks that run if a task of the block fails"),
    keyword("always", BLOCK, Tasks, "Tasks that run whether or not the block failed"),

    keyword("action", TASKS, Any, "The module and its arguments, as text or mapping"),
    keyword("args", TASKS, Any, "Further arguments of the module"),
    keyword("async", TASKS, Int, "Seconds that the task may run in the background"),
    keyword("changed_when", TASKS, Conditions, "Conditions under which the task has changed something"),
    keyword("delay", TASKS, Float, "Seconds between tries; default 5"),
    keyword("failed_when", TASKS, Conditions, "Conditions under which the task has failed"),
    keyword("listen", &[On::Handler], Texts, "Topics that notify this handler"),
    keyword("local_action", TASKS, Any, "As `action`, delegated to localhost"),
    keyword("loop", TASKS, Any, "A list; the task runs once for each item"),
    keyword("loop_control", TASKS, Maps, "How the loop behaves and is shown"),
    keyword("poll", TASKS, Int, "Seconds between looks at an asynchronous task; 0: do not wait; default 15"),
    keyword("register", TASKS, Text, "Variable that gets the result"),
    keyword("retries", TASKS, Int, "Number of further tries for `until`; default 3"),
    keyword("until", TASKS, Conditions, "Try again until all conditions are true"),
];

/// The keys of `loop_control`.
pub const LOOP_CONTROL: &[(&str, Holds, &str)] = &[
    ("break_when", Conditions, "End the loop when all conditions are true after an item"),
    ("extended", Bool, "Set `ansible_loop`"),
    ("extended_allitems", Bool, "Whether `ansible_loop` holds all items; default `true`"),
    ("index_var", Text, "Variable that gets the index, from 0"),
    ("label", Any, "What is shown for the item"),
    ("loop_var", Text, "Variable that gets the item; default `item`"),
    ("pause", Float, "Seconds between items"),
];

/// The keywords that may stand on include_tasks and include_role: all others would be lost, since what is included
/// does not inherit from the include (`apply` is for that).
pub const ON_INCLUDE: &[&str] = &[
    "action",
    "args",
    "collections",
    "debugger",
    "ignore_errors",
    "listen",
    "loop",
    "loop_control",
    "name",
    "no_log",
    "register",
    "run_once",
    "tags",
    "timeout",
    "vars",
    "when",
];

/// Keywords of old playbooks, and what stands for them.
const OLD_NAMES: &[(&str, &str)] = &[
    ("sudo", "become: true"),
    ("sudo_user", "become_user"),
    ("su", "become: true` with `become_method: su"),
    ("su_user", "become_user"),
    ("always_run", "check_mode: false"),
    ("static", "import_tasks` or `include_tasks"),
    ("only_if", "when"),
    ("first_available_file", "with_first_found"),
    ("async_val", "async"),
    ("become_pass", "ansible_become_password` among the variables, or `--ask-become-pass"),
    ("sudo_pass", "ansible_become_password` among the variables, or `--ask-become-pass"),
    ("su_pass", "ansible_become_password` among the variables, or `--ask-become-pass"),
    ("accelerate", "connection: ssh"),
];

/// The keyword of this name, if it may stand there.
pub fn find(name: &str, on: On) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|keyword| keyword.name == name && keyword.on.contains(&on))
}

/// The names of all keywords that may stand there.
pub fn names(on: On) -> impl Iterator<Item = &'static str> {
    KEYWORDS.iter().filter(move |keyword| keyword.on.contains(&on)).map(|keyword| keyword.name)
}

/// The error for a key that is no keyword there.
pub fn unknown(key: &Node, on: On) -> Error {
    let name = key.value().map(|value| value.to_text().into_owned()).unwrap_or_default();
    if let Some(keyword) = KEYWORDS.iter().find(|keyword| keyword.name == name) {
        let places: Vec<&str> = keyword.on.iter().map(|on| on.word()).collect();
        return Error::parse(format!("`{name}` cannot stand on {}", on.word()))
            .at(&key.place)
            .hint(format!("it belongs to {}", join_or(&places)));
    }
    let error = Error::parse(format!("unknown keyword `{name}` on {}", on.word())).at(&key.place);
    match OLD_NAMES.iter().find(|(old, _)| *old == name) {
        Some((_, new)) => error.hint(format!("it is written `{new}` now")),
        None => error.suggest(&name, names(on)),
    }
}

/// Refuses a literal value that is not what the keyword holds; templates are judged when they are rendered.
pub fn check_value(name: &str, holds: Holds, node: &Node) -> Result<(), Error> {
    let value = node.value();
    // lists of tasks and roles are needed while loading
    let is_template = value.is_some_and(Value::has_templates) && !matches!(holds, Holds::Tasks | Holds::List);
    if node.is_null() || node.is_vault() || is_template {
        return Ok(());
    }
    let fits = match holds {
        Holds::Any => true,
        Holds::Text => value.is_some(),
        Holds::Bool => value.is_some_and(|value| value.to_ansible_bool().is_some()),
        Holds::Int => value.is_some_and(|value| number(value).is_some_and(|number| number.fract() == 0.0)),
        Holds::Float => value.is_some_and(|value| number(value).is_some()),
        Holds::Percent => value.is_some_and(|value| is_percent(value) || number(value).is_some()),
        Holds::Texts => value.is_some() || node.as_sequence().is_some(),
        Holds::Conditions => node.as_mapping().is_none(),
        Holds::Maps => node.as_mapping().is_some() || node.as_sequence().is_some(),
        Holds::Tasks | Holds::List => node.as_sequence().is_some(),
    };
    if fits {
        return Ok(());
    }
    let given = match value {
        Some(value) => format!("`{value}`"),
        None => described(node).to_owned(),
    };
    let message = match name {
        "tasks" | "pre_tasks" | "post_tasks" | "handlers" => {
            format!(
                "A malformed block was encountered while loading {name}: {} should be a list or None",
                given.trim_matches('`')
            )
        }
        "roles" => "A malformed role declaration was encountered.".to_owned(),
        _ => format!("`{name}` takes {}, not {given}", holds.word()),
    };
    Err(Error::parse(message).at(&node.place))
}

/// The number that Ansible would read; text counts.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        Value::Str(text) => text.as_str().trim().parse().ok().filter(|number: &f64| number.is_finite()),
        other => other.as_int().map(|number| number as f64),
    }
}

/// True for text such as `30%`.
pub fn is_percent(value: &Value) -> bool {
    let text = value.as_str().and_then(|text| text.trim().strip_suffix('%'));
    text.is_some_and(|number| number.trim().parse::<f64>().is_ok_and(f64::is_finite))
}

/// What a node is, with its article.
pub fn described(node: &Node) -> &'static str {
    match node.kind_name() {
        "mapping" => "a mapping",
        "sequence" => "a list",
        "integer" => "an integer",
        "float" => "a number",
        "boolean" => "a boolean",
        "null" => "nothing",
        _ => "text",
    }
}

/// `a, b or c`.
pub fn join_or(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn node(text: &str) -> Node {
        crate::yaml::load(&Source::new("play.yml", text)).unwrap().unwrap()
    }

    #[test]
    fn names_are_unique_and_helped() {
        for keyword in KEYWORDS {
            assert_eq!(KEYWORDS.iter().filter(|other| other.name == keyword.name).count(), 1, "{}", keyword.name);
            assert!(!keyword.help.is_empty() && !keyword.help.ends_with('.') && !keyword.on.is_empty());
        }
        for name in ON_INCLUDE {
            assert!(KEYWORDS.iter().any(|keyword| keyword.name == *name), "{name}");
        }
    }

    #[test]
    fn literal_values_are_checked() {
        let cases: &[(Holds, &str, Option<&str>)] = &[
            (Bool, "yes", None),
            (Bool, "'t'", None),
            (Bool, "'{{ x }}'", None),
            (Bool, "maybe", Some("`k` takes `true` or `false`, not `maybe`")),
            (Int, "3", None),
            (Int, "'3'", None),
            (Int, "3.5", Some("`k` takes an integer, not `3.5`")),
            (Float, "0.5", None),
            (Float, "soon", Some("`k` takes a number, not `soon`")),
            (Percent, "30%", None),
            (Percent, "30", None),
            (Percent, "a third", Some("`k` takes a number or a percentage, not `a third`")),
            (Conditions, "[a, b]", None),
            (Conditions, "{a: b}", Some("`k` takes a condition or a list of conditions, not a mapping")),
            (Tasks, "a", Some("`k` takes a list of tasks, not `a`")),
            (Text, "[a]", Some("`k` takes text, not a list")),
        ];
        for (holds, text, expected) in cases {
            let message = check_value("k", *holds, &node(text)).err().map(|error| error.message().to_owned());
            assert_eq!(message.as_deref(), *expected, "{holds:?} {text}");
        }
    }
}
