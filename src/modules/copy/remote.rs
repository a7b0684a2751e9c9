//! `remote_src: true`: the source is on the host itself.

use futures_util::try_join;

use crate::host::reads::{Attributes, Checksum, FileKind};
use crate::host::{Failure, Host};
use crate::modules::file_common::content::Content;
use crate::modules::file_common::install::{Placement, Source, locate, put};
use crate::modules::file_common::path::{absolute, base_name};
use crate::modules::{Args, Outcome};

use super::expect_checksum;

pub async fn copy(host: &Host, args: &Args, placement: &Placement, src: &str) -> Result<Outcome, Failure> {
    let path = absolute(host, src).await?;
    if src.ends_with('/') {
        return super::remote_tree::copy(host, args, placement, &path, true).await;
    }
    let (there, checksum, place) = try_join!(
        host.read(Attributes { path: path.clone(), follow: true }),
        host.read(Checksum { path: path.clone(), algorithm: "sha1" }),
        async { Ok(locate(host, args, placement, Some(base_name(&path))).await) }
    )?;
    let Some(there) = there else { return Err(Failure::new(format!("Source {path} not found"))) };
    if there.kind == FileKind::Directory {
        return super::remote_tree::copy(host, args, placement, &path, false).await;
    }
    let Some(sha1) = checksum.filter(|_| there.kind == FileKind::File) else {
        return Err(Failure::new(format!("Cannot copy invalid source '{path}': not a file")));
    };
    let source = Source {
        content: Content::File { path: path.clone(), sha1, size: there.size },
        name: Some(base_name(&path).to_owned()),
        shown: path,
        mode: there.mode,
    };
    expect_checksum(args.str("checksum"), &source)?;
    put(host, placement, place?, source).await
}
