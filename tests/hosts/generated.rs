//! Generated playbooks: few files and many ways to change them, so that tasks meet.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use proptest::prelude::*;

/// One task of a generated playbook. Files are few, so that tasks meet.
#[derive(Debug, Clone)]
pub enum Op {
    Copy {
        file: u8,
        text: u8,
        mode: u8,
    },
    Line {
        file: u8,
        line: u8,
        regexp: bool,
        absent: bool,
    },
    Block {
        file: u8,
        text: u8,
    },
    Replace {
        file: u8,
    },
    Directory {
        directory: u8,
        mode: u8,
    },
    Absent {
        path: u8,
    },
    Link {
        link: u8,
        file: u8,
    },
    Touch {
        file: u8,
    },
    /// Appends to a file: never idempotent, touches everything.
    Append {
        file: u8,
        text: u8,
    },
    /// Looks at a file by a command.
    Count {
        file: u8,
        register: u8,
    },
    Stat {
        path: u8,
        register: u8,
    },
    Slurp {
        file: u8,
        register: u8,
    },
    SetFact {
        fact: u8,
        register: u8,
    },
    /// Writes what a registered result or a fact says.
    CopyOf {
        file: u8,
        register: u8,
    },
    Loop {
        items: Vec<u8>,
        text: u8,
    },
    /// A kernel parameter, as far as its file goes: the kernel itself is not touched.
    Sysctl {
        file: u8,
        value: u8,
        absent: bool,
    },
    Fail {
        kind: u8,
        ignored: bool,
    },
    /// One host finds out for all.
    Once {
        fact: u8,
    },
    /// Works on the files of the next host.
    Elsewhere {
        file: u8,
        text: u8,
    },
    /// Writes what another host knows.
    OfAnother {
        file: u8,
        fact: u8,
    },
    Flush,
    Nested {
        body: Vec<Task>,
        rescue: Vec<Task>,
        always: Vec<Task>,
    },
}

#[derive(Debug, Clone)]
pub struct Task {
    pub op: Op,
    pub when: Option<When>,
    pub notify: Option<u8>,
}

#[derive(Debug, Clone)]
pub enum When {
    Changed(u8),
    Exists(u8),
    FactDefined(u8),
    Never,
}

fn leaf() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..4u8, 0..3u8, 0..2u8).prop_map(|(file, text, mode)| Op::Copy { file, text, mode }),
        4 => (0..4u8, 0..3u8, any::<bool>(), any::<bool>())
            .prop_map(|(file, line, regexp, absent)| Op::Line { file, line, regexp, absent }),
        1 => (0..4u8, 0..3u8).prop_map(|(file, text)| Op::Block { file, text }),
        1 => (0..4u8).prop_map(|file| Op::Replace { file }),
        2 => (0..2u8, 0..2u8).prop_map(|(directory, mode)| Op::Directory { directory, mode }),
        2 => (0..6u8).prop_map(|path| Op::Absent { path }),
        2 => (0..2u8, 0..4u8).prop_map(|(link, file)| Op::Link { link, file }),
        1 => (0..4u8).prop_map(|file| Op::Touch { file }),
        2 => (0..4u8, 0..3u8).prop_map(|(file, text)| Op::Append { file, text }),
        1 => (0..4u8, 0..3u8).prop_map(|(file, register)| Op::Count { file, register }),
        3 => (0..6u8, 0..3u8).prop_map(|(path, register)| Op::Stat { path, register }),
        1 => (0..4u8, 0..3u8).prop_map(|(file, register)| Op::Slurp { file, register }),
        2 => (0..2u8, 0..3u8).prop_map(|(fact, register)| Op::SetFact { fact, register }),
        2 => (0..4u8, 0..3u8).prop_map(|(file, register)| Op::CopyOf { file, register }),
        2 => (prop::collection::vec(0..4u8, 0..4), 0..3u8).prop_map(|(items, text)| Op::Loop { items, text }),
        2 => (0..2u8, 0..3u8, any::<bool>()).prop_map(|(file, value, absent)| Op::Sysctl { file, value, absent }),
        1 => (0..3u8, any::<bool>()).prop_map(|(kind, ignored)| Op::Fail { kind, ignored }),
        1 => (0..2u8).prop_map(|fact| Op::Once { fact }),
        1 => (0..4u8, 0..3u8).prop_map(|(file, text)| Op::Elsewhere { file, text }),
        1 => (0..4u8, 0..2u8).prop_map(|(file, fact)| Op::OfAnother { file, fact }),
        1 => Just(Op::Flush),
    ]
}

