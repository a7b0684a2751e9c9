//! The tree of a parsed template, owned and free of the parser's types.

use std::sync::Arc;

use crate::value::Value;

/// Where a node stands in its text: line and column counted from 1, and its range in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub line: u32,
    pub column: u32,
    pub start: u32,
    pub end: u32,
}

/// A parsed template.
#[derive(Debug)]
pub struct Template {
    /// The name given by the caller (a path or a description), for messages and relative includes.
    pub name: Arc<str>,
    pub body: Vec<Statement>,
}

impl Template {
    /// True for `{{ expression }}` and nothing else.
    pub fn is_lone_expression(&self) -> bool {
        matches!(self.body.as_slice(), [Statement { kind: StatementKind::Emit(_), .. }])
    }
}

#[derive(Debug)]
pub struct Statement {
    pub span: Span,
    pub kind: StatementKind,
}

#[derive(Debug)]
pub enum StatementKind {
    Text(Arc<str>),
    Emit(Expression),
    For(Arc<For>),
    If {
        condition: Expression,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    With {
        assignments: Vec<(Target, Expression)>,
        body: Vec<Statement>,
    },
    Set {
        target: Target,
        value: Expression,
    },
    SetBlock {
        target: Target,
        filter: Option<Expression>,
        body: Vec<Statement>,
    },
    FilterBlock {
        filter: Expression,
        body: Vec<Statement>,
    },
    /// `{% autoescape %}`: Ansible never escapes, so only the scope counts.
    Scoped(Vec<Statement>),
    Block {
        name: Arc<str>,
        body: Arc<Vec<Statement>>,
    },
    Import {
        template: Expression,
        name: Target,
    },
    FromImport {
        template: Expression,
        names: Vec<(Arc<str>, Arc<str>)>,
    },
    Extends(Expression),
    Include {
        template: Expression,
        ignore_missing: bool,
    },
    Macro(Arc<Macro>),
    CallBlock {
        call: Call,
        block: Arc<Macro>,
    },
    Continue,
    Break,
    Do(Expression),
}

#[derive(Debug)]
pub struct For {
    pub target: Target,
    pub iterable: Expression,
    pub condition: Option<Expression>,
    pub recursive: bool,
    pub body: Vec<Statement>,
    pub otherwise: Vec<Statement>,
}

/// What an assignment assigns to.
#[derive(Debug)]
pub enum Target {
    Name(Arc<str>),
    /// `{% set ns.attribute = … %}`
    Attribute(Expression, Arc<str>),
    Unpack(Vec<Target>),
}

/// A macro, or the body of a call block (then named `caller`).
#[derive(Debug)]
pub struct Macro {
    pub name: Arc<str>,
    pub parameters: Vec<Arc<str>>,
    /// Defaults of the last parameters.
    pub defaults: Vec<Expression>,
    pub body: Vec<Statement>,
    /// The body uses `varargs`, so more positional arguments may be given than there are parameters.
    pub takes_more: bool,
    /// The body uses `kwargs`, so other named arguments may be given.
    pub takes_named: bool,
}

#[derive(Debug)]
pub struct Expression {
    pub span: Span,
    pub kind: Box<ExpressionKind>,
}

#[derive(Debug)]
pub enum ExpressionKind {
    Constant(Value),
    Variable(Arc<str>),
    Attribute(Expression, Arc<str>),
    Item(Expression, Expression),
    Slice {
        value: Expression,
        start: Option<Expression>,
        stop: Option<Expression>,
        step: Option<Expression>,
    },
    Not(Expression),
    Negate(Expression),
    Binary(Operator, Expression, Expression),
    And(Expression, Expression),
    Or(Expression, Expression),
    /// `a < b <= c`
    Compare(Expression, Vec<(Operator, Expression)>),
    Condition {
        test: Expression,
        then: Expression,
        otherwise: Option<Expression>,
    },
    Filter {
        name: Arc<str>,
        value: Option<Expression>,
        arguments: Vec<Argument>,
    },
    Test {
        name: Arc<str>,
        value: Expression,
        arguments: Vec<Argument>,
    },
    Call(Call),
    List(Vec<Expression>),
    Tuple(Vec<Expression>),
    Map(Vec<(Expression, Expression)>),
}

#[derive(Debug)]
pub struct Call {
    pub function: Expression,
    pub arguments: Vec<Argument>,
}

#[derive(Debug)]
pub enum Argument {
    Positional(Expression),
    Named(Arc<str>, Expression),
    /// `*list`
    Spread(Expression),
    /// `**map`
    SpreadNamed(Expression),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
    Concatenate,
}
