//! Modification and access times: what a task asks for, and the steps.

use crate::connect::shell::{Response, quote};
use crate::host::reads::FileStat;
use crate::host::{Failure, Footprint, Host, Query, Read, Step};
use crate::modules::Args;
use crate::modules::file_common::permissions::StateDifference;

/// A time that a task asks for.
#[derive(Debug, Clone, PartialEq)]
enum Time {
    Preserve,
    Now,
    /// As `touch -t` takes it, in the host's time zone, and the seconds since the epoch that it means there.
    At {
        stamp: String,
        epoch: f64,
    },
}

/// Both times that a task asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Times {
    modification: Time,
    access: Time,
}

impl Times {
    /// Reads the arguments; `touches`: a time not given is now.
    pub async fn read(host: &Host, args: &Args, touches: bool) -> Result<Times, Failure> {
        let (modification, access) = futures_util::try_join!(
            read_one(host, args.str("modification_time"), args.text("modification_time_format"), touches),
            read_one(host, args.str("access_time"), args.text("access_time_format"), touches)
        )?;
        Ok(Times { modification, access })
    }

    /// The commands that set the times of a path.
    pub fn commands(&self, path: &str) -> Vec<String> {
        let path = quote(path);
        if self.modification == Time::Now && self.access == Time::Now {
            return vec![format!("touch -c {path}")];
        }
        [("-m", &self.modification), ("-a", &self.access)]
            .into_iter()
            .filter_map(|(which, time)| match time {
                Time::Preserve => None,
                Time::Now => Some(format!("touch -c {which} {path}")),
                Time::At { stamp, .. } => Some(format!("touch -c {which} -t {stamp} {path}")),
            })
            .collect()
    }

    /// Notes the times that will be others. What the host's clock will say then is not known.
    pub fn show(&self, now: &FileStat, difference: &mut StateDifference) {
        for (key, time, now) in [("mtime", &self.modification, now.mtime), ("atime", &self.access, now.atime)] {
            match time {
                Time::Preserve => {}
                Time::Now => difference.set(key, now, "now"),
                Time::At { epoch, .. } => difference.set(key, now, *epoch),
            }
        }
    }

    /// The step that sets the times and the one that takes it back; `None` if they are right.
    pub fn steps(&self, path: &str, now: &FileStat) -> Option<(Step, Step)> {
        let is_right = |time: &Time, now: f64| match time {
            Time::Preserve => true,
            Time::Now => false,
            Time::At { epoch, .. } => *epoch == now,
        };
        if is_right(&self.modification, now.mtime) && is_right(&self.access, now.atime) {
            return None;
        }
        let forth = Step::new(self.commands(path).join(" && ")).writes(path);
        let path = quote(path);
        // busybox takes whole seconds only
        let restore = |which: &str, time: f64| {
            format!("{{ touch -c {which} -d @{time:.9} {path} 2>/dev/null || touch -c {which} -d @{time:.0} {path}; }}")
        };
        let back = Step::new(format!("{} && {}", restore("-m", now.mtime), restore("-a", now.atime)));
        Some((forth, back))
    }
}

async fn read_one(host: &Host, text: Option<&str>, format: &str, touches: bool) -> Result<Time, Failure> {
    match text {
        None if touches => Ok(Time::Now),
        None | Some("preserve" | "") => Ok(Time::Preserve),
        Some("now") => Ok(Time::Now),
        Some(text) => {
            let time = parse(text, format)?;
            let epoch = host.read(Epoch(time.strftime("%Y-%m-%d %H:%M:%S").to_string())).await?;
            Ok(Time::At { stamp: time.strftime("%Y%m%d%H%M.%S").to_string(), epoch })
        }
    }
}

fn parse(text: &str, format: &str) -> Result<jiff::civil::DateTime, Failure> {
    let refuse = |reason: String| {
        Failure::new(format!("Error while obtaining timestamp for time {text} using format {format}: {reason}"))
    };
    let time = jiff::fmt::strtime::parse(format, text).map_err(|error| refuse(error.to_string()))?;
    let date = time.to_date().map_err(|error| refuse(error.to_string()))?;
    Ok(time.to_datetime().unwrap_or_else(|_| date.at(0, 0, 0, 0)))
}

/// Asks for the seconds since the epoch of a time in the host's time zone.
struct Epoch(String);

impl Read for Epoch {
    type Answer = f64;

    fn query(&self) -> Query {
        Query::Script { text: format!("date -d {} +%s", quote(&self.0)), footprint: Footprint::path("/etc/localtime") }
    }

    fn parse(&self, response: &Response) -> Result<f64, Failure> {
        let answer = response.text().trim().parse().ok().filter(|_| response.success());
        answer.ok_or_else(|| {
            Failure::new(format!("the host cannot tell the time {}: {}", self.0, response.error_text().trim()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_by_their_format() {
        let shown = |text, format| parse(text, format).map(|time| time.strftime("%Y%m%d%H%M.%S").to_string());
        assert_eq!(shown("202401021504.05", "%Y%m%d%H%M.%S").unwrap(), "202401021504.05");
        assert_eq!(shown("2024-01-02", "%Y-%m-%d").unwrap(), "202401020000.00");
        assert!(shown("yesterday", "%Y-%m-%d").is_err());
    }

    #[test]
    fn only_what_is_asked_for_is_touched() {
        let times = Times { modification: Time::Now, access: Time::Preserve };
        assert_eq!(times.commands("/a"), ["touch -c -m /a"]);
        let times = Times { modification: Time::Preserve, access: Time::Preserve };
        assert!(times.commands("/a").is_empty());
    }
}