fn task(op: impl Strategy<Value = Op>) -> impl Strategy<Value = Task> {
    let when = prop_oneof![
        (0..3u8).prop_map(When::Changed),
        (0..3u8).prop_map(When::Exists),
        (0..2u8).prop_map(When::FactDefined),
        Just(When::Never),
    ];
    (op, prop::option::weighted(0.3, when), prop::option::weighted(0.3, 0..3u8)).prop_map(|(op, when, notify)| Task {
        op,
        when,
        notify,
    })
}

/// Tasks, blocks among them.
pub fn tasks(sizes: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Task>> {
    let nested = (
        prop::collection::vec(task(leaf()), 1..4),
        prop::collection::vec(task(leaf()), 0..3),
        prop::collection::vec(task(leaf()), 0..2),
    )
        .prop_map(|(body, rescue, always)| Op::Nested { body, rescue, always });
    prop::collection::vec(task(prop_oneof![8 => leaf(), 1 => nested]), sizes)
}

/// The paths that tasks meet at: files in the root and in a directory, a directory, and links.
fn path(number: u8) -> String {
    ["a", "b", "d0/c", "d0/e", "d0", "l0", "l1", "d1"][usize::from(number) % 8].to_owned()
}

fn render(tasks: &[Task], indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    for (number, task) in tasks.iter().enumerate() {
        let name = format!("task {indent}.{number}");
        let body = match &task.op {
            Op::Copy { file, text, mode } => format!(
                "copy:\n    dest: '{{{{ root }}}}/{}'\n    content: \"text {text}\\nsecond\\n\"\n    mode: '{}'",
                path(*file),
                ["0644", "0600"][usize::from(*mode)]
            ),
            Op::Line { file, line, regexp, absent } => format!(
                "lineinfile:\n    path: '{{{{ root }}}}/{}'\n    line: key = {line}\n    create: true\n{}    state: {}",
                path(*file),
                if *regexp { "    regexp: '^key'\n" } else { "" },
                if *absent { "absent" } else { "present" }
            ),
            Op::Block { file, text } => format!(
                "blockinfile:\n    path: '{{{{ root }}}}/{}'\n    create: true\n    block: block {text}",
                path(*file)
            ),
            Op::Replace { file } => {
                format!("replace:\n    path: '{{{{ root }}}}/{}'\n    regexp: second\n    replace: third", path(*file))
            }
            Op::Directory { directory, mode } => format!(
                "file:\n    path: '{{{{ root }}}}/d{directory}'\n    state: directory\n    mode: '{}'",
                ["0755", "0700"][usize::from(*mode)]
            ),
            Op::Absent { path: number } => {
                format!("file:\n    path: '{{{{ root }}}}/{}'\n    state: absent", path(*number))
            }
            Op::Link { link, file } => format!(
                "file:\n    src: '{{{{ root }}}}/{}'\n    dest: '{{{{ root }}}}/l{link}'\n    state: link\n    force: true",
                path(*file)
            ),
            Op::Touch { file } => format!(
                "file:\n    path: '{{{{ root }}}}/{}'\n    state: touch\n    modification_time: preserve\n    access_time: preserve",
                path(*file)
            ),
            Op::Append { file, text } => {
                format!("shell: echo appended {text} >> {{{{ root }}}}/{}", path(*file))
            }
            Op::Count { file, register } => format!(
                "command: wc -l {{{{ root }}}}/{}\n  register: r{register}\n  changed_when: false\n  failed_when: false",
                path(*file)
            ),
            Op::Stat { path: number, register } => {
                format!("stat:\n    path: '{{{{ root }}}}/{}'\n  register: r{register}", path(*number))
            }
            Op::Slurp { file, register } => format!(
                "slurp:\n    src: '{{{{ root }}}}/{}'\n  register: r{register}\n  ignore_errors: true",
                path(*file)
            ),
            Op::SetFact { fact, register } => {
                format!("set_fact:\n    f{fact}: \"{{{{ r{register}.changed | default('none') }}}}\"")
            }
            Op::CopyOf { file, register } => format!(
                "copy:\n    dest: '{{{{ root }}}}/{}'\n    content: \"{{{{ r{register}.rc | default('no rc') }}}} {{{{ f0 | default('no fact') }}}}\\n\"",
                path(*file)
            ),
            Op::Loop { items, text } => format!(
                "copy:\n    dest: '{{{{ root }}}}/{{{{ item }}}}'\n    content: \"loop {text}\\n\"\n  loop: [{}]\n  register: r0",
                items.iter().map(|item| path(*item)).collect::<Vec<_>>().join(", ")
            ),
            Op::Sysctl { file, value, absent } => format!(
                "sysctl:\n    name: vm.swappiness\n    value: '{value}'\n    sysctl_file: '{{{{ root }}}}/{}'\n    reload: false\n    sysctl_set: false\n    state: {}",
                path(*file),
                if *absent { "absent" } else { "present" }
            ),
            Op::Fail { kind, ignored } => {
                let action =
                    ["command: 'false'", "fail: {msg: planned}", "copy: {dest: '{{ root }}/none/x', content: y}"];
                format!("{}\n  ignore_errors: {ignored}", action[usize::from(*kind)])
            }
            Op::Once { fact } => {
                format!("set_fact:\n    f{fact}: \"{{{{ inventory_hostname }}}} {number}\"\n  run_once: true")
            }
            Op::Elsewhere { file, text } => format!(
                "copy:\n    dest: '{{{{ base }}}}/{{{{ next }}}}/{}'\n    content: \"from {{{{ inventory_hostname }}}} {text}\\n\"\n  delegate_to: '{{{{ next }}}}'",
                path(*file)
            ),
            Op::OfAnother { file, fact } => format!(
                "copy:\n    dest: '{{{{ root }}}}/{}'\n    content: \"{{{{ hostvars[next].f{fact} | default('unset') }}}} {{{{ ansible_play_hosts | join(',') }}}}\\n\"",
                path(*file)
            ),
            Op::Flush => "meta: flush_handlers".to_owned(),
            Op::Nested { body, rescue, always } => {
                let _ = write!(out, "{pad}- name: block\n{pad}  block:\n");
                render(body, indent + 4, out);
                for (word, list) in [("rescue", rescue), ("always", always)] {
                    if !list.is_empty() {
                        let _ = writeln!(out, "{pad}  {word}:");
                        render(list, indent + 4, out);
                    }
                }
                continue;
            }
        };
        let _ = write!(out, "{pad}- name: {name}\n{pad}  {}\n", body.replace('\n', &format!("\n{pad}")));
        if matches!(task.op, Op::Flush) {
            continue;
        }
        match &task.when {
            None => {}
            Some(When::Changed(register)) => {
                let _ = writeln!(out, "{pad}  when: (r{register} | default({{}})).changed | default(false)");
            }
            Some(When::Exists(register)) => {
                let _ = writeln!(
                    out,
                    "{pad}  when: ((r{register} | default({{}})).stat | default({{}})).exists | default(true)"
                );
            }
            Some(When::FactDefined(fact)) => {
                let _ = writeln!(out, "{pad}  when: f{fact} is defined");
            }
            Some(When::Never) => {
                let _ = writeln!(out, "{pad}  when: false");
            }
        }
        if let Some(handler) = task.notify {
            let _ = writeln!(out, "{pad}  notify: handler {handler}");
        }
    }
}

/// The playbook of these tasks; its files are below `base`.
pub fn playbook(tasks: &[Task]) -> String {
    let mut text = "- hosts: all\n  gather_facts: false\n  vars:\n    root: '{{ base }}/{{ inventory_hostname }}'\n    next: '{{ groups.all[(groups.all.index(inventory_hostname) + 1) % (groups.all | length)] }}'\n  tasks:\n".to_owned();
    render(tasks, 4, &mut text);
    text.push_str("  handlers:\n");
    for number in 0..3 {
        let _ = write!(
            text,
            "    - name: handler {number}\n      shell: echo handler {number} >> {{{{ root }}}}/handled\n"
        );
    }
    text
}

/// Everything below a directory: kind, mode, content or target, by path.
pub fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(directory) = todo.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            let what = if meta.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                format!("link {}", target.to_string_lossy().replace(root.to_str().unwrap(), "ROOT"))
            } else if meta.is_dir() {
                todo.push(path.clone());
                "directory".to_owned()
            } else {
                format!("file {:?}", String::from_utf8_lossy(&fs::read(&path).unwrap()))
            };
            let mode = if meta.is_symlink() { 0 } else { meta.permissions().mode() };
            found.insert(name, format!("{mode:o} {} {what}", meta.uid()));
        }
    }
    found
}
