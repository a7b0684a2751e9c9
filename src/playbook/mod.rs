//! Playbooks and roles as they were written: plays, blocks, tasks, handlers, with every keyword's
//! value still unrendered and the place it stands at.
//!
//! Loading resolves what is static: imports, role dependencies, and the keywords that tasks inherit from
//! blocks, roles and the play (so a [`Task`] knows all that applies to it). Includes are loaded when the
//! engine reaches them, by the same functions.

mod argument_specs;
mod block;
pub mod check;
mod collections;
pub mod free_form;
mod gather;
mod include;
pub mod keywords;
mod load;
mod names;
mod play;
mod role;
mod settings;
mod start;
pub mod tags;
mod task;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use indexmap::IndexMap;

pub use collections::playbook_of_collection;
pub use gather::gather_facts_task;
pub use include::{Included, load_role, load_tasks};
pub use load::{Cache, LoadOptions};
pub use play::{load_playbook, load_plays};
pub use role::IncludeFrom;
pub use start::start_at;
pub use tags::TagSelection;

use crate::modules::Module;
use crate::source::Place;
use crate::value::{Map, Value};

/// The number of the next task that is loaded.
static NEXT_TASK: AtomicU64 = AtomicU64::new(1);

/// A keyword's value as written, and where.
#[derive(Debug, Clone)]
pub struct Written {
    pub value: Value,
    pub place: Place,
}

/// One play.
#[derive(Debug, Clone)]
pub struct Play {
    pub place: Place,
    pub name: Option<Written>,
    /// A host pattern, or a list of them.
    pub hosts: Written,
    pub gather_facts: Option<Written>,
    pub gather_subset: Option<Written>,
    /// Seconds.
    pub gather_timeout: Option<Written>,
    pub fact_path: Option<Written>,
    /// Batch sizes: numbers or percents.
    pub serial: Vec<Written>,
    pub strategy: Option<Written>,
    /// `inventory`, `sorted`, `reverse_inventory`, `reverse_sorted`, `shuffle`.
    pub order: Option<Written>,
    pub max_fail_percentage: Option<Written>,
    pub force_handlers: Option<Written>,
    pub vars: Arc<Map>,
    pub vars_files: Vec<Written>,
    pub vars_prompt: Vec<VarsPrompt>,
    /// The roles of `roles:` in their order, then those that import_role brings; not their dependencies (see
    /// [`Role::dependencies`]). The variables of those that are public are visible to the whole play.
    pub roles: Vec<Arc<Role>>,
    pub pre_tasks: Arc<Vec<Item>>,
    /// The tasks of `roles:`, each role a block of its own.
    pub role_tasks: Arc<Vec<Item>>,
    pub tasks: Arc<Vec<Item>>,
    pub post_tasks: Arc<Vec<Item>>,
    /// Handlers in the order in which they run: of `roles:` (dependencies first), of the play, of imported roles.
    /// All are tasks: a block of handlers is taken apart.
    pub handlers: Arc<Vec<Item>>,
    /// The play's own keywords that tasks inherit (without `vars`, which have a level of their own). Its `when` is
    /// that of the import_playbook that brought it, and holds for the gathering of facts too.
    pub settings: Arc<Settings>,
    /// The playbook's directory.
    pub directory: PathBuf,
}

/// An entry of `vars_prompt`.
#[derive(Debug, Clone)]
pub struct VarsPrompt {
    pub name: String,
    pub prompt: Option<Value>,
    pub default: Option<Value>,
    pub private: bool,
    pub confirm: bool,
    /// How to encrypt the answer (a scheme of password_hash).
    pub encrypt: Option<String>,
    pub salt: Option<String>,
    /// Characters.
    pub salt_size: Option<usize>,
    pub unsafe_text: bool,
    pub place: Place,
}

/// A task or a block.
#[derive(Debug, Clone)]
pub enum Item {
    Task(Arc<Task>),
    Block(Arc<Block>),
    /// Where notified handlers run: between the sections of a play.
    FlushHandlers,
}

/// A block with its rescue and always.
#[derive(Debug)]
pub struct Block {
    pub place: Place,
    pub name: Option<Written>,
    pub items: Arc<Vec<Item>>,
    pub rescue: Arc<Vec<Item>>,
    pub always: Arc<Vec<Item>>,
    /// Set if this block is the body of a role.
    pub role: Option<Arc<Role>>,
}

/// A task or a handler.
#[derive(Debug, Clone)]
pub struct Task {
    /// Unique among all tasks of this process.
    pub id: u64,
    pub place: Place,
    pub name: Option<Written>,
    pub action: TaskAction,
    /// Where the action is named.
    pub action_place: Place,
    /// Arguments as written: `key=value` text is parsed, `args:` is merged in.
    pub args: Map,
    /// Where each argument stands, for those that were written as YAML.
    pub arg_places: IndexMap<String, Place>,
    /// `args: "{{ … }}"`: a template that gives a map of further arguments.
    pub args_template: Option<Written>,
    pub looping: Option<Loop>,
    pub register: Option<Written>,
    /// Names of handlers or topics, unrendered; those of the nearest block if the task has none.
    pub notify: Vec<Written>,
    /// Handlers: the topics it listens to.
    pub listen: Vec<Written>,
    pub until: Vec<Written>,
    pub retries: Option<Written>,
    /// Seconds.
    pub delay: Option<Written>,
    pub changed_when: Vec<Written>,
    pub failed_when: Vec<Written>,
    /// Seconds; 0 or absent: not asynchronous.
    pub asynchronous: Option<Written>,
    /// Seconds between polls; 0: do not wait.
    pub poll: Option<Written>,
    /// For include_tasks and include_role: keywords for the included tasks.
    pub apply: Option<Arc<Settings>>,
    pub settings: Arc<Settings>,
    /// What it inherits, without its own keywords: that is what an include hands on.
    pub around: Arc<Settings>,
    pub role: Option<Arc<Role>>,
    pub is_handler: bool,
    /// The directory of the file that this task stands in, for relative paths.
    pub directory: PathBuf,
}

