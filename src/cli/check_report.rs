//! What `trimtab check` shows: for people, and for programs.

use serde_json::{Value as Json, json};

use crate::error::{Error, Kind};
use crate::playbook::check::{Findings, Lack, Missing};
use crate::source::Place;
use crate::ui::{Style, Ui};

/// So many places of one thing are shown to people.
const PLACES_SHOWN: usize = 3;

/// The number of this form of the JSON: it grows when a key changes its meaning or goes away, not when one is added.
const FORM: u32 = 1;

/// Everything for people: problems with their lines, then what is missing, then the verdict.
pub fn text(ui: &mut Ui, findings: &Findings, settings: &[String]) {
    for error in &findings.errors {
        ui.finding(error, true);
    }
    for warning in &findings.warnings {
        ui.finding(warning, false);
    }
    for lack in Lack::ALL {
        let of_kind: Vec<&Missing> = findings.missing.iter().filter(|missing| missing.lack == lack).collect();
        if of_kind.is_empty() {
            continue;
        }
        let heading =
            if lack == Lack::Plugin { lack.heading().to_owned() } else { format!("missing {}", lack.heading()) };
        ui.styled(&format!("{heading}:"), Style::Plain);
        let width = of_kind.iter().map(|missing| missing.name.chars().count()).max().unwrap_or(0).min(40);
        for missing in of_kind {
            missing_line(ui, missing, width);
        }
        ui.line("");
    }
    if !settings.is_empty() {
        ui.line("settings without effect here:");
        for note in settings {
            ui.line(&format!("  {note}"));
        }
        ui.line("");
    }
    let checked = &findings.checked;
    let counted = [
        count(checked.playbooks, "playbook"),
        count(checked.plays, "play"),
        count(checked.roles, "role"),
        count(checked.tasks, "task"),
        count(checked.templates, "template"),
        count(checked.files, "file"),
    ];
    ui.line(&format!("checked: {}", counted.join(", ")));
    let (style, words) = match verdict(findings) {
        Verdict::Blocked => {
            (Style::Failed, format!("{}: no host would be touched", count(findings.errors.len(), "error")))
        }
        Verdict::Conditional => (
            Style::Warning,
            format!(
                "a run begins; {}, and what is missing is used {}",
                count(findings.warnings.len(), "warning"),
                count(uses(findings), "time")
            ),
        ),
        Verdict::Ready => (Style::Ok, "everything that is used is there".to_owned()),
    };
    ui.styled(&format!("verdict: {}; {words}", verdict(findings).word()), style);
}

fn missing_line(ui: &mut Ui, missing: &Missing, width: usize) {
    let name = format!("{:width$}", missing.name);
    if missing.lack == Lack::Plugin {
        ui.line(&format!("  {name}  {}", missing.hint.as_deref().unwrap_or_default()));
        return;
    }
    let shown: Vec<String> = missing.places.iter().take(PLACES_SHOWN).map(Place::to_string).collect();
    let more = missing.places.len().saturating_sub(PLACES_SHOWN);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let sure = if missing.certain { ", certainly reached" } else { "" };
    ui.line(&format!("  {name}  {}{sure}: {}{more}", count(missing.places.len(), "use"), shown.join(", ")));
    if let Some(hint) = &missing.hint {
        ui.line(&format!("  {:width$}  = {hint}", ""));
    }
}

/// `3 plays`, `1 play`.
fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn uses(findings: &Findings) -> usize {
    let needed = findings.missing.iter().filter(|missing| missing.lack != Lack::Plugin);
    needed.map(|missing| missing.places.len()).sum()
}

/// Whether the playbooks can run here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Everything that is used is there.
    Ready,
    /// A run begins, but tasks that may be reached would fail.
    Conditional,
    /// A run ends before any host is touched.
    Blocked,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Ready => "ready",
            Verdict::Conditional => "conditional",
            Verdict::Blocked => "blocked",
        }
    }
}

fn verdict(findings: &Findings) -> Verdict {
    if findings.is_blocked() {
        Verdict::Blocked
    } else if findings.is_ready() {
        Verdict::Ready
    } else {
        Verdict::Conditional
    }
}

/// Everything for programs, as `docs/check.md` describes it.
pub fn json(ui: &mut Ui, findings: &Findings, settings: &[String]) {
    ui.line(&format!("{:#}", as_json(findings, settings)));
}

fn as_json(findings: &Findings, settings: &[String]) -> Json {
    let problems: Vec<Json> = findings
        .errors
        .iter()
        .map(|error| problem("error", error))
        .chain(findings.warnings.iter().map(|warning| problem("warning", warning)))
        .collect();
    let missing: Vec<Json> = findings
        .missing
        .iter()
        .map(|missing| {
            json!({
                "kind": missing.lack.word(),
                "name": missing.name,
                "uses": missing.places.len(),
                "certain": missing.certain,
                "places": missing.places.iter().map(place).collect::<Vec<_>>(),
                "hint": missing.hint,
            })
        })
        .collect();
    let checked = &findings.checked;
    json!({
        "form": FORM,
        "verdict": verdict(findings).word(),
        "checked": {
            "playbooks": checked.playbooks,
            "plays": checked.plays,
            "roles": checked.roles,
            "tasks": checked.tasks,
            "templates": checked.templates,
            "files": checked.files,
        },
        "problems": problems,
        "missing": missing,
        "settings": settings,
    })
}

fn problem(severity: &str, error: &Error) -> Json {
    let kind = match error.kind() {
        Kind::Parse => "written",
        Kind::Usage => "usage",
        Kind::Input => "input",
        Kind::System => "system",
        Kind::Internal => "internal",
        Kind::Interrupted => "interrupted",
    };
    let places: Vec<Json> = error
        .places()
        .iter()
        .map(|(at, label)| {
            let mut place = place(at);
            if !label.is_empty() {
                place["label"] = label.as_str().into();
            }
            place
        })
        .collect();
    json!({
        "severity": severity,
        "kind": kind,
        "message": error.message(),
        "places": places,
        "hints": error.hints(),
    })
}

fn place(place: &Place) -> Json {
    json!({
        "file": place.source.path.to_string_lossy(),
        "line": place.line,
        "column": place.column,
    })
}
