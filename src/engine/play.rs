//! What the walks of a batch share: the run, the play, the hosts.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use tokio::sync::{Semaphore, mpsc};

use crate::connect::Target;
use crate::error::{Error, Result};
use crate::host::Failure;
use crate::inventory::{HostId, Inventory};
use crate::playbook::tags::TagSelection;
use crate::playbook::{LoadOptions, Play, VarsPrompt};
use crate::value::{Interruption, Map, Value};
use crate::vars::reserved::reserved_names;
use crate::vars::scope::Neighbours;
use crate::vars::{Fleet, HostView, PlayVars, RunVars, Stamp, TaskScope};

use super::barrier::Course;
use super::event::Event;
use super::lane::Lane;
use super::options::Options;
use super::reach::Reach;
use super::recorder::Recorder;
use super::run::Lost;
use super::view::host_view;

/// Asks the user for the value of a variable.
pub type Ask = Box<dyn Fn(&VarsPrompt) -> Result<Value> + Send + Sync>;

/// Reads the inventory once more.
pub type Reload = Box<dyn Fn() -> Result<Inventory> + Send + Sync>;

/// What add_host and group_by did to the inventory; done again when it is read anew.
#[derive(Debug, Clone)]
pub enum Addition {
    Host { name: String, groups: Vec<String>, variables: Map },
    Group { host: Arc<str>, group: String, parents: Vec<String> },
}

impl Addition {
    /// True if it changed anything. A host that is not there is put into no group.
    pub fn add_to(&self, inventory: &mut Inventory) -> bool {
        fn texts(names: &[String]) -> Vec<&str> {
            names.iter().map(String::as_str).collect()
        }
        match self {
            Addition::Host { name, groups, variables } => inventory.add_host(name, variables.clone(), &texts(groups)),
            Addition::Group { host, group, parents } => {
                inventory.find_host(host).is_some_and(|host| inventory.add_to_group(host, group, &texts(parents)))
            }
        }
    }
}

/// What changed the inventory while the run was under way.
#[derive(Default)]
struct Additions {
    list: Vec<Addition>,
    /// Where in the play it was last read anew.
    refreshed: Option<Stamp>,
}

/// One invocation of trimtab.
pub struct Run {
    pub options: Options,
    pub load: LoadOptions,
    /// The inventory; add_host and group_by put a new one in its place.
    pub inventory: RwLock<Arc<Inventory>>,
    reload: Reload,
    additions: Mutex<Additions>,
    /// The warnings that were given once.
    warned: Mutex<HashSet<String>>,
    pub fleet: Fleet,
    pub vars: Arc<RunVars>,
    pub events: mpsc::UnboundedSender<Event>,
    pub tags: TagSelection,
    /// Keeps what is changed.
    recorder: OnceLock<Arc<dyn Recorder>>,
    /// Hosts that failed or were unreachable, so that later plays leave them out.
    pub lost: Lost,
    /// Asks the user a question of `vars_prompt`.
    pub ask: Ask,
    cleared_errors: AtomicBool,
    /// Why the run cannot go on.
    aborted: Mutex<Option<Error>>,
    lanes: Mutex<HashMap<String, Vec<Arc<Lane>>>>,
    forks: Arc<Semaphore>,
}

impl Run {
    pub fn new(
        options: Options,
        load: LoadOptions,
        inventory: Arc<Inventory>,
        reload: Reload,
        vars: Arc<RunVars>,
        events: mpsc::UnboundedSender<Event>,
        ask: Ask,
    ) -> Arc<Run> {
        let tags =
            TagSelection::new(options.tags.iter().map(String::as_str), options.skip_tags.iter().map(String::as_str));
        let forks = Arc::new(Semaphore::new(options.forks.max(1)));
        Arc::new(Run {
            options,
            load,
            inventory: RwLock::new(inventory),
            reload,
            additions: Mutex::default(),
            warned: Mutex::default(),
            fleet: Fleet::default(),
            vars,
            events,
            tags,
            recorder: OnceLock::new(),
            lost: Lost::default(),
            ask,
            cleared_errors: AtomicBool::new(false),
            aborted: Mutex::default(),
            lanes: Mutex::default(),
            forks,
        })
    }

