//! From text to tree, through minijinja's parser; parsed texts are kept.
//!
//! The only file that knows the parser's types.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex};

use minijinja::machinery::{self, ast};
use minijinja::syntax::SyntaxConfig;
use num_bigint::BigInt;

use super::error::{Result, TemplateError};
use super::escapes;
use super::tree::*;
use super::used::uses_variable;
use crate::value::{Text, Value};

/// How a text is to be read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Syntax {
    pub trim_blocks: bool,
    pub lstrip_blocks: bool,
    pub variable: (String, String),
    pub block: (String, String),
    pub comment: (String, String),
    /// Backslashes in strings within `{{ }}` are taken literally, as Ansible does in playbooks
    /// (so that `'\1'` and `'\d'` reach a regular expression); not in template files.
    pub literal_backslashes: bool,
}

impl Syntax {
    /// What Ansible uses for the values of a playbook.
    pub fn playbook() -> Self {
        let pair = |start: &str, end: &str| (start.to_owned(), end.to_owned());
        Syntax {
            trim_blocks: true,
            lstrip_blocks: false,
            variable: pair("{{", "}}"),
            block: pair("{%", "%}"),
            comment: pair("{#", "#}"),
            literal_backslashes: true,
        }
    }

    /// What Ansible uses for template files.
    pub fn file() -> Self {
        Syntax { literal_backslashes: false, ..Self::playbook() }
    }

    fn config(&self) -> Result<SyntaxConfig> {
        let mut builder = SyntaxConfig::builder();
        builder.trim_blocks(self.trim_blocks).lstrip_blocks(self.lstrip_blocks).keep_trailing_newline(true);
        let default = Self::playbook();
        if self.variable != default.variable {
            builder.variable_delimiters(self.variable.0.clone(), self.variable.1.clone());
        }
        if self.block != default.block {
            builder.block_delimiters(self.block.0.clone(), self.block.1.clone());
        }
        if self.comment != default.comment {
            builder.comment_delimiters(self.comment.0.clone(), self.comment.1.clone());
        }
        builder.build().map_err(|error| convert_error(&error))
    }
}

/// Takes a `#jinja2: variable_start_string:'[%', trim_blocks: False` line off the head of a template file.
pub fn take_header(text: &str, mut syntax: Syntax) -> Result<(&str, Syntax)> {
    let Some(rest) = text.strip_prefix("#jinja2:") else { return Ok((text, syntax)) };
    let (header, body) = rest.split_once('\n').unwrap_or((rest, ""));
    for pair in split_header(header) {
        let Some((key, value)) = pair.split_once(':') else {
            return Err(TemplateError::syntax(format!(
                "`#jinja2:` line: expected `name: value`, found `{}`",
                pair.trim()
            )));
        };
        let value = value.trim();
        let text = value.trim_matches(['\'', '"']).to_owned();
        let flag = || match value {
            "True" | "true" => Ok(true),
            "False" | "false" => Ok(false),
            other => Err(TemplateError::syntax(format!("`#jinja2:` line: `{other}` is neither True nor False"))),
        };
        match key.trim() {
            "trim_blocks" => syntax.trim_blocks = flag()?,
            "lstrip_blocks" => syntax.lstrip_blocks = flag()?,
            "variable_start_string" => syntax.variable.0 = text,
            "variable_end_string" => syntax.variable.1 = text,
            "block_start_string" => syntax.block.0 = text,
            "block_end_string" => syntax.block.1 = text,
            "comment_start_string" => syntax.comment.0 = text,
            "comment_end_string" => syntax.comment.1 = text,
            // the final newline is always kept and newlines are always `\n`, as Ansible sets them
            "keep_trailing_newline" | "newline_sequence" | "auto_reload" => {}
            other => {
                return Err(TemplateError::syntax(format!("`#jinja2:` line: `{other}` cannot be overridden")));
            }
        }
    }
    Ok((body, syntax))
}