/// What a task does.
#[derive(Debug, Clone)]
pub enum TaskAction {
    Module(&'static Module),
    /// No module of this name; an error when the task is reached (before the run, where it certainly is).
    Unknown(String),
    /// `action: "{{ name }} …"`: the name is known when it is reached.
    Template(Written),
}

/// `loop:` or `with_…:`.
#[derive(Debug, Clone)]
pub struct Loop {
    /// `None` for `loop:`; else the name of the lookup (`items`, `dict`, …).
    pub lookup: Option<String>,
    pub terms: Written,
    pub control: LoopControl,
}

/// `loop_control:`.
#[derive(Debug, Clone, Default)]
pub struct LoopControl {
    pub loop_var: Option<Value>,
    pub index_var: Option<Value>,
    pub label: Option<Value>,
    /// Seconds between items.
    pub pause: Option<Value>,
    pub extended: Option<Value>,
    pub extended_allitems: Option<Value>,
    pub break_when: Vec<Written>,
}

/// The keywords that are inherited, merged for whoever holds them: of most the nearest counts; conditions,
/// tags, environments and variables of all levels add up. All unrendered.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// What is around, for keywords whose value is omitted.
    pub around: Option<Arc<Settings>>,
    /// All must be true; outermost first.
    pub when: Vec<Written>,
    pub tags: Vec<Written>,
    /// Variables of the blocks around, outermost first.
    pub block_vars: Vec<Arc<Map>>,
    /// Variables of the task itself.
    pub task_vars: Option<Arc<Map>>,
    /// Variables of the includes that brought this task (`vars` of include_tasks and include_role, loop items),
    /// outermost first; they stand above set_fact. Those of imports are among `block_vars`.
    pub include_params: Vec<Arc<Map>>,
    pub environment: Vec<Written>,
    pub module_defaults: Vec<Written>,
    pub become_: Option<Written>,
    pub become_user: Option<Written>,
    pub become_method: Option<Written>,
    pub become_exe: Option<Written>,
    pub become_flags: Option<Written>,
    pub connection: Option<Written>,
    pub remote_user: Option<Written>,
    pub port: Option<Written>,
    pub check_mode: Option<Written>,
    pub diff: Option<Written>,
    pub no_log: Option<Written>,
    pub ignore_errors: Option<Written>,
    pub ignore_unreachable: Option<Written>,
    pub any_errors_fatal: Option<Written>,
    pub run_once: Option<Written>,
    pub delegate_to: Option<Written>,
    pub delegate_facts: Option<Written>,
    pub throttle: Option<Written>,
    /// `always`, `never`, `on_failed`, `on_unreachable`, `on_skipped`.
    pub debugger: Option<Written>,
    /// Seconds.
    pub timeout: Option<Written>,
    /// Collections in which short names of roles are looked for, of the nearest that names any.
    pub collections: Option<Arc<Vec<String>>>,
    /// `notify` of a block goes to all its tasks that have none themselves.
    pub notify: Vec<Written>,
}

/// A role as used once: by `roles:`, as a dependency, or by include_role or import_role.
#[derive(Debug)]
pub struct Role {
    /// As it was asked for; the last part if that was a path: `role_name`.
    pub name: String,
    /// Its collection (`namespace.collection`), if it stands in one.
    pub collection: Option<String>,
    /// Absolute.
    pub path: PathBuf,
    pub place: Place,
    /// Its own defaults, without those of dependencies and parents.
    pub defaults: Arc<Map>,
    /// Its own variables, without those of dependencies and parents.
    pub vars: Arc<Map>,
    /// `vars:` where it is used; just above `vars`, and not seen outside of the role.
    pub use_vars: Arc<Map>,
    /// Further keys where it is used (`- role: x` with `key: value`): role parameters, which stand above set_fact.
    pub params: Arc<Map>,
    /// The roles that brought this one (as a dependency, or by including it), nearest first: it sees their
    /// variables. Their own `dependencies` are empty here.
    pub parents: Vec<Arc<Role>>,
    /// The roles that it depends on directly, in order.
    pub dependencies: Vec<Arc<Role>>,
    pub allow_duplicates: bool,
    /// True if include_role or import_role brought it.
    pub is_included: bool,
    /// True if its variables stay visible to later tasks of the play (`roles:`, import_role, `public: true`).
    pub public: bool,
    /// Equal for two uses that are the same to Ansible (same role, parameters, conditions and tags): unless it allows
    /// duplicates, a host runs it once.
    pub identity: String,
    /// `argument_specs`, by entry point.
    pub argument_specs: Option<Arc<Map>>,
}

#[cfg(test)]
mod tests;