    /// Has changes kept by a recorder, which was not there before.
    pub fn record_with(&self, recorder: Arc<dyn Recorder>) {
        let _ = self.recorder.set(recorder);
    }

    /// Who keeps changes.
    pub fn recorder(&self) -> Option<&Arc<dyn Recorder>> {
        self.recorder.get()
    }

    /// Tells those who listen; if nobody does any more, the run goes on.
    pub fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }

    pub fn inventory(&self) -> Arc<Inventory> {
        Arc::clone(&self.inventory.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn replace_inventory(&self, change: impl FnOnce(&mut Inventory)) {
        let mut inventory = self.inventory.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut inventory));
    }

    /// Warns of variables whose names are reserved, of each name once.
    pub fn warn_of_reserved<'a>(&self, variables: impl Iterator<Item = &'a Map>) {
        for name in variables.flat_map(reserved_names) {
            self.warn_once(format!("Found variable using reserved name: {name}"));
        }
    }

    /// Warns, unless the same was said before.
    pub fn warn_once(&self, message: String) {
        let is_new = self.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(message.clone());
        if is_new {
            self.tell(Event::Warning(message));
        }
    }

    /// add_host or group_by.
    pub fn add(&self, addition: Addition) {
        self.replace_inventory(|inventory| {
            addition.add_to(inventory);
        });
        self.additions.lock().unwrap_or_else(PoisonError::into_inner).list.push(addition);
    }

    /// Reads the inventory anew (`meta: refresh_inventory`), and adds again what add_host and group_by added. Of the
    /// hosts that are at the same place, the first does it for all.
    pub fn refresh_inventory(&self, at: &Stamp) -> Result<()> {
        let mut additions = self.additions.lock().unwrap_or_else(PoisonError::into_inner);
        if additions.refreshed.as_ref() == Some(at) {
            return Ok(());
        }
        let fresh = (self.reload)()?;
        self.replace_inventory(|inventory| {
            *inventory = inventory.renewed(fresh);
            let (hosts, groups): (Vec<_>, Vec<_>) =
                additions.list.iter().partition(|addition| matches!(addition, Addition::Host { .. }));
            for addition in hosts.into_iter().chain(groups) {
                addition.add_to(inventory);
            }
        });
        additions.refreshed = Some(at.clone());
        Ok(())
    }

    /// The lane to a target; the same for all who ask for the same.
    pub fn lane(&self, target: Target) -> Arc<Lane> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lanes.entry(target.name.clone()).or_default();
        if let Some(lane) = known.iter().find(|lane| lane.target == target) {
            return Arc::clone(lane);
        }
        let lane = Lane::new(target, Arc::clone(&self.forks));
        known.push(Arc::clone(&lane));
        lane
    }

    /// `meta: clear_host_errors`: hosts that failed take part again from the next play on.
    pub fn clear_host_errors(&self) {
        self.cleared_errors.store(true, Ordering::SeqCst);
    }

    pub fn take_cleared_errors(&self) -> bool {
        self.cleared_errors.swap(false, Ordering::SeqCst)
    }

    /// Ends the run with this error, once the hosts of the batch have stopped.
    pub fn abort(&self, error: Error) {
        self.aborted.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// The error that ends the run, if there is one.
    pub fn take_abort(&self) -> Option<Error> {
        self.aborted.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// All lanes that were asked for.
    pub fn lanes(&self) -> Vec<Arc<Lane>> {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.values().flatten().cloned().collect()
    }
}

/// One batch of a play.
pub struct PlayRun {
    pub run: Arc<Run>,
    pub play: Arc<Play>,
    pub index: u32,
    pub batch: u32,
    pub vars: Arc<PlayVars>,
    pub course: Arc<Course>,
    /// The hosts of the batch, in their order.
    pub hosts: Vec<HostId>,
    /// True if a failure of one host may stop the others, so that none may be ahead of another with changes.
    pub strict: bool,
    /// True if one host after another does a task, in their order: that is what `--forks 1` asks for.
    pub in_order: bool,
    /// True if no host waits for another: the strategies `free` and `host_pinned`.
    pub free: bool,
    pub force_handlers: bool,
}

impl PlayRun {
    pub fn stamp(&self, position: Vec<u32>) -> Stamp {
        Stamp { play: self.index, batch: self.batch, position }
    }

    /// The scope of a host as `reader` may see it at `stamp`.
    pub fn neighbours(self: &Arc<Self>, reader: HostId, stamp: Stamp, granted: bool) -> Arc<dyn Neighbours> {
        Arc::new(Neighbourhood { play: Arc::clone(self), reader, stamp, granted })
    }

    /// The lane that a scope's variables lead to.
    pub fn lane(&self, scope: &TaskScope) -> Result<Arc<Lane>, Failure> {
        let context = scope.context();
        let settings = scope.task.as_ref().map_or(&self.play.settings, |task| &task.settings);
        let reach = Reach { scope, context: &context, settings, options: &self.run.options };
        Ok(self.run.lane(reach.target()?))
    }
}

struct Neighbourhood {
    play: Arc<PlayRun>,
    reader: HostId,
    stamp: Stamp,
    /// All hosts of the batch have reached the reader's place.
    granted: bool,
}

impl Neighbours for Neighbourhood {
    fn names(&self) -> Vec<Arc<str>> {
        self.play.run.inventory().hosts().map(|(_, host)| Arc::clone(&host.name)).collect()
    }

    fn departed(&self) -> Result<Vec<Arc<str>>, Interruption> {
        if !self.granted && !self.play.free && self.play.hosts.len() > 1 {
            return Err(Interruption::Barrier);
        }
        let inventory = self.play.run.inventory();
        let departed = self.play.course.departed_before(&self.stamp.position);
        Ok(departed.into_iter().map(|host| Arc::clone(&inventory.host(host).name)).collect())
    }

    fn scope(&self, name: &str) -> Result<Option<TaskScope>, Interruption> {
        let inventory = self.play.run.inventory();
        let Some(host) = inventory.find_host(name) else { return Ok(None) };
        if host != self.reader && !self.granted && !self.play.free && self.play.hosts.contains(&host) {
            return Err(Interruption::Barrier);
        }
        Ok(Some(TaskScope {
            run: Arc::clone(&self.play.run.vars),
            play: Arc::clone(&self.play.vars),
            play_files: Arc::default(),
            host: Arc::new(host_view(&inventory, host)),
            runtime: self.play.run.fleet.before(host, &self.stamp),
            ahead: Vec::new(),
            task: None,
            local: Map::new(),
            neighbours: self.play.neighbours(self.reader, self.stamp.clone(), self.granted),
            controller_changes: false,
        }))
    }
}

/// The scope of a host that is not in the inventory, for `delegate_to` an address.
pub fn stranger(name: &str, scope: &TaskScope) -> TaskScope {
    let mut stranger = scope.clone();
    let mut view = HostView { name: name.into(), ..HostView::default() };
    view.magic.insert("inventory_hostname".into(), name.into());
    if matches!(name, "localhost" | "127.0.0.1" | "::1") {
        let local = Map::from_iter([("ansible_connection".into(), "local".into())]);
        view.layers.push((crate::vars::Level::InventoryHost, Arc::new(local)));
        view.implicit = true;
    }
    stranger.host = Arc::new(view);
    stranger.runtime = Arc::default();
    stranger.ahead = Vec::new();
    stranger
}
