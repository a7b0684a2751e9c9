//! Runs playbooks on this machine: what came of them, task by task.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc;

use trimtab::engine::event::{Event, HostResult};
use trimtab::engine::options::Options;
use trimtab::engine::play::Run;
use trimtab::engine::result::Status;
use trimtab::engine::run::run_plays;
use trimtab::inventory;
use trimtab::playbook::{LoadOptions, load_playbook};
use trimtab::value::{Map, Value, object};
use trimtab::vars::RunVars;

/// What a run told.
pub struct Told {
    pub events: Vec<Event>,
    /// Round trips of each host, in the order of the inventory.
    pub round_trips: Vec<u64>,
}

impl Told {
    pub fn results(&self) -> Vec<&HostResult> {
        let results = self.events.iter().filter_map(|event| match event {
            Event::Result(result) => Some(result.as_ref()),
            _ => None,
        });
        let mut results: Vec<&HostResult> = results.collect();
        // hosts tell in any order; of one task on one host the order counts
        results.sort_by(|left, right| (&left.stamp, &left.host).cmp(&(&right.stamp, &right.host)));
        results
    }

    /// A line for each result, in the order of the playbook: `host task: status`.
    pub fn lines(&self) -> Vec<String> {
        self.results()
            .iter()
            .map(|result| {
                let status = match (result.result.status, result.rescued, result.result.ignored) {
                    (Status::Failed, true, _) => "rescued",
                    (Status::Failed, _, true) => "ignored",
                    (Status::Failed, ..) => "failed",
                    (Status::Ok, ..) => "ok",
                    (Status::Changed, ..) => "changed",
                    (Status::Skipped, ..) => "skipped",
                    (Status::Unreachable, ..) => "unreachable",
                    (Status::Unknown, ..) => "unknown",
                };
                let item = result.item.as_ref().map(|item| format!(" ({item})")).unwrap_or_default();
                format!("{} {}{item}: {status}", result.host, result.task.name)
            })
            .collect()
    }

    /// The `msg` of the result of this task on the first host.
    pub fn message(&self, task: &str) -> String {
        self.results()
            .iter()
            .find(|result| result.task.name == task)
            .and_then(|result| result.result.result.get("msg"))
            .map(|value| value.to_text().into_owned())
            .unwrap_or_default()
    }
}

/// A run to be made: on hosts that are all this machine.
pub struct Playing<'a> {
    /// Holds the playbook; `root` is a variable for it.
    pub directory: &'a Path,
    pub playbook: &'a str,
    /// An inventory: a file, or names and a comma.
    pub inventory: &'a str,
    pub extra: Map,
    pub options: Options,
}

impl Playing<'_> {
    /// Runs to the end.
    pub fn run(self) -> Told {
        let (told, ended) = self.run_to_error();
        ended.unwrap();
        told
    }

    /// Runs, maybe to an error that ends the run.
    pub fn run_to_error(self) -> (Told, trimtab::error::Result<()>) {
        let path = self.directory.join(self.playbook);
        let root = self.directory.to_string_lossy().into_owned();
        let mut extra = object([("root", Value::from(root)), ("ansible_connection", "local".into())]);
        extra.extend(self.extra);
        let extra = Arc::new(extra);
        let load = LoadOptions { extra_vars: Arc::clone(&extra), ..LoadOptions::default() };
        let plays = load_playbook(&path, &load)
            .unwrap_or_else(|error| panic!("{error} {:?} {:?}", error.hints(), error.others()));
        let inventory = inventory::load(&[self.inventory]).unwrap();
        let magic = Map::from_iter([("omit".into(), Value::from("__omit_place_holder__test"))]);
        let vars = Arc::new(RunVars {
            extra,
            magic,
            warnings: Default::default(),
            keyring: Arc::default(),
            merges_maps: false,
            results: Default::default(),
            inject_facts: self.options.inject_facts,
            settings: Default::default(),
        });
        let (events, mut received) = mpsc::unbounded_channel();
        let ask = Box::new(|_: &trimtab::playbook::VarsPrompt| Ok(Value::Null));
        let source = self.inventory.to_owned();
        let reload = Box::new(move || inventory::load(&[&source]));
        let run = Run::new(self.options, load, Arc::new(inventory), reload, vars, events, ask);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let finished = runtime.block_on(async {
            tokio::time::timeout(std::time::Duration::from_secs(60), run_plays(&run, &plays, &[], None)).await
        });
        let ended = finished.expect("the run does not hang");
        drop(run);
        let mut told = Told { events: Vec::new(), round_trips: Vec::new() };
        while let Ok(event) = received.try_recv() {
            if let Event::HostCost { counters, .. } = &event {
                told.round_trips.push(counters.round_trips);
            }
            told.events.push(event);
        }
        (told, ended)
    }
}
