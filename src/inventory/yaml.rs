//! The YAML format of inventories.
//!
//! Source: <https://docs.ansible.com/ansible/latest/collections/ansible/builtin/yaml_inventory.html>

use super::builder::Builder;
use super::group::GroupId;
use crate::error::{Error, Result, nearest};
use crate::yaml::Node;

const PARTS: [&str; 3] = ["hosts", "children", "vars"];

/// Reads the document `root` into `builder`.
pub(super) fn read(root: &Node, builder: &mut Builder) -> Result<()> {
    let Some(groups) = root.as_mapping() else {
        return Err(Error::input(format!("an inventory must be a mapping of groups, this is a {}", root.kind_name()))
            .at(&root.place));
    };
    for (name, body) in groups {
        group(None, name, body, builder)?;
    }
    Ok(())
}

fn group(parent: Option<GroupId>, name: &Node, body: &Node, builder: &mut Builder) -> Result<()> {
    let Some(text) = name.as_str().filter(|text| !text.is_empty()) else {
        return Err(Error::input(format!("the name of a group must be text, this is a {}", name.kind_name()))
            .at(&name.place)
            .hint("quote it"));
    };
    let id = builder.add_group(text, &name.place);
    if let Some(parent) = parent {
        builder.add_child(parent, id, &name.place)?;
    }
    if body.is_null() {
        return Ok(());
    }
    let Some(parts) = body.as_mapping() else {
        return Err(Error::input(format!("the group `{text}` must be a mapping, this is a {}", body.kind_name()))
            .at(&body.place)
            .hint("a group has `hosts`, `children` and `vars`"));
    };
    for (key, part) in parts {
        let key_text = key.as_str().unwrap_or_default();
        if !PARTS.contains(&key_text) {
            let error = Error::input(format!("the group `{text}` has an unexpected key `{key_text}`"))
                .at(&key.place)
                .suggest(key_text, PARTS)
                .hint("a group has `hosts`, `children` and `vars`");
            if nearest(key_text, PARTS).is_some() {
                return Err(error);
            }
            // Ansible skips such a key too
            builder.warnings.push(error);
            continue;
        }
        if part.is_null() {
            continue;
        }
        let single = part.as_str().filter(|_| key_text != "vars").map(|_| [(part.clone(), null_beside(part))]);
        let entries = match (&single, part.as_mapping()) {
            (Some(single), _) => single.as_slice(),
            (None, Some(entries)) => entries,
            (None, None) => {
                let error = Error::input(format!(
                    "`{key_text}` of the group `{text}` must be a mapping, this is a {}",
                    part.kind_name()
                ));
                return Err(error.at(&part.place).hint(match key_text {
                    "hosts" => "write each host as a key: `web1:`",
                    "children" => "write each group as a key: `web:`",
                    _ => "write each variable as `name: value`",
                }));
            }
        };
        match key_text {
            "vars" => {
                for (name, value) in entries {
                    let Some(key) = name.value() else { continue };
                    builder.set_group_var(id, key.clone(), value.to_value(), &value.place)?;
                }
            }
            "children" => {
                for (name, body) in entries {
                    group(Some(id), name, body, builder)?;
                }
            }
            _ => {
                for (name, vars) in entries {
                    hosts(id, name, vars, builder)?;
                }
            }
        }
    }
    Ok(())
}

fn null_beside(node: &Node) -> Node {
    let kind = crate::yaml::NodeKind::Scalar(crate::value::Value::Null);
    Node { place: node.place.clone(), tag: None, kind }
}

fn hosts(group: GroupId, name: &Node, vars: &Node, builder: &mut Builder) -> Result<()> {
    let Some(text) = name.as_str().filter(|text| !text.is_empty()) else {
        let written = name.value().map(|value| value.to_text().into_owned()).unwrap_or_default();
        return Err(Error::input(format!("Host pattern {written} must be a string, this is a {}", name.kind_name()))
            .at(&name.place)
            .hint("quote it"));
    };
    if !vars.is_null() && vars.as_mapping().is_none() {
        return Err(Error::input(format!(
            "the variables of `{text}` must be a mapping, this is a {}",
            vars.kind_name()
        ))
        .at(&vars.place)
        .hint("write each variable as `name: value`"));
    }
    let added = builder.add_hosts(text, group, &vars.to_map(), &name.place);
    added.map_err(|reason| Error::input(reason).at(&name.place))
}
