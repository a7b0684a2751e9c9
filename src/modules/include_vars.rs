//! ansible.builtin.include_vars: loads variables from files of the controller.

use std::path::{Path, PathBuf};

use crate::host::Failure;
use crate::source::Source;
use crate::template::Context;
use crate::value::{Map, Value};
use crate::vault::{Keyring, is_encrypted};
use crate::yaml;

use super::{Action, Arg, Args, Effect, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};
use crate::python_regex::{Flags, compile};

pub const MODULE: Module = Module {
    name: "ansible.builtin.include_vars",
    aliases: &[],
    summary: "Loads variables from a file, or from all files of a directory, of the controller",
    args: &[
        Arg::new(
            "file",
            Type::Path,
            "The file; looked for in `vars/` of role and playbook, and beside the task's file",
        )
        .aliases(&["_raw_params"]),
        Arg::new("dir", Type::Path, "A directory; its files are loaded in the order of their names"),
        Arg::new("name", Type::Str, "Put the variables into one variable of this name"),
        Arg::new("depth", Type::Int, "How deep to look below `dir`; 0: all the way").default("0"),
        Arg::new("files_matching", Type::Str, "Load only files whose names match this regular expression"),
        Arg::new("ignore_files", Type::List, "Leave out files whose names match one of these regular expressions"),
        Arg::new("extensions", Type::List, "The file name extensions that hold variables").default("json,yaml,yml"),
        Arg::new("ignore_unknown_extensions", Type::Bool, "Leave out files with other extensions, do not fail")
            .default("false"),
        Arg::new("hash_behaviour", Type::Str, "Replace maps of the same name, or merge into them")
            .choices(&["replace", "merge"]),
    ],
    rules: &[Rule::MutuallyExclusive(&["file", "dir"])],
    free_form: FreeForm::Argument("file"),
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[
        ("ansible_facts", "the variables"),
        ("ansible_included_var_files", "the files that were loaded, by their absolute paths"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    // Ansible tells of a failure by this key
    include(&invocation.args, &invocation.context).map_err(|failure| {
        let message = failure.message.clone();
        failure.with("message", message)
    })
}

fn include(args: &Args, context: &Context) -> Result<Outcome, Failure> {
    // written as free text it may end with a line break
    let files = match (args.str("file").map(str::trim).filter(|file| !file.is_empty()), args.str("dir")) {
        (Some(file), _) => {
            let found = context.search.find("vars", file).ok_or_else(|| {
                Failure::new(format!("Could not find or access '{file}' on the Ansible Controller."))
                    .with("ansible_included_var_files", Value::list(Vec::new()))
            })?;
            vec![found]
        }
        (None, Some(directory)) => files_below(directory, args, context)?,
        (None, None) => {
            return Err(Failure::new(
                "Could not find file on the Ansible Controller: one of the following is required: file, dir",
            ));
        }
    };
    let mut variables = Map::new();
    for file in &files {
        variables.extend(load(file, &context.keyring)?);
    }
    if let Some(name) = args.str("name") {
        super::set_fact::check_name(name)?;
        variables = Map::from_iter([(name.into(), variables.into())]);
    }
    if args.str("hash_behaviour") == Some("merge") {
        for (name, value) in &mut variables {
            let present = context.scope.get(&name.to_text()).map_err(Failure::interrupted)?;
            if let Some(present) = present {
                *value = merged(&present, value);
            }
        }
    }
    super::set_fact::warn_of_reserved_names(&variables, context);
    let names: Vec<Value> = files.iter().map(|file| absolute(file).to_string_lossy().into_owned().into()).collect();
    Ok(Outcome::ok()
        .with("ansible_facts", variables.clone())
        .with("ansible_included_var_files", names)
        .effect(Effect::IncludeVars(variables)))
}

fn is_same(left: &Path, right: &Path) -> bool {
    matches!((left.canonicalize(), right.canonicalize()), (Ok(left), Ok(right)) if left == right)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The variables of one file; an empty one has none.
fn load(path: &Path, keyring: &Keyring) -> Result<Map, Failure> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|error| Failure::new(format!("cannot read {shown}: {error}")))?;
    let source = if is_encrypted(&bytes) { Source::secret } else { Source::new };
    let text = String::from_utf8(keyring.open(path, bytes)?)
        .map_err(|_| Failure::new(format!("{shown} is not text in UTF-8")))?;
    match yaml::load(&source(path, text))? {
        None => Ok(Map::new()),
        Some(node) if node.as_mapping().is_some() => Ok(node.to_map()),
        Some(node) => {
            Err(Failure::new(format!("{shown} must be stored as a dictionary/hash, not a {}", node.kind_name())))
        }
    }
}

/// Every file below the directory that is to be loaded, in order.
fn files_below(directory: &str, args: &Args, context: &Context) -> Result<Vec<PathBuf>, Failure> {
    let root = context
        .search
        .find("vars", directory)
        .ok_or_else(|| Failure::new(format!("{directory} directory does not exist")))?;
    if !root.is_dir() {
        return Err(Failure::new(format!("{} is not a directory", root.display())));
    }
    let matching = args.str("files_matching").map(|pattern| compile(pattern, Flags::default())).transpose()?;
    let ignored = args
        .list("ignore_files")
        .iter()
        .map(|pattern| compile(pattern, Flags::default()))
        .collect::<Result<Vec<_>, _>>()?;
    let extensions = args.list("extensions");
    // the role's own main file is loaded by the role
    let is_vars_of_role = context.search.role_dirs.iter().any(|role| is_same(&role.join("vars"), &root));
    let mut files = Vec::new();
    for path in walk(&root, args.int("depth").unwrap_or(0))? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let matches = |pattern: &std::sync::Arc<fancy_regex::Regex>| pattern.is_match(&name).unwrap_or(false);
        let is_main =
            is_vars_of_role && path.parent() == Some(root.as_path()) && name.split('.').next() == Some("main");
        if is_main || ignored.iter().any(matches) || matching.as_ref().is_some_and(|pattern| !matches(pattern)) {
            continue;
        }
        let extension = path.extension().map(|extension| extension.to_string_lossy().into_owned()).unwrap_or_default();
        if extensions.iter().any(|known| known.trim_start_matches('.') == extension) {
            files.push(path);
        } else if !args.bool("ignore_unknown_extensions") {
            return Err(Failure::new(format!(
                "{} does not have a valid extension: {}",
                path.display(),
                extensions.join(", ")
            )));
        }
    }
    Ok(files)
}

