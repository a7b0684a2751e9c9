//! Events made by hand, for the tests of reports.

use std::sync::Arc;

use crate::engine::event::{Event, HostResult, TaskInfo};
use crate::engine::result::{Status, TaskResult};
use crate::source::{Place, Source};
use crate::value::{Map, Value, object};
use crate::vars::Stamp;

/// A playbook that tasks are said to come from.
pub struct Sample {
    source: Arc<Source>,
}

/// One task of the sample; its methods give the events of its results.
#[derive(Clone)]
pub struct SampleTask {
    stamp: Stamp,
    info: TaskInfo,
    result: Map,
    item: Option<String>,
    is_loop: bool,
    delegated_to: Option<String>,
    rescued: bool,
    ignored: bool,
    no_log: bool,
    diff: bool,
}

pub fn names(hosts: &[&str]) -> Vec<Arc<str>> {
    hosts.iter().map(|host| Arc::from(*host)).collect()
}

pub fn play(name: &str, hosts: &[&str]) -> Event {
    Event::PlayStarted { play: 0, name: name.to_owned(), hosts: names(hosts) }
}

pub fn batch(hosts: &[&str]) -> Event {
    Event::BatchStarted { play: 0, batch: 0, hosts: names(hosts) }
}

/// Everything before position `position` is done.
pub fn passed(position: u32) -> Event {
    Event::Passed(Stamp { play: 0, batch: 0, position: vec![position] })
}

pub fn ended() -> Event {
    Event::BatchEnded { play: 0, batch: 0 }
}

impl Sample {
    pub fn new() -> Sample {
        Sample { source: Source::new("/site/play.yml", "- hosts: all\n") }
    }

    pub fn task(&self, position: u32, name: &str) -> SampleTask {
        SampleTask {
            stamp: Stamp { play: 0, batch: 0, position: vec![position] },
            info: TaskInfo {
                name: name.to_owned(),
                action: "command".to_owned(),
                place: Place::new(&self.source, position + 3, 5),
                is_handler: false,
                included: None,
            },
            result: Map::new(),
            item: None,
            is_loop: false,
            delegated_to: None,
            rescued: false,
            ignored: false,
            no_log: false,
            diff: false,
        }
    }
}

impl SampleTask {
    pub fn action(mut self, action: &str) -> SampleTask {
        self.info.action = action.to_owned();
        self
    }

    pub fn at_line(mut self, line: u32) -> SampleTask {
        self.info.place.line = line;
        self
    }

    pub fn handler(mut self) -> SampleTask {
        self.info.is_handler = true;
        self
    }

    pub fn included(mut self, files: &[&str]) -> SampleTask {
        self.info.included = Some(files.iter().map(|file| (*file).to_owned()).collect());
        self
    }

    pub fn item(mut self, label: &str) -> SampleTask {
        self.item = Some(label.to_owned());
        self
    }

    pub fn whole(mut self) -> SampleTask {
        self.is_loop = true;
        self.with("results", Value::list(Vec::new()))
    }

    pub fn delegated(mut self, host: &str) -> SampleTask {
        self.delegated_to = Some(host.to_owned());
        self
    }

    pub fn rescued(mut self) -> SampleTask {
        self.rescued = true;
        self
    }

    pub fn ignored(mut self) -> SampleTask {
        self.ignored = true;
        self
    }

    pub fn no_log(mut self) -> SampleTask {
        self.no_log = true;
        self
    }

    pub fn diff(mut self, header: &str, before: &str, after: &str) -> SampleTask {
        self.diff = true;
        let difference = object([
            ("before_header", header.into()),
            ("after_header", header.into()),
            ("before", before.into()),
            ("after", after.into()),
        ]);
        self.with("diff", Value::list(vec![Value::map(difference)]))
    }

    pub fn with(mut self, key: &str, value: impl Into<Value>) -> SampleTask {
        self.result.insert(key.into(), value.into());
        self
    }

    pub fn ok(&self, host: &str) -> Event {
        self.end(host, Status::Ok)
    }

    pub fn changed(&self, host: &str) -> Event {
        self.end(host, Status::Changed)
    }

    pub fn failed(&self, host: &str) -> Event {
        self.clone().with("failed", true).end(host, Status::Failed)
    }

    pub fn end(&self, host: &str, status: Status) -> Event {
        let mut result = TaskResult::new(status, self.result.clone());
        result.ignored = self.ignored;
        Event::Result(Box::new(HostResult {
            stamp: self.stamp.clone(),
            task: Arc::new(self.info.clone()),
            host: Arc::from(host),
            delegated_to: self.delegated_to.clone(),
            item: self.item.clone(),
            is_loop: self.is_loop,
            result,
            rescued: self.rescued,
            no_log: self.no_log,
            diff: self.diff,
        }))
    }
}
