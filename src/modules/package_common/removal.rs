//! Removing a small file that can be put back as it was.

use crate::connect::shell::quote;
use crate::host::{Change, Footprint, Inverse, Step};
use crate::modules::file_common::content::{Content, Write, leaves_nothing};
use crate::modules::file_common::destination::Destination;

/// The change that removes the file; `None` if nothing is there.
pub fn remove(seen: &Destination) -> Option<Change> {
    let before = seen.attributes.as_ref()?;
    let path = quote(&seen.named);
    let inverse = match &seen.content {
        Some(content) if !seen.is_link => {
            let write = Write {
                path: seen.named.clone(),
                alias: None,
                content: Content::Bytes(content.clone()),
                before: None,
                before_content: None,
                after: before.clone(),
                backup: None,
                validate: None,
                unsafe_writes: false,
            };
            Inverse::Steps(vec![write.step(&seen.me)])
        }
        _ => Inverse::None(format!("{} is a symbolic link", seen.named)),
    };
    let change = Change::certain(format!("removal of {}", seen.named), Footprint::path(seen.named.as_str()))
        .step(Step::new(format!("rm -f {path} && [ ! -e {path} ]")))
        .inverse(inverse);
    Some(leaves_nothing(change, &seen.named))
}
