//! A run: play after play, batch after batch, the hosts of a batch all at once.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;

use crate::error::{Error, Result};
use crate::inventory::{self, HostId, Inventory};
use crate::playbook::{Item, Play, Role, Written};
use crate::value::{Map, Value};
use crate::vars::{PlayVars, TaskScope};

use super::barrier::Course;
use super::event::Event;
use super::options::{Gathering, PatternMismatch};
use super::play::{PlayRun, Run};
use super::view::host_view;
use super::walk::{HostEnd, Walker};

/// Hosts that are out of the run.
#[derive(Default)]
pub struct Lost {
    hosts: Mutex<HashMap<HostId, HostEnd>>,
}

impl Lost {
    pub fn add(&self, host: HostId, end: HostEnd) {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).insert(host, end);
    }

    pub fn has(&self, host: HostId) -> bool {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&host)
    }

    pub fn is_empty(&self) -> bool {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub fn clear(&self) {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Runs plays on the hosts of the inventory that `limit` allows (`None`: all). `playbooks` says how many plays are left
/// behind each playbook but the last: with a host that failed or was not reached, the next playbook is not begun.
pub async fn run_plays(
    run: &Arc<Run>,
    plays: &[Arc<Play>],
    playbooks: &[usize],
    limit: Option<&HashSet<HostId>>,
) -> Result<()> {
    recall_facts(run)?;
    for (index, play) in plays.iter().enumerate() {
        run.replace_inventory(|inventory| inventory.set_playbook_directory(&play.directory));
        if !run_play(run, play, index as u32, limit).await? {
            break;
        }
        if playbooks.contains(&(plays.len() - index - 1)) && !run.lost.is_empty() {
            break;
        }
    }
    for lane in run.lanes() {
        let counters = lane.counters().await;
        run.tell(Event::HostCost { host: lane.target.name.as_str().into(), counters });
        lane.close().await;
    }
    Ok(())
}

/// Reads the facts that runs before have kept, or forgets them.
fn recall_facts(run: &Run) -> Result<()> {
    let Some(cache) = &run.options.fact_cache else { return Ok(()) };
    let inventory = run.inventory();
    let localhost = inventory.find_host("localhost");
    for id in inventory.hosts().map(|(id, _)| id).chain(localhost) {
        let name = &inventory.host(id).name;
        if run.options.flush_cache {
            cache.forget(name)?;
        } else if let Some(facts) = cache.load(name) {
            run.fleet.remember(id, facts);
        }
    }
    Ok(())
}

/// Runs one play; false if the run ends with it, since no host is left.
async fn run_play(run: &Arc<Run>, play: &Arc<Play>, index: u32, limit: Option<&HashSet<HostId>>) -> Result<bool> {
    let inventory = run.inventory();
    let prompted = prompted(run, play)?;
    let base = base_scope(run, play, &inventory, &prompted);
    let patterns = patterns(play, &base)?;
    let name = match &play.name {
        Some(written) => {
            base.context().value(&written.value).unwrap_or_else(|_| written.value.clone()).to_text().into_owned()
        }
        None => patterns.join(":"),
    };
    let selection = inventory.select(&patterns)?;
    for pattern in &selection.unmatched {
        let message = format!("Could not match supplied host pattern, ignoring: {pattern}");
        match run.options.pattern_mismatch {
            PatternMismatch::Ignored => {}
            PatternMismatch::Warning => run.tell(Event::Warning(message)),
            PatternMismatch::Error => return Err(Error::input(message).at(&play.hosts.place)),
        }
    }
    let mut hosts = selection.hosts;
    if let Some(limit) = limit {
        // hosts that came since are judged by the pattern itself
        let text = run.options.limit.as_deref().unwrap_or_default();
        let now = inventory.limit(text).unwrap_or_default();
        hosts.retain(|host| limit.contains(host) || now.contains(host));
    }
    let names = |hosts: &[HostId]| hosts.iter().map(|host| Arc::clone(&inventory.host(*host).name)).collect::<Vec<_>>();
    run.tell(Event::PlayStarted { play: index, name: name.clone(), hosts: names(&hosts) });
    if hosts.is_empty() {
        run.tell(Event::NoHosts { play: index, pattern: patterns.join(":") });
        return Ok(true);
    }
    run.warn_of_reserved(std::iter::once(play.vars.as_ref()));
    // the variables name them in the order of the inventory, whatever the order of the play
    let everybody = names(&hosts);
    order(&mut hosts, play, &inventory, &base)?;
    let mut end_play = false;
    hosts.retain(|host| !run.lost.has(*host));
    if hosts.is_empty() {
        return Ok(false);
    }
    for (batch, hosts) in batches(&hosts, play, &base)?.into_iter().enumerate() {
        let batch = Batch { index, number: batch as u32, hosts, name: &name, everybody: &everybody };
        let outcome = run_batch(run, play, &base, &prompted, batch).await?;
        end_play |= outcome.end_play;
        if outcome.all_lost {
            return Ok(false);
        }
        if end_play || outcome.stopped {
            break;
        }
    }
    Ok(true)
}

/// The scope of a play before any host: extra variables, the play's own, and what holds for the run.
fn base_scope(run: &Arc<Run>, play: &Arc<Play>, inventory: &Inventory, prompted: &Map) -> TaskScope {
    let vars = PlayVars {
        vars: Arc::clone(&play.vars),
        prompted: prompted.clone(),
        roles: Vec::new(),
        magic: play_magic(play),
    };
    let localhost = inventory.find_host("localhost");
    TaskScope {
        run: Arc::clone(&run.vars),
        play: Arc::new(vars),
        play_files: Arc::default(),
        host: Arc::new(localhost.map(|host| host_view(inventory, host)).unwrap_or_default()),
        runtime: Arc::default(),
        ahead: Vec::new(),
        task: None,
        local: Map::new(),
        neighbours: Arc::new(Nobody),
        controller_changes: false,
    }
}

/// The neighbours of a scope that has none.
struct Nobody;

impl crate::vars::scope::Neighbours for Nobody {
    fn names(&self) -> Vec<Arc<str>> {
        Vec::new()
    }

    fn scope(&self, _name: &str) -> Result<Option<TaskScope>, crate::value::Interruption> {
        Ok(None)
    }

    fn departed(&self) -> Result<Vec<Arc<str>>, crate::value::Interruption> {
        Ok(Vec::new())
    }
}

fn play_magic(play: &Play) -> Map {
    Map::from_iter([("playbook_dir".into(), Value::from(play.directory.to_string_lossy().into_owned()))])
}

fn prompted(run: &Run, play: &Play) -> Result<Map> {
    let mut answers = Map::new();
    for prompt in &play.vars_prompt {
        if run.vars.extra.contains_key(prompt.name.as_str()) {
            continue;
        }
        answers.insert(Value::from(prompt.name.as_str()), (run.ask)(prompt)?);
    }
    Ok(answers)
}

/// Renders a keyword of the play, null if it is to be omitted; what goes wrong points to it.
fn render(written: &Written, scope: &TaskScope) -> Result<Value> {
    let value = scope
        .context()
        .value(&written.value)
        .map_err(|error| Error::input(error.message().to_owned()).at(&written.place))?;
    Ok(if scope.is_omitted(&value) { Value::Null } else { value })
}

fn patterns(play: &Play, scope: &TaskScope) -> Result<Vec<String>> {
    let value = render(&play.hosts, scope)?;
    let patterns: Vec<String> = match &value {
        Value::List(items) => items.iter().map(|item| item.to_text().into_owned()).collect(),
        single => vec![single.to_text().into_owned()],
    };
    if patterns.iter().all(|pattern| pattern.trim().is_empty()) {
        return Err(Error::input("`hosts` of this play is empty").at(&play.hosts.place));
    }
    Ok(patterns)
}

fn order(hosts: &mut [HostId], play: &Play, inventory: &Inventory, scope: &TaskScope) -> Result<()> {
    let Some(written) = &play.order else { return Ok(()) };
    let name = |host: &HostId| Arc::clone(&inventory.host(*host).name);
    let order = render(written, scope)?;
    match if order.is_null() { "".into() } else { order.to_text() }.as_ref() {
        "inventory" | "" => {}
        "reverse_inventory" => hosts.reverse(),
        "sorted" => hosts.sort_by_key(name),
        "reverse_sorted" => {
            hosts.sort_by_key(name);
            hosts.reverse();
        }
        "shuffle" => {
            for last in (1..hosts.len()).rev() {
                let mut bytes = [0; 8];
                getrandom::fill(&mut bytes).map_err(|error| Error::system(format!("no random numbers: {error}")))?;
                hosts.swap(last, (u64::from_le_bytes(bytes) % (last as u64 + 1)) as usize);
            }
        }
        other => {
            let known = ["inventory", "reverse_inventory", "sorted", "reverse_sorted", "shuffle"];
            return Err(Error::input(format!("`order` cannot be `{other}`")).at(&written.place).suggest(other, known));
        }
    }
    Ok(())
}

/// Splits hosts by `serial`: numbers and percents of all hosts; the last size goes on to the end.
fn batches(hosts: &[HostId], play: &Play, scope: &TaskScope) -> Result<Vec<Vec<HostId>>> {
    let mut sizes = Vec::new();
    for written in &play.serial {
        let value = render(written, scope)?;
        let entries = match &value {
            Value::Null => Vec::new(),
            Value::List(items) => items.to_vec(),
            single => vec![single.clone()],
        };
        for entry in entries {
            sizes.push(batch_size(&entry, hosts.len()).ok_or_else(|| {
                Error::input(format!("`serial` wants a number or a percentage, got `{}`", entry.to_text()))
                    .at(&written.place)
            })?);
        }
    }
    Ok(split(hosts, &sizes))
}

fn batch_size(value: &Value, all: usize) -> Option<usize> {
    let text = value.to_text();
    let text = text.trim();
    match text.strip_suffix('%') {
        Some(percent) => {
            let percent: f64 = percent.trim().parse().ok()?;
            Some(((percent / 100.0 * all as f64) as usize).max(1))
        }
        None => {
            let number: i64 = text.parse().ok()?;
            Some(if number <= 0 { all } else { number as usize })
        }
    }
}

fn split(hosts: &[HostId], sizes: &[usize]) -> Vec<Vec<HostId>> {
    let mut batches = Vec::new();
    let mut rest = hosts;
    let mut number = 0;
    while !rest.is_empty() {
        let size = sizes.get(number).or(sizes.last()).copied().unwrap_or(rest.len()).clamp(1, rest.len());
        let (batch, others) = rest.split_at(size);
        batches.push(batch.to_vec());
        rest = others;
        number += 1;
    }
    batches
}

struct Batch<'a> {
    index: u32,
    number: u32,
    hosts: Vec<HostId>,
    name: &'a str,
    everybody: &'a [Arc<str>],
}

/// True for the strategies that let each host go its own way; those of plugins are called after them (`mitogen_free`).
pub fn is_free(strategy: &str) -> bool {
    ["free", "host_pinned"].iter().any(|name| strategy.trim().ends_with(name))
}

#[derive(Default)]
struct BatchEnd {
    end_play: bool,
    all_lost: bool,
    stopped: bool,
}

async fn run_batch(
    run: &Arc<Run>,
    play: &Arc<Play>,
    base: &TaskScope,
    prompted: &Map,
    batch: Batch<'_>,
) -> Result<BatchEnd> {
    let Batch { index, number, hosts, name, everybody } = batch;
    let inventory = run.inventory();
    let names: Vec<Arc<str>> = hosts.iter().map(|host| Arc::clone(&inventory.host(*host).name)).collect();
    run.tell(Event::BatchStarted { play: index, batch: number, hosts: names.clone() });
    let max_fail_percentage = match &play.max_fail_percentage {
        None => None,
        Some(written) => {
            let value = Some(render(written, base)?).filter(|value| !value.is_null());
            let text = value.map(|value| value.to_text().into_owned());
            let number = text.map(|text| {
                text.trim().trim_end_matches('%').parse::<f64>().map_err(|_| {
                    Error::input(format!("`max_fail_percentage` wants a number, got `{text}`")).at(&written.place)
                })
            });
            number.transpose()?
        }
    };
    let flag = |written: &Option<Written>| match written {
        None => Ok(false),
        Some(written) => render(written, base).map(|value| value.to_ansible_bool().unwrap_or(false)),
    };
    let free = match &play.strategy {
        None => run.options.free,
        Some(written) => is_free(&render(written, base)?.to_text()),
    };
    let in_order = run.options.forks == 1 && !free && hosts.len() > 1;
    let strict = in_order
        || !free && (max_fail_percentage.is_some() || flag(&play.settings.any_errors_fatal)? || has_fatal_tasks(play));
    let list = |names: &[Arc<str>]| Value::list(names.iter().map(|name| name.as_ref().into()).collect());
    let mut magic = play_magic(play);
    magic.insert("ansible_play_name".into(), name.into());
    magic.insert("ansible_play_hosts_all".into(), list(everybody));
    magic.insert("ansible_play_hosts".into(), list(everybody));
    let of_batch: Vec<Arc<str>> = everybody.iter().filter(|name| names.contains(name)).cloned().collect();
    magic.insert("ansible_play_batch".into(), list(&of_batch));
    magic.insert("play_hosts".into(), list(&of_batch));
    let names_of = |roles: &[&Arc<Role>]| {
        let mut names: Vec<&str> = roles.iter().map(|role| role.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        Value::list(names.into_iter().map(Value::from).collect())
    };
    let (mut all, mut dependencies): (Vec<&Arc<Role>>, Vec<&Arc<Role>>) = (play.roles.iter().collect(), Vec::new());
    let mut next = 0;
    while let Some(role) = all.get(next).copied() {
        dependencies.extend(&role.dependencies);
        all.extend(&role.dependencies);
        next += 1;
    }
    magic.insert("ansible_play_role_names".into(), names_of(&play.roles.iter().collect::<Vec<_>>()));
    magic.insert("ansible_dependent_role_names".into(), names_of(&dependencies));
    magic.insert("ansible_role_names".into(), names_of(&all));
    magic.insert("role_names".into(), names_of(&play.roles.iter().collect::<Vec<_>>()));
    let vars = PlayVars {
        vars: Arc::clone(&play.vars),
        prompted: prompted.clone(),
        roles: play.roles.iter().filter(|role| role.public).cloned().collect(),
        magic,
    };
    let course = Course::new(&hosts, max_fail_percentage);
    let play_run = Arc::new(PlayRun {
        run: Arc::clone(run),
        play: Arc::clone(play),
        index,
        batch: number,
        vars: Arc::new(vars),
        course: Arc::clone(&course),
        hosts: hosts.clone(),
        strict,
        in_order,
        free,
        force_handlers: match &play.force_handlers {
            Some(_) => flag(&play.force_handlers)?,
            None => run.options.force_handlers,
        },
    });
    let mut walks = JoinSet::new();
    let mut ids = HashMap::new();
    let mut ends: HashMap<HostId, HostEnd> = HashMap::new();
    for (host, name) in hosts.iter().copied().zip(&names) {
        match start(&play_run, host) {
            Ok(walker) => {
                let handle = walks.spawn(walker.walk());
                ids.insert(handle.id(), (host, Arc::clone(name)));
            }
            Err(error) => return Err(error),
        }
    }
    while let Some(joined) = walks.join_next_with_id().await {
        match joined {
            Ok((id, end)) => {
                if let Some((host, _)) = ids.get(&id) {
                    ends.insert(*host, end);
                }
            }
            Err(error) => {
                // a fault of trimtab in one host's walk is that host's failure, and said
                if let Some((host, name)) = ids.get(&error.id()) {
                    run.tell(Event::Crashed { host: Arc::clone(name), message: error.to_string() });
                    ends.insert(*host, HostEnd::Failed);
                    course.lose(*host);
                    course.end(*host);
                }
            }
        }
    }
    run.tell(Event::BatchEnded { play: index, batch: number });
    for host in &hosts {
        let before = run.fleet.settled(*host);
        run.fleet.settle(*host);
        let after = run.fleet.settled(*host);
        if let Some(cache) = &run.options.fact_cache
            && before.facts != after.facts
        {
            cache.save(&inventory.host(*host).name, &after)?;
        }
    }
    for message in run.vars.warnings.take() {
        run.warn_once(message);
    }
    if let Some(error) = run.take_abort() {
        return Err(error);
    }
    let mut outcome = BatchEnd { stopped: course.is_over(), ..BatchEnd::default() };
    let mut lost = 0;
    for (host, end) in ends {
        match end {
            HostEnd::Done => {}
            HostEnd::EndPlay => outcome.end_play = true,
            HostEnd::Failed | HostEnd::Unreachable => {
                lost += 1;
                run.lost.add(host, end);
            }
        }
    }
    if run.take_cleared_errors() {
        run.lost.clear();
        lost = 0;
    }
    outcome.all_lost = lost > 0 && lost == hosts.len();
    Ok(outcome)
}

/// Readies the walk of a host.
fn start(play: &Arc<PlayRun>, host: HostId) -> Result<Walker> {
    let inventory = play.run.inventory();
    inventory.host_layers(host)?;
    let view = Arc::new(host_view(&inventory, host));
    let stamp = play.stamp(Vec::new());
    let mut scope = TaskScope {
        run: Arc::clone(&play.run.vars),
        play: Arc::clone(&play.vars),
        play_files: Arc::default(),
        host: Arc::clone(&view),
        runtime: play.run.fleet.settled(host),
        ahead: Vec::new(),
        task: None,
        local: Map::new(),
        neighbours: play.neighbours(host, stamp, false),
        controller_changes: false,
    };
    let play_files = play_files(&play.play, &scope)?;
    scope.play_files = Arc::clone(&play_files);
    let name = Arc::clone(&view.name);
    let lane = play.lane(&scope).map_err(|failure| Error::input(format!("host `{name}`: {}", failure.message)))?;
    let gathers = gathers_facts(play, &scope)?;
    let flush = || Arc::new(vec![Item::FlushHandlers]);
    let written = &play.play;
    let mut sections = Vec::new();
    if gathers {
        sections.push(Arc::new(vec![Item::Task(crate::playbook::gather_facts_task(written))]));
    }
    sections.extend([
        Arc::clone(&written.pre_tasks),
        flush(),
        Arc::clone(&written.role_tasks),
        Arc::clone(&written.tasks),
        flush(),
        Arc::clone(&written.post_tasks),
        flush(),
    ]);
    Ok(Walker::new(Arc::clone(play), host, view, play_files, lane, sections))
}

fn gathers_facts(play: &PlayRun, scope: &TaskScope) -> Result<bool> {
    let asked = match &play.play.gather_facts {
        Some(written) => render(written, scope)?.to_ansible_bool(),
        None => None,
    };
    Ok(match (asked, play.run.options.gathering) {
        (Some(asked), _) => asked,
        (None, Gathering::Implicit) => true,
        (None, Gathering::Explicit) => false,
        (None, Gathering::Smart) => !scope.runtime.facts.contains_key("module_setup"),
    })
}

/// The variables of `vars_files` for a host. An entry that is a list names alternatives: the first that exists
/// counts. A name that needs a variable which is not there yet is passed over until facts are known.
pub fn play_files(play: &Play, scope: &TaskScope) -> Result<Arc<Map>> {
    let mut variables = Map::new();
    for written in &play.vars_files {
        let alternatives = match &written.value {
            Value::List(items) => items.to_vec(),
            single => vec![single.clone()],
        };
        let mut tried: Vec<PathBuf> = Vec::new();
        let mut found = false;
        let mut undefined = false;
        for alternative in &alternatives {
            let name = match scope.context().value(alternative) {
                Ok(name) => name.to_text().into_owned(),
                Err(error) if error.is_undefined() || error.interruption().is_some() => {
                    undefined = true;
                    continue;
                }
                Err(error) => return Err(Error::input(error.message().to_owned()).at(&written.place)),
            };
            if let Some(path) = find_file(&play.directory, &name, &mut tried) {
                variables.extend(inventory::load_vars_file(&path, &scope.run.keyring)?);
                found = true;
                break;
            }
        }
        if !found && !undefined {
            let tried: Vec<String> = tried.iter().map(|path| path.display().to_string()).collect();
            return Err(Error::input("no file of this `vars_files` entry was found")
                .at(&written.place)
                .hint(format!("looked for {}", tried.join(", "))));
        }
    }
    Ok(Arc::new(variables))
}

fn find_file(directory: &Path, name: &str, tried: &mut Vec<PathBuf>) -> Option<PathBuf> {
    let candidates = if Path::new(name).is_absolute() {
        vec![PathBuf::from(name)]
    } else {
        vec![directory.join("vars").join(name), directory.join(name)]
    };
    let found = candidates.iter().find(|path| path.is_file()).cloned();
    tried.extend(candidates);
    found
}

/// True if a task of the play says `any_errors_fatal`.
fn has_fatal_tasks(play: &Play) -> bool {
    fn any(items: &[Item]) -> bool {
        items.iter().any(|item| match item {
            Item::Task(task) => task.settings.any_errors_fatal.is_some(),
            Item::Block(block) => any(&block.items) || any(&block.rescue) || any(&block.always),
            Item::FlushHandlers => false,
        })
    }
    [&play.pre_tasks, &play.role_tasks, &play.tasks, &play.post_tasks].into_iter().any(|items| any(items))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_splits_hosts_and_goes_on_with_its_last_size() {
        let hosts: Vec<HostId> = (0..10).map(HostId).collect();
        let sizes = |sizes: &[usize]| split(&hosts, sizes).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(&[]), [10]);
        assert_eq!(sizes(&[1, 3]), [1, 3, 3, 3]);
        assert_eq!(sizes(&[4]), [4, 4, 2]);
    }

    #[test]
    fn batch_sizes_are_numbers_or_percents() {
        let cases = [("3", Some(3)), ("30%", Some(3)), ("5%", Some(1)), ("0", Some(10)), ("x", None), ("-1", Some(10))];
        for (text, size) in cases {
            assert_eq!(batch_size(&text.into(), 10), size, "{text}");
        }
    }
}
