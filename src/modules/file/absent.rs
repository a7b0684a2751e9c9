//! `state: absent`: nothing is at the path.

use crate::connect::shell::{Response, quote};
use crate::host::reads::{FileAttributes, FileContent, FileKind};
use crate::host::{Change, Failure, Footprint, Inverse, Query, Read, Step};
use crate::modules::Outcome;
use crate::modules::file_common::content::{KEPT_BYTES, Write, leaves_nothing, link_step};
use crate::modules::file_common::path::{base_name, parent};
use crate::modules::file_common::permissions::StateDifference;

use super::recurse::Listing;
use super::{Task, finish};

/// What was kept of the thing that is removed.
enum Kept {
    Content(Vec<u8>),
    /// A tar archive of the directory.
    Archive(Vec<u8>),
    Nothing,
}

pub async fn ensure(task: &Task) -> Result<Outcome, Failure> {
    let answer = |outcome: Outcome| outcome.with("path", task.path.as_str()).with("state", "absent");
    let Some(here) = &task.here else { return Ok(answer(Outcome::ok())) };
    if task.path == "/" {
        return Err(Failure::new("refusing to remove /"));
    }
    let mut difference = StateDifference::new(&task.path);
    difference.set("state", here.kind.state(), "absent");
    let kept = match here.kind {
        FileKind::File if here.size <= KEPT_BYTES => {
            // what may not be read may still be removed
            task.host.read(FileContent(task.path.clone())).await.ok().flatten().map_or(Kept::Nothing, Kept::Content)
        }
        FileKind::Directory => {
            let listing = async {
                if task.diff {
                    task.host.read(Listing { path: task.path.clone(), follow: false }).await.map(Some)
                } else {
                    Ok(None)
                }
            };
            let (archive, listing) = futures_util::try_join!(task.host.read(Archive(task.path.clone())), listing)?;
            if let Some(entries) = listing {
                let paths = |directories: bool| -> Vec<String> {
                    let matching =
                        entries.iter().filter(|entry| (entry.attributes.kind == FileKind::Directory) == directories);
                    matching.map(|entry| entry.path.clone()).filter(|path| *path != task.path).collect()
                };
                difference
                    .set_before("path_content", serde_json::json!({"directories": paths(true), "files": paths(false)}));
            }
            archive.map_or(Kept::Nothing, Kept::Archive)
        }
        _ => Kept::Nothing,
    };
    let change = plan(task, here, kept);
    Ok(answer(finish(&task.host, Some(change), difference).await?))
}

fn plan(task: &Task, here: &FileAttributes, kept: Kept) -> Change {
    let path = quote(&task.path);
    let (command, footprint) = match here.kind {
        FileKind::Directory => (format!("rm -rf {path} && [ ! -e {path} ]"), Footprint::tree(task.path.as_str())),
        _ => (format!("rm -f {path} && [ ! -e {path} ]"), Footprint::path(task.path.as_str())),
    };
    let command = if here.kind == FileKind::Link { format!("rm -f {path} && [ ! -L {path} ]") } else { command };
    let change = Change::certain(format!("removal of {}", task.path), footprint)
        .step(Step::new(command))
        .inverse(inverse(task, here, kept));
    leaves_nothing(change, &task.path)
}

fn inverse(task: &Task, here: &FileAttributes, kept: Kept) -> Inverse {
    match (here.kind, kept) {
        (FileKind::Link, _) => Inverse::Steps(vec![link_step(&task.path, &here.target)]),
        (_, Kept::Content(content)) => {
            let write = Write {
                path: task.path.clone(),
                alias: None,
                content,
                before: None,
                before_content: None,
                after: here.clone(),
                backup: None,
                validate: None,
                unsafe_writes: false,
            };
            Inverse::Steps(vec![write.step(&task.me)])
        }
        (_, Kept::Archive(archive)) => {
            let script = format!("tar -C {} -xpf -", quote(parent(&task.path)));
            Inverse::Steps(vec![Step::new(script).stdin(archive).writes(task.path.as_str())])
        }
        (FileKind::Fifo, _) => {
            let path = quote(&task.path);
            let script =
                format!("mkfifo {path} && chown {}:{} {path} && chmod {:04o} {path}", here.uid, here.gid, here.mode);
            Inverse::Steps(vec![Step::new(script).writes(task.path.as_str())])
        }
        _ => Inverse::None(format!(
            "what was in {} was not kept: it was more than {KEPT_BYTES} bytes, or could not be read",
            task.path
        )),
    }
}

/// Asks for a tar archive of a directory, if it is small; `None` if it is not.
struct Archive(String);

impl Read for Archive {
    type Answer = Option<Vec<u8>>;

    fn query(&self) -> Query {
        let text = format!(
            "s=$(du -sk {0}) && s=${{s%%[!0-9]*}} && [ \"$s\" -le {1} ] && tar -C {2} -cf - {3}",
            quote(&self.0),
            KEPT_BYTES / 1024,
            quote(parent(&self.0)),
            quote(&format!("./{}", base_name(&self.0)))
        );
        Query::Script { text, footprint: Footprint::tree(self.0.as_str()) }
    }

    fn parse(&self, response: &Response) -> Result<Option<Vec<u8>>, Failure> {
        Ok(response.success().then(|| response.stdout.clone()))
    }
}
