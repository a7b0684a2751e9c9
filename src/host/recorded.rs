//! A change as it was written down: what it did, what was seen before it, and how it is taken back or made again.

use std::collections::HashMap;

use crate::connect::shell::Response;

use super::change::{Change, Difference, Inverse, Step};
use super::footprint::Footprint;
use super::query::Query;

/// What a question is answered once the change is made, and what it was answered before, if it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    pub query: Query,
    pub before: Option<Response>,
    pub after: Response,
}

/// One change that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedChange {
    /// Its number in the record.
    pub number: i64,
    pub what: String,
    /// What made it, or why it is not kept.
    pub steps: Result<Vec<Step>, String>,
    pub inverse: Inverse,
    pub observations: Vec<Observation>,
    pub differences: Vec<Difference>,
    pub footprint: Footprint,
    pub certain: bool,
    /// False if the connection or trimtab broke off before it was known whether it was made.
    pub known: bool,
}

/// Where a host stands with regard to a recorded change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// As it was before the change.
    Before,
    /// As the change left it.
    After,
    /// Nothing that can be asked tells.
    Untold,
    /// Neither: somebody has changed it since. The first question that says so, in words.
    Elsewhere(String),
}

impl RecordedChange {
    /// Compares what the host answers now with what it answered then; `now` has an answer for each observation.
    ///
    /// `expect_after` says which of the two is looked for where both hold, or where the one before is not known.
    pub fn standing(&self, now: &[Response], expect_after: bool) -> Standing {
        if self.observations.is_empty() {
            return Standing::Untold;
        }
        let pairs = || self.observations.iter().zip(now);
        let is_after = pairs().all(|(seen, now)| seen.query.agrees(&seen.after, now));
        let known_before = self.observations.iter().any(|seen| seen.before.is_some());
        let is_before = known_before
            && pairs().all(|(seen, now)| seen.before.as_ref().is_none_or(|before| seen.query.agrees(before, now)));
        match (is_before, is_after) {
            (true, true) if expect_after => Standing::After,
            (true, _) => Standing::Before,
            (false, true) => Standing::After,
            (false, false) if !expect_after && !known_before => Standing::Untold,
            (false, false) => Standing::Elsewhere(self.deviation(now, expect_after)),
        }
    }

    /// The first observation that is not as it should be, for people.
    fn deviation(&self, now: &[Response], expect_after: bool) -> String {
        let wrong = self.observations.iter().zip(now).find_map(|(seen, now)| {
            let expected = if expect_after { Some(&seen.after) } else { seen.before.as_ref() }?;
            (!seen.query.agrees(expected, now)).then(|| {
                format!("{}: expected {}, found {}", seen.query, seen.query.brief(expected), seen.query.brief(now))
            })
        });
        wrong.unwrap_or_else(|| self.what.clone())
    }

    /// The change that takes it back; the reason if there is none.
    pub fn back(&self) -> Result<Change, String> {
        let steps = match &self.inverse {
            Inverse::Steps(steps) => steps.clone(),
            Inverse::None(reason) => return Err(reason.clone()),
        };
        let mut change = self.shell(format!("{} (taken back)", self.what), steps);
        change.takes_back = Some(self.number);
        change.inverse = match &self.steps {
            Ok(steps) => Inverse::Steps(steps.clone()),
            Err(reason) => Inverse::None(reason.clone()),
        };
        change.differences = self.differences.iter().map(reversed).collect();
        for seen in &self.observations {
            if let Some(before) = &seen.before {
                change = change.leaves(seen.query.clone(), before.clone());
            }
        }
        Ok(change)
    }

    /// The change itself, once more; the reason if it is not kept.
    pub fn forward(&self) -> Result<Change, String> {
        let mut change = self.shell(self.what.clone(), self.steps.clone()?);
        change.inverse = self.inverse.clone();
        change.differences = self.differences.clone();
        for seen in &self.observations {
            change = change.leaves(seen.query.clone(), seen.after.clone());
        }
        Ok(change)
    }

    fn shell(&self, what: String, steps: Vec<Step>) -> Change {
        let mut change = Change::certain(what, self.footprint.clone());
        change.certain = self.certain;
        change.steps = steps;
        change
    }
}

