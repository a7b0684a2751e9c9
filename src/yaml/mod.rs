//! YAML 1.1 as Ansible reads it (PyYAML over libyaml), with the place of every node.

use std::sync::Arc;

use crate::source::Place;
use crate::value::Value;

/// A node of a document and where it stands.
#[derive(Debug, Clone)]
pub struct Node {
    pub place: Place,
    /// An explicit tag of ours (`!vault`, `!unsafe`), else `None`.
    pub tag: Option<Arc<str>>,
    pub kind: NodeKind,
}

#[derive(Debug, Clone)]
pub enum NodeKind {
    /// A scalar, resolved. Strings are [`Value::written`], so they may be templates.
    Scalar(Value),
    Sequence(Vec<Node>),
    /// Entries in order; merge keys are resolved, of equal keys the last stands.
    Mapping(Vec<(Node, Node)>),
}