/// The files of a directory, then those of its directories, each in the order of their names; links are followed.
fn walk(root: &Path, depth: i64) -> Result<Vec<PathBuf>, Failure> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(root)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
        .map_err(|error| Failure::new(format!("cannot list {}: {error}", root.display())))?;
    entries.sort();
    let (directories, mut files): (Vec<PathBuf>, Vec<PathBuf>) = entries.into_iter().partition(|path| path.is_dir());
    if depth != 1 {
        for directory in directories {
            files.extend(walk(&directory, depth - 1)?);
        }
    }
    Ok(files)
}

/// Maps within maps are merged; anything else is replaced.
fn merged(present: &Value, new: &Value) -> Value {
    match (present.as_map(), new.as_map()) {
        (Some(present), Some(new)) => {
            let mut map = present.clone();
            for (key, value) in new {
                let value = map.get(key).map_or_else(|| value.clone(), |present| merged(present, value));
                map.insert(key.clone(), value);
            }
            map.into()
        }
        _ => new.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::modules::args::validate;
    use crate::modules::testing::context_with;
    use crate::template::SearchPath;
    use crate::value::object;

    fn included<const N: usize>(root: &Path, given: [(&str, Value); N]) -> Result<String, String> {
        let search = SearchPath {
            role_dirs: vec![root.join("roles/tune")],
            task_dir: Some(root.join("roles/tune/tasks")),
            playbook_dir: root.to_owned(),
        };
        let context = context_with([("limits", object([("soft", 1.into()), ("hard", 2.into())]).into())]);
        let args = validate(&MODULE, &object(given)).map_err(|failure| failure.message)?;
        match include(&args, &context.with_search(Arc::new(search))) {
            Ok(outcome) => match outcome.effect {
                Effect::IncludeVars(variables) => Ok(Value::from(variables).to_repr()),
                other => Err(format!("{other:?}")),
            },
            Err(failure) => Err(failure.message),
        }
    }

    #[test]
    fn files_and_directories_are_loaded() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("roles/tune/vars/main.yml", "never: 1\n");
        write("roles/tune/vars/EulerOS.yml", "queue: 8\n");
        write("roles/tune/vars/more/a.json", "{\"x\": 1}");
        write("roles/tune/vars/more/b.yml", "x: 2\n");
        write("roles/tune/vars/more/deep/c.yml", "y: 3\n");
        write("limits.yml", "limits: {soft: 5}\n");
        write("list.yml", "- 1\n");
        type Case = (Vec<(&'static str, Value)>, Result<&'static str, &'static str>);
        let cases: Vec<Case> = vec![
            (vec![("file", "EulerOS.yml".into())], Ok("{'queue': 8}")),
            (vec![("file", "EulerOS.yml".into()), ("name", "tuned".into())], Ok("{'tuned': {'queue': 8}}")),
            (vec![("dir", "more".into())], Ok("{'x': 2, 'y': 3}")),
            (vec![("dir", "more".into()), ("depth", 1.into())], Ok("{'x': 2}")),
            (vec![("dir", "more".into()), ("files_matching", "^a".into())], Ok("{'x': 1}")),
            (vec![("dir", "more".into()), ("ignore_files", "b.yml".into())], Ok("{'x': 1, 'y': 3}")),
            (vec![("dir", "more".into()), ("extensions", "yml".into())], Err("valid extension: yml")),
            (
                vec![("file", "limits.yml".into()), ("hash_behaviour", "merge".into())],
                Ok("{'limits': {'soft': 5, 'hard': 2}}"),
            ),
            (vec![("file", "none.yml".into())], Err("Could not find or access 'none.yml'")),
            (vec![("file", "list.yml".into())], Err("must be stored as a dictionary/hash, not a sequence")),
            (vec![("file", "a".into()), ("dir", "b".into())], Err("mutually exclusive")),
        ];
        for (given, wanted) in cases {
            let args: Map = given.iter().map(|(name, value)| (Value::from(*name), value.clone())).collect();
            let shown = Value::from(args.clone()).to_repr();
            let result = match given.len() {
                1 => included(root.path(), [given[0].clone()]),
                _ => included(root.path(), [given[0].clone(), given[1].clone()]),
            };
            match (result, wanted) {
                (Ok(got), Ok(wanted)) => assert_eq!(got, wanted, "{shown}"),
                (Err(got), Err(wanted)) => assert!(got.contains(wanted), "{shown}: {got}"),
                (got, wanted) => panic!("{shown}: {got:?}, not {wanted:?}"),
            }
        }
        // the main file of the role's own directory is the role's to load
        let own = [("dir", "roles/tune/vars".into()), ("depth", 1.into())];
        assert_eq!(included(root.path(), own).unwrap(), "{'queue': 8}");
    }
}