/// Fills in what changes of one host, given in their order, were not asked before, from what those before them left.
pub fn fill_in(changes: &mut [RecordedChange]) {
    let mut left: HashMap<Query, Response> = HashMap::new();
    for change in changes {
        for seen in &mut change.observations {
            if seen.before.is_none() {
                seen.before = left.get(&seen.query).cloned();
            }
        }
        left.retain(|query, _| !change.footprint.touches(&query.footprint()));
        left.extend(change.observations.iter().map(|seen| (seen.query.clone(), seen.after.clone())));
    }
}

fn reversed(difference: &Difference) -> Difference {
    Difference {
        before_header: difference.after_header.clone(),
        after_header: difference.before_header.clone(),
        before: difference.after.clone(),
        after: difference.before.clone(),
        state: difference.state.clone().map(|(before, after)| (after, before)),
        withheld: difference.withheld.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swappiness(before: Option<&str>) -> RecordedChange {
        RecordedChange {
            number: 1,
            what: "sysctl vm.swappiness".into(),
            steps: Ok(vec![Step::new("write 1")]),
            inverse: Inverse::Steps(vec![Step::new("write 60")]),
            observations: vec![Observation {
                query: Query::Line("/proc/sys/vm/swappiness".into()),
                before: before.map(Response::output),
                after: Response::output("1"),
            }],
            differences: vec![Difference::new("vm.swappiness", "60\n", "1\n")],
            footprint: Footprint::path("/proc/sys/vm/swappiness"),
            certain: true,
            known: true,
        }
    }

    #[test]
    fn a_host_stands_before_or_after_a_change_or_elsewhere() {
        let elsewhere =
            |expected: &str| Standing::Elsewhere(format!("/proc/sys/vm/swappiness: expected `{expected}`, found `10`"));
        let cases = [
            (Some("60"), "1", true, Standing::After),
            (Some("60"), "60", true, Standing::Before),
            (Some("60"), "10", true, elsewhere("1")),
            (Some("60"), "10", false, elsewhere("60")),
            (Some("1"), "1", true, Standing::After),
            (Some("1"), "1", false, Standing::Before),
            (None, "1", true, Standing::After),
            (None, "10", true, elsewhere("1")),
            (None, "10", false, Standing::Untold),
        ];
        for (before, now, expect_after, standing) in cases {
            let now = [Response::output(now)];
            assert_eq!(swappiness(before).standing(&now, expect_after), standing, "{before:?} {now:?}");
        }
        let untold = RecordedChange { observations: Vec::new(), ..swappiness(None) };
        assert_eq!(untold.standing(&[], true), Standing::Untold);
    }

    #[test]
    fn what_was_not_asked_before_is_what_the_change_before_left() {
        let mut changes = [swappiness(Some("60")), swappiness(None)];
        changes[1].observations[0].after = Response::output("5");
        fill_in(&mut changes);
        assert_eq!(changes[1].observations[0].before, Some(Response::output("1")));
        let command = RecordedChange { footprint: Footprint::Everything, observations: vec![], ..swappiness(None) };
        let mut changes = [swappiness(Some("60")), command, swappiness(None)];
        fill_in(&mut changes);
        assert_eq!(changes[2].observations[0].before, None, "a command may have changed it");
    }

    #[test]
    fn taking_back_is_a_change_that_can_be_taken_back() {
        let back = swappiness(Some("60")).back().unwrap();
        assert_eq!(back.steps, [Step::new("write 60")]);
        assert_eq!(back.inverse, Inverse::Steps(vec![Step::new("write 1")]));
        assert_eq!((back.differences[0].before.as_str(), back.differences[0].after.as_str()), ("1\n", "60\n"));
        assert_eq!(back.effects[0].1, Response::output("60"));
        let forward = swappiness(Some("60")).forward().unwrap();
        assert_eq!((forward.steps, forward.effects[0].1.text()), (vec![Step::new("write 1")], "1".to_owned()));
    }

    #[test]
    fn what_cannot_be_taken_back_says_why() {
        let command = RecordedChange { inverse: Inverse::None("it rebooted".into()), ..swappiness(None) };
        assert_eq!(command.back().unwrap_err(), "it rebooted");
        let large = RecordedChange { steps: Err("too large".into()), ..swappiness(None) };
        assert_eq!(large.back().unwrap().inverse, Inverse::None("too large".into()));
        assert_eq!(large.forward().unwrap_err(), "too large");
    }
}
