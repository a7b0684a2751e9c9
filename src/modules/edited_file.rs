//! A text file that a module edits: what it writes when its content or its attributes are to differ.

use crate::host::{Failure, Host};

use super::Outcome;
use super::file_common::content::difference;
use super::file_common::destination::{Destination, Manner, plan_edit};
use super::file_common::permissions::StateDifference;

/// What came of an edit.
#[derive(Debug, Default)]
pub struct Written {
    /// Mode, owner or group were altered beside the content.
    pub attributes_differ: bool,
    /// Where the old file is kept.
    pub backup: Option<String>,
}

/// Gives the file this content (`None`: what it has) and the attributes that the task asks for.
pub async fn bring(
    host: &Host,
    seen: &Destination,
    content: Option<String>,
    manner: &Manner,
    outcome: Outcome,
) -> Result<(Outcome, Written), Failure> {
    let content = content.map(String::into_bytes);
    let edit = plan_edit(seen, content.clone(), manner);
    let written = Written { attributes_differ: edit.attributes_differ, backup: edit.backup };
    let Some(mut change) = edit.change else { return Ok((outcome, written)) };
    let mut shown = Vec::new();
    if let Some(new) = &content {
        let header = format!("{} (content)", seen.named);
        shown.push(difference((&header, &header), Some(seen.content.as_deref().unwrap_or_default()), false, new));
    }
    if let (Some(before), Some(after), true) = (&edit.before, &edit.after, written.attributes_differ) {
        let header = format!("{} (file attributes)", seen.named);
        let mut attributes = StateDifference::bare();
        attributes.attributes(before, after);
        shown.push(attributes.with_headers(header.clone(), header));
    }
    change.differences.clone_from(&shown);
    host.change(change).await?;
    Ok((Outcome { changed: true, ..outcome }.differences(shown), written))
}

/// The file's text; what is no UTF-8 is refused, since it could not be written back as it was.
pub fn text_of(seen: &Destination) -> Result<String, Failure> {
    let content = seen.content.clone().unwrap_or_default();
    String::from_utf8(content).map_err(|_| Failure::new(format!("{} is no text in UTF-8", seen.named)))
}
