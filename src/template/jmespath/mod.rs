//! JMESPath (jmespath.org/specification), for the filter `json_query`.

mod functions;
mod parse;

use std::cmp::Ordering;

use super::error::{Result, TemplateError};
use super::eval::{operators, slice_positions};
use crate::value::{Map, Value};

/// A parsed query.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// `@`
    Current,
    Field(String),
    Literal(Value),
    Index(i64),
    Slice([Option<i64>; 3]),
    /// `left.right`, also what an index applies to.
    Sub(Box<Node>, Box<Node>),
    Pipe(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    And(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Compare(Comparison, Box<Node>, Box<Node>),
    Flatten(Box<Node>),
    /// The right side for each element of the list on the left.
    ListProjection(Box<Node>, Box<Node>),
    /// The right side for each value of the map on the left.
    ValueProjection(Box<Node>, Box<Node>),
    /// The right side for each element of the list on the left that meets the condition.
    FilterProjection(Box<Node>, Box<Node>, Box<Node>),
    List(Vec<Node>),
    Hash(Vec<(String, Node)>),
    Call(String, Vec<Node>),
    /// `&expression`, an argument of functions such as `sort_by`.
    Reference(Box<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The result of a query on a value.
pub fn search(query: &str, value: &Value) -> Result<Value> {
    let node = parse::parse(query)
        .map_err(|reason| TemplateError::failed(format!("the query `{query}` is wrong: {reason}")))?;
    evaluate(&node, value)
}

/// JMESPath's truth: numbers are true, empty texts, lists and maps, `false` and null are not.
fn truth(value: &Value) -> bool {
    match value {
        Value::Int(_) | Value::Big(_) | Value::Float(_) => true,
        other => other.is_truthy(),
    }
}

fn evaluate(node: &Node, value: &Value) -> Result<Value> {
    Ok(match node {
        Node::Current => value.clone(),
        Node::Field(name) => value.get(name).cloned().unwrap_or_default(),
        Node::Literal(literal) => literal.clone(),
        Node::Index(index) => value
            .as_list()
            .and_then(|items| super::eval::position(*index, items.len()).map(|place| items[place].clone()))
            .unwrap_or_default(),
        Node::Slice(bounds) => match value {
            Value::List(items) => Value::list(
                slice_positions(items.len(), *bounds)?.into_iter().map(|place| items[place].clone()).collect(),
            ),
            _ => Value::Null,
        },
        Node::Sub(left, right) | Node::Pipe(left, right) => {
            let left = evaluate(left, value)?;
            evaluate(right, &left)?
        }
        Node::Or(left, right) => {
            let left = evaluate(left, value)?;
            if truth(&left) { left } else { evaluate(right, value)? }
        }
        Node::And(left, right) => {
            let left = evaluate(left, value)?;
            if truth(&left) { evaluate(right, value)? } else { left }
        }
        Node::Not(operand) => Value::Bool(!truth(&evaluate(operand, value)?)),
        Node::Compare(comparison, left, right) => {
            compare(*comparison, &evaluate(left, value)?, &evaluate(right, value)?)
        }
        Node::Flatten(inner) => match evaluate(inner, value)? {
            Value::List(items) => {
                let mut out = Vec::new();
                for item in items.iter() {
                    match item {
                        Value::List(inner) => out.extend(inner.iter().cloned()),
                        other => out.push(other.clone()),
                    }
                }
                Value::list(out)
            }
            _ => Value::Null,
        },
        Node::ListProjection(left, right) => match evaluate(left, value)? {
            Value::List(items) => project(items.iter(), right)?,
            _ => Value::Null,
        },
        Node::ValueProjection(left, right) => match evaluate(left, value)? {
            Value::Map(map) => project(map.values(), right)?,
            _ => Value::Null,
        },
        Node::FilterProjection(left, condition, right) => match evaluate(left, value)? {
            Value::List(items) => {
                let mut kept = Vec::new();
                for item in items.iter() {
                    if truth(&evaluate(condition, item)?) {
                        kept.push(item);
                    }
                }
                project(kept.into_iter(), right)?
            }
            _ => Value::Null,
        },
        Node::List(_) | Node::Hash(_) if value.is_null() => Value::Null,
        Node::List(nodes) => Value::list(nodes.iter().map(|node| evaluate(node, value)).collect::<Result<Vec<_>>>()?),
        Node::Hash(entries) => Value::map(
            entries
                .iter()
                .map(|(name, node)| Ok((Value::from(name.as_str()), evaluate(node, value)?)))
                .collect::<Result<Map>>()?,
        ),
        Node::Call(name, arguments) => functions::call(name, arguments, value)?,
        Node::Reference(_) => return Err(TemplateError::failed("`&` stands only before an argument of a function")),
    })
}

/// What the right side gives for each element; nulls are left out.
fn project<'a>(items: impl Iterator<Item = &'a Value>, right: &Node) -> Result<Value> {
    let mut out = Vec::new();
    for item in items {
        let result = evaluate(right, item)?;
        if !result.is_null() {
            out.push(result);
        }
    }
    Ok(Value::list(out))
}

fn compare(comparison: Comparison, left: &Value, right: &Value) -> Value {
    let same = || {
        // a flag is no number here
        let flags = [left, right].iter().filter(|value| matches!(value, Value::Bool(_))).count();
        flags != 1 && left == right
    };
    let numbers = || {
        let is_number = |value: &Value| matches!(value, Value::Int(_) | Value::Big(_) | Value::Float(_));
        let is_text = |value: &Value| matches!(value, Value::Str(_));
        let ordered = (is_number(left) && is_number(right)) || (is_text(left) && is_text(right));
        if ordered { operators::compare(left, right, "<").ok().flatten() } else { None }
    };
    let ordered = |accept: fn(Ordering) -> bool| numbers().map_or(Value::Null, |order| Value::Bool(accept(order)));
    match comparison {
        Comparison::Equal => Value::Bool(same()),
        Comparison::NotEqual => Value::Bool(!same()),
        Comparison::Less => ordered(Ordering::is_lt),
        Comparison::LessOrEqual => ordered(Ordering::is_le),
        Comparison::Greater => ordered(Ordering::is_gt),
        Comparison::GreaterOrEqual => ordered(Ordering::is_ge),
    }
}