/// Splits at the commas outside of quotes.
fn split_header(header: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut quote) = (0, None);
    for (index, character) in header.char_indices() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (None, ',') => {
                parts.push(&header[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&header[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

const SHARDS: usize = 16;
/// A shard that holds more texts than this is emptied: they were made by loops, not written.
const SHARD_LIMIT: usize = 2048;

type Shard<K, V> = Mutex<HashMap<K, Result<Arc<V>>>>;

struct Cache<K, V> {
    shards: [Shard<K, V>; SHARDS],
}

impl<K: Hash + Eq, V> Cache<K, V> {
    fn new() -> Self {
        Cache { shards: std::array::from_fn(|_| Mutex::new(HashMap::new())) }
    }

    fn get<Q>(&self, key: &Q, own: impl FnOnce() -> K, parse: impl FnOnce() -> Result<V>) -> Result<Arc<V>>
    where
        K: std::borrow::Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let shard = &self.shards[hasher.finish() as usize % SHARDS];
        let lock = || shard.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(found) = lock().get(key) {
            return found.clone();
        }
        let parsed = parse().map(Arc::new);
        let mut entries = lock();
        if entries.len() >= SHARD_LIMIT {
            entries.clear();
        }
        entries.insert(own(), parsed.clone());
        parsed
    }
}

static PLAYBOOK_TEXTS: LazyLock<Cache<String, Template>> = LazyLock::new(Cache::new);
static EXPRESSIONS: LazyLock<Cache<String, Expression>> = LazyLock::new(Cache::new);
static CONDITIONS: LazyLock<Cache<String, Expression>> = LazyLock::new(Cache::new);
static FILES: LazyLock<Cache<(String, String, Syntax), Template>> = LazyLock::new(Cache::new);

/// A text from a playbook, inventory or command line.
pub fn playbook_text(text: &str) -> Result<Arc<Template>> {
    PLAYBOOK_TEXTS.get(text, || text.to_owned(), || parse_template(text, "", &Syntax::playbook()))
}

/// The text of a template file, which may begin with a `#jinja2:` line.
pub fn file_text(text: &str, name: &str, syntax: &Syntax) -> Result<Arc<Template>> {
    let key = (text.to_owned(), name.to_owned(), syntax.clone());
    FILES.get(
        &key,
        || key.clone(),
        || {
            let (body, syntax) = take_header(text, syntax.clone())?;
            parse_template(body, name, &syntax)
        },
    )
}

/// An expression without braces.
pub fn expression(text: &str) -> Result<Arc<Expression>> {
    EXPRESSIONS.get(
        text,
        || text.to_owned(),
        || {
            let text = escapes::literal_backslashes(text, true, SyntaxConfig::default());
            let parsed = machinery::parse_expr(&text)
                .map_err(|error| convert_error(&error).context("syntax error in expression"))?;
            convert_expression(&parsed)
        },
    )
}

/// A condition: an expression without braces, in whose strings backslashes escape as in Python.
pub fn condition(text: &str) -> Result<Arc<Expression>> {
    if !text.contains('\\') {
        return expression(text);
    }
    CONDITIONS.get(
        text,
        || text.to_owned(),
        || {
            let text = escapes::with_pythons_escapes(text);
            let parsed = machinery::parse_expr(&text)
                .map_err(|error| convert_error(&error).context("syntax error in expression"))?;
            convert_expression(&parsed)
        },
    )
}

/// The value of a text that is nothing but literals.
pub fn literal(text: &str) -> Option<Value> {
    fn constant(expression: &Expression) -> Option<Value> {
        match &*expression.kind {
            ExpressionKind::Constant(value) => Some(value.clone()),
            ExpressionKind::Negate(operand) => crate::template::eval::operators::negate(&constant(operand)?).ok(),
            ExpressionKind::List(items) | ExpressionKind::Tuple(items) => {
                items.iter().map(constant).collect::<Option<Vec<_>>>().map(Value::list)
            }
            ExpressionKind::Map(entries) => entries
                .iter()
                .map(|(key, value)| Some((constant(key)?, constant(value)?)))
                .collect::<Option<_>>()
                .map(Value::map),
            // as JSON spells it
            ExpressionKind::Variable(name) if &**name == "null" => Some(Value::Null),
            _ => None,
        }
    }
    let parsed = machinery::parse_expr(text).ok()?;
    constant(&convert_expression(&parsed).ok()?)
}

fn parse_template(text: &str, name: &str, syntax: &Syntax) -> Result<Template> {
    let config = syntax.config()?;
    let text = if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    };
    let text =
        if syntax.literal_backslashes { escapes::literal_backslashes(&text, false, config.clone()) } else { text };
    let parsed = machinery::parse(&text, name, config).map_err(|error| {
        let error = convert_error(&error).context("syntax error in template");
        match error.place().map(|place| place.span) {
            Some(span) => error.without_place().at(&Arc::from(name), span),
            None => error,
        }
    })?;
    let body = match &parsed {
        ast::Stmt::Template(template) => convert_body(&template.children)?,
        other => vec![convert_statement(other)?],
    };
    Ok(Template { name: Arc::from(name), body })
}

fn convert_error(error: &minijinja::Error) -> TemplateError {
    let message = match error.detail() {
        Some(detail) => detail.to_owned(),
        None => error.kind().to_string(),
    };
    let converted = TemplateError::syntax(message);
    let range = error.range().unwrap_or(0..0);
    match error.line() {
        Some(line) => converted.at(
            &Arc::from(""),
            Span { line: line as u32, column: 1, start: range.start as u32, end: range.end as u32 },
        ),
        None => converted,
    }
}

fn convert_span(span: machinery::Span) -> Span {
    Span {
        line: u32::from(span.start_line),
        column: u32::from(span.start_col) + 1,
        start: span.start_offset,
        end: span.end_offset,
    }
}

fn convert_body(statements: &[ast::Stmt<'_>]) -> Result<Vec<Statement>> {
    statements.iter().map(convert_statement).collect()
}

fn convert_statement(statement: &ast::Stmt<'_>) -> Result<Statement> {
    let (span, kind) = match statement {
        ast::Stmt::Template(node) => (node.span(), StatementKind::Scoped(convert_body(&node.children)?)),
        ast::Stmt::EmitExpr(node) => (node.span(), StatementKind::Emit(convert_expression(&node.expr)?)),
        ast::Stmt::EmitRaw(node) => (node.span(), StatementKind::Text(Arc::from(node.raw))),
        ast::Stmt::ForLoop(node) => (
            node.span(),
            StatementKind::For(Arc::new(For {
                target: convert_target(&node.target)?,
                iterable: convert_expression(&node.iter)?,
                condition: node.filter_expr.as_ref().map(convert_expression).transpose()?,
                recursive: node.recursive,
                body: convert_body(&node.body)?,
                otherwise: convert_body(&node.else_body)?,
            })),
        ),
        ast::Stmt::IfCond(node) => (
            node.span(),
            StatementKind::If {
                condition: convert_expression(&node.expr)?,
                then: convert_body(&node.true_body)?,
                otherwise: convert_body(&node.false_body)?,
            },
        ),
        ast::Stmt::WithBlock(node) => {
            let assignments = node
                .assignments
                .iter()
                .map(|(target, value)| Ok((convert_target(target)?, convert_expression(value)?)))
                .collect::<Result<_>>()?;
            (node.span(), StatementKind::With { assignments, body: convert_body(&node.body)? })
        }
        ast::Stmt::Set(node) => (
            node.span(),
            StatementKind::Set { target: convert_target(&node.target)?, value: convert_expression(&node.expr)? },
        ),
        ast::Stmt::SetBlock(node) => (
            node.span(),
            StatementKind::SetBlock {
                target: convert_target(&node.target)?,
                filter: node.filter.as_ref().map(convert_expression).transpose()?,
                body: convert_body(&node.body)?,
            },
        ),
        ast::Stmt::AutoEscape(node) => (node.span(), StatementKind::Scoped(convert_body(&node.body)?)),
        ast::Stmt::FilterBlock(node) => (
            node.span(),
            StatementKind::FilterBlock { filter: convert_expression(&node.filter)?, body: convert_body(&node.body)? },
        ),
        ast::Stmt::Block(node) => (
            node.span(),
            StatementKind::Block { name: Arc::from(node.name), body: Arc::new(convert_body(&node.body)?) },
        ),
        ast::Stmt::Import(node) => (
            node.span(),
            StatementKind::Import { template: convert_expression(&node.expr)?, name: convert_target(&node.name)? },
        ),
        ast::Stmt::FromImport(node) => {
            let names = node
                .names
                .iter()
                .map(|(name, alias)| {
                    let name = variable_name(name)?;
                    let alias = alias.as_ref().map(variable_name).transpose()?.unwrap_or_else(|| Arc::clone(&name));
                    Ok((name, alias))
                })
                .collect::<Result<_>>()?;
            (node.span(), StatementKind::FromImport { template: convert_expression(&node.expr)?, names })
        }
        ast::Stmt::Extends(node) => (node.span(), StatementKind::Extends(convert_expression(&node.name)?)),
        ast::Stmt::Include(node) => (
            node.span(),
            StatementKind::Include { template: convert_expression(&node.name)?, ignore_missing: node.ignore_missing },
        ),
        ast::Stmt::Macro(node) => (node.span(), StatementKind::Macro(Arc::new(convert_macro(node)?))),
        ast::Stmt::CallBlock(node) => (
            node.span(),
            StatementKind::CallBlock {
                call: convert_call(&node.call)?,
                block: Arc::new(convert_macro(&node.macro_decl)?),
            },
        ),
        ast::Stmt::Continue(node) => (node.span(), StatementKind::Continue),
        ast::Stmt::Break(node) => (node.span(), StatementKind::Break),
        ast::Stmt::Do(node) => {
            let span = convert_span(node.span());
            let kind = Box::new(ExpressionKind::Call(convert_call(&node.call)?));
            (node.span(), StatementKind::Do(Expression { span, kind }))
        }
    };
    Ok(Statement { span: convert_span(span), kind })
}

fn convert_macro(node: &ast::Macro<'_>) -> Result<Macro> {
    let body = convert_body(&node.body)?;
    Ok(Macro {
        name: Arc::from(node.name),
        parameters: node.args.iter().map(variable_name).collect::<Result<_>>()?,
        defaults: node.defaults.iter().map(convert_expression).collect::<Result<_>>()?,
        takes_more: uses_variable(&body, "varargs"),
        takes_named: uses_variable(&body, "kwargs"),
        body,
    })
}

fn variable_name(expression: &ast::Expr<'_>) -> Result<Arc<str>> {
    match expression {
        ast::Expr::Var(variable) => Ok(Arc::from(variable.id)),
        other => Err(TemplateError::syntax(format!("expected a name, found {}", other.description()))
            .at(&Arc::from(""), convert_span(other.span()))),
    }
}

fn convert_target(expression: &ast::Expr<'_>) -> Result<Target> {
    match expression {
        ast::Expr::Var(variable) => Ok(Target::Name(Arc::from(variable.id))),
        ast::Expr::GetAttr(node) => Ok(Target::Attribute(convert_expression(&node.expr)?, Arc::from(node.name))),
        ast::Expr::List(node) => Ok(Target::Unpack(node.items.iter().map(convert_target).collect::<Result<_>>()?)),
        ast::Expr::Tuple(node) => Ok(Target::Unpack(node.items.iter().map(convert_target).collect::<Result<_>>()?)),
        other => Err(TemplateError::syntax(format!("cannot assign to {}", other.description()))
            .at(&Arc::from(""), convert_span(other.span()))),
    }
}

fn convert_call(node: &ast::Call<'_>) -> Result<Call> {
    Ok(Call { function: convert_expression(&node.expr)?, arguments: convert_arguments(&node.args)? })
}

fn convert_arguments(arguments: &[ast::CallArg<'_>]) -> Result<Vec<Argument>> {
    let mut names = std::collections::HashSet::new();
    for argument in arguments {
        if let ast::CallArg::Kwarg(name, value) = argument
            && !names.insert(*name)
        {
            return Err(TemplateError::syntax(format!("keyword argument repeated: {name}"))
                .at(&Arc::from(""), convert_span(value.span())));
        }
    }
    arguments
        .iter()
        .map(|argument| {
            Ok(match argument {
                ast::CallArg::Pos(value) => Argument::Positional(convert_expression(value)?),
                ast::CallArg::Kwarg(name, value) => Argument::Named(Arc::from(*name), convert_expression(value)?),
                ast::CallArg::PosSplat(value) => Argument::Spread(convert_expression(value)?),
                ast::CallArg::KwargSplat(value) => Argument::SpreadNamed(convert_expression(value)?),
            })
        })
        .collect()
}

fn convert_expression(expression: &ast::Expr<'_>) -> Result<Expression> {
    let span = convert_span(expression.span());
    let kind = match expression {
        ast::Expr::Var(node) => ExpressionKind::Variable(Arc::from(node.id)),
        ast::Expr::Const(node) => ExpressionKind::Constant(convert_constant(&node.value)?),
        ast::Expr::Slice(node) => {
            let part = |part: &Option<ast::Expr<'_>>| part.as_ref().map(convert_expression).transpose();
            ExpressionKind::Slice {
                value: convert_expression(&node.expr)?,
                start: part(&node.start)?,
                stop: part(&node.stop)?,
                step: part(&node.step)?,
            }
        }
        ast::Expr::UnaryOp(node) => {
            let operand = convert_expression(&node.expr)?;
            match node.op {
                ast::UnaryOpKind::Not => ExpressionKind::Not(operand),
                ast::UnaryOpKind::Neg => ExpressionKind::Negate(operand),
            }
        }
        ast::Expr::BinOp(node) => {
            let (left, right) = (convert_expression(&node.left)?, convert_expression(&node.right)?);
            match node.op {
                ast::BinOpKind::ScAnd => ExpressionKind::And(left, right),
                ast::BinOpKind::ScOr => ExpressionKind::Or(left, right),
                other => ExpressionKind::Binary(convert_operator(other), left, right),
            }
        }
        ast::Expr::Compare(node) => {
            let rest = node
                .ops
                .iter()
                .map(|step| Ok((convert_comparison(step.op), convert_expression(&step.expr)?)))
                .collect::<Result<_>>()?;
            ExpressionKind::Compare(convert_expression(&node.expr)?, rest)
        }
        ast::Expr::IfExpr(node) => ExpressionKind::Condition {
            test: convert_expression(&node.test_expr)?,
            then: convert_expression(&node.true_expr)?,
            otherwise: node.false_expr.as_ref().map(convert_expression).transpose()?,
        },
        ast::Expr::Filter(node) => ExpressionKind::Filter {
            name: plain_name(node.name),
            value: node.expr.as_ref().map(convert_expression).transpose()?,
            arguments: convert_arguments(&node.args)?,
        },
        ast::Expr::Test(node) => ExpressionKind::Test {
            name: plain_name(node.name),
            value: convert_expression(&node.expr)?,
            arguments: convert_arguments(&node.args)?,
        },
        ast::Expr::GetAttr(node) => ExpressionKind::Attribute(convert_expression(&node.expr)?, Arc::from(node.name)),
        ast::Expr::GetItem(node) => {
            ExpressionKind::Item(convert_expression(&node.expr)?, convert_expression(&node.subscript_expr)?)
        }
        ast::Expr::Call(node) => ExpressionKind::Call(convert_call(node)?),
        ast::Expr::List(node) => {
            ExpressionKind::List(node.items.iter().map(convert_expression).collect::<Result<_>>()?)
        }
        ast::Expr::Tuple(node) => {
            ExpressionKind::Tuple(node.items.iter().map(convert_expression).collect::<Result<_>>()?)
        }
        ast::Expr::Map(node) => {
            let entries = node
                .keys
                .iter()
                .zip(&node.values)
                .map(|(key, value)| Ok((convert_expression(key)?, convert_expression(value)?)))
                .collect::<Result<_>>()?;
            ExpressionKind::Map(entries)
        }
    };
    Ok(Expression { span, kind: Box::new(kind) })
}

/// The name of a filter or test as written, without the blanks that may stand around its dots.
fn plain_name(name: &str) -> Arc<str> {
    if name.contains(char::is_whitespace) { name.split_whitespace().collect::<String>().into() } else { name.into() }
}

fn convert_operator(operator: ast::BinOpKind) -> Operator {
    match operator {
        ast::BinOpKind::Eq => Operator::Equal,
        ast::BinOpKind::Ne => Operator::NotEqual,
        ast::BinOpKind::Lt => Operator::Less,
        ast::BinOpKind::Lte => Operator::LessOrEqual,
        ast::BinOpKind::Gt => Operator::Greater,
        ast::BinOpKind::Gte => Operator::GreaterOrEqual,
        ast::BinOpKind::In => Operator::In,
        ast::BinOpKind::Add => Operator::Add,
        ast::BinOpKind::Sub => Operator::Subtract,
        ast::BinOpKind::Mul => Operator::Multiply,
        ast::BinOpKind::Div => Operator::Divide,
        ast::BinOpKind::FloorDiv => Operator::FloorDivide,
        ast::BinOpKind::Rem => Operator::Remainder,
        ast::BinOpKind::Pow => Operator::Power,
        // `and` and `or` have nodes of their own and never come here
        ast::BinOpKind::Concat | ast::BinOpKind::ScAnd | ast::BinOpKind::ScOr => Operator::Concatenate,
    }
}

fn convert_comparison(operator: ast::CompareOpKind) -> Operator {
    match operator {
        ast::CompareOpKind::Eq => Operator::Equal,
        ast::CompareOpKind::Ne => Operator::NotEqual,
        ast::CompareOpKind::Lt => Operator::Less,
        ast::CompareOpKind::Lte => Operator::LessOrEqual,
        ast::CompareOpKind::Gt => Operator::Greater,
        ast::CompareOpKind::Gte => Operator::GreaterOrEqual,
        ast::CompareOpKind::In => Operator::In,
        ast::CompareOpKind::NotIn => Operator::NotIn,
    }
}

fn convert_constant(value: &minijinja::Value) -> Result<Value> {
    use minijinja::value::ValueKind;
    Ok(match value.kind() {
        ValueKind::None => Value::Null,
        ValueKind::Undefined => Value::Null,
        ValueKind::Bool => Value::Bool(value.is_true()),
        ValueKind::Number if value.is_integer() => {
            let text = value.to_string();
            match text.parse::<BigInt>() {
                Ok(number) => Value::big(number),
                Err(_) => return Err(TemplateError::syntax(format!("`{text}` is not an integer"))),
            }
        }
        ValueKind::Number => match f64::try_from(value.clone()) {
            Ok(number) => Value::Float(number),
            Err(_) => return Err(TemplateError::syntax(format!("`{value}` is not a number"))),
        },
        _ => match value.as_str() {
            Some(text) => Value::Str(Text::made_of_written(text)),
            None => return Err(TemplateError::syntax(format!("`{value}` cannot stand here"))),
        },
    })
}
