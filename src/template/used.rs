//! Which filters, tests and lookups a text uses, without evaluating it.

use super::error::Result;
use super::tree::{Argument, Call, Expression, ExpressionKind, Macro, Span, Statement, StatementKind, Template};
use super::{Kind, Syntax, parse};
use crate::value::Value;

/// What can be missing of what a text uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameKind {
    Filter,
    Test,
    Lookup,
}

/// A name that a text uses, and where in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedName {
    pub kind: NameKind,
    pub name: String,
    pub span: Span,
    /// It is used whatever the values are: no condition, loop or macro is around it.
    pub certain: bool,
    /// How many arguments without name follow the value that it is applied to; of a lookup its terms.
    pub positional: usize,
    /// The names of the other arguments.
    pub named: Vec<String>,
}

/// Each use of a filter, test or lookup in a text, also where its name is an argument, as in `map('lower')`; none
/// if the text cannot be parsed.
pub fn names_used(text: &str, kind: Kind) -> Vec<UsedName> {
    let mut used = Used::default();
    match kind {
        Kind::Expression if !crate::value::has_template_marks(text) => {
            if let Ok(expression) = parse::expression(text) {
                used.expression(&expression);
            }
        }
        _ => {
            if let Ok(template) = parse::playbook_text(text) {
                used.statements(&template.body);
            }
        }
    }
    used.uses
}

/// Those of a template file, or why it is no template.
pub fn names_used_in_file(text: &str, name: &str) -> Result<Vec<UsedName>> {
    let template: std::sync::Arc<Template> = parse::file_text(text, name, &Syntax::file())?;
    let mut used = Used::default();
    used.statements(&template.body);
    Ok(used.uses)
}

/// Whether statements use a variable of this name.
pub fn uses_variable(body: &[Statement], name: &str) -> bool {
    let mut used = Used::default();
    used.statements(body);
    used.variables.iter().any(|known| known == name)
}

struct Used {
    uses: Vec<UsedName>,
    variables: Vec<String>,
    certain: bool,
}

impl Default for Used {
    fn default() -> Self {
        Used { uses: Vec::new(), variables: Vec::new(), certain: true }
    }
}

/// The filters whose first argument can name a filter, or (with its place) a test.
const BY_NAME: [(&str, usize, NameKind); 5] = [
    ("map", 0, NameKind::Filter),
    ("select", 0, NameKind::Test),
    ("reject", 0, NameKind::Test),
    ("selectattr", 1, NameKind::Test),
    ("rejectattr", 1, NameKind::Test),
];

/// The text of an argument that is written as such.
fn constant(arguments: &[Argument], index: usize) -> Option<(&str, Span)> {
    match arguments.get(index)? {
        Argument::Positional(Expression { span, kind }) => match &**kind {
            ExpressionKind::Constant(Value::Str(text)) => Some((text.as_str(), *span)),
            _ => None,
        },
        _ => None,
    }
}

impl Used {
    fn statements(&mut self, body: &[Statement]) {
        body.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Statement) {
        match &statement.kind {
            StatementKind::Emit(value) | StatementKind::Do(value) | StatementKind::Set { value, .. } => {
                self.expression(value);
            }
            StatementKind::For(node) => {
                self.expression(&node.iterable);
                self.perhaps(|used| {
                    node.condition.iter().for_each(|condition| used.expression(condition));
                    used.statements(&node.body);
                    used.statements(&node.otherwise);
                });
            }
            StatementKind::If { condition, then, otherwise } => {
                self.expression(condition);
                self.perhaps(|used| {
                    used.statements(then);
                    used.statements(otherwise);
                });
            }
            StatementKind::With { assignments, body } => {
                assignments.iter().for_each(|(_, value)| self.expression(value));
                self.statements(body);
            }
            StatementKind::SetBlock { filter, body, .. } => {
                filter.iter().for_each(|filter| self.expression(filter));
                self.statements(body);
            }
            StatementKind::FilterBlock { filter, body } => {
                self.expression(filter);
                self.statements(body);
            }
            StatementKind::Scoped(body) => self.statements(body),
            StatementKind::Block { body, .. } => self.statements(body),
            StatementKind::Macro(definition) => self.definition(definition),
            StatementKind::CallBlock { call, block } => {
                self.call(call);
                self.definition(block);
            }
            StatementKind::Import { template, .. }
            | StatementKind::FromImport { template, .. }
            | StatementKind::Extends(template)
            | StatementKind::Include { template, .. } => self.expression(template),
            StatementKind::Text(_) | StatementKind::Continue | StatementKind::Break => {}
        }
    }

    fn definition(&mut self, definition: &Macro) {
        self.perhaps(|used| {
            definition.defaults.iter().for_each(|default| used.expression(default));
            used.statements(&definition.body);
        });
    }

    /// What may be evaluated or not.
    fn perhaps(&mut self, work: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.certain, false);
        work(self);
        self.certain = outer;
    }

    fn uses(&mut self, kind: NameKind, name: &str, span: Span, arguments: &[Argument]) {
        let positional = arguments.iter().filter(|argument| matches!(argument, Argument::Positional(_))).count();
        let named = arguments.iter().filter_map(|argument| match argument {
            Argument::Named(name, _) => Some(name.to_string()),
            _ => None,
        });
        let (name, named) = (name.to_owned(), named.collect());
        self.uses.push(UsedName { kind, name, span, positional, named, certain: self.certain });
    }

    fn call(&mut self, call: &Call) {
        if let ExpressionKind::Variable(name) = &*call.function.kind
            && matches!(&**name, "lookup" | "query" | "q")
            && let Some((lookup, span)) = constant(&call.arguments, 0)
        {
            self.uses(NameKind::Lookup, lookup, span, &call.arguments[1..]);
        }
        self.expression(&call.function);
        self.arguments(&call.arguments);
    }

    fn arguments(&mut self, arguments: &[Argument]) {
        for argument in arguments {
            match argument {
                Argument::Positional(value)
                | Argument::Named(_, value)
                | Argument::Spread(value)
                | Argument::SpreadNamed(value) => self.expression(value),
            }
        }
    }

    fn expression(&mut self, expression: &Expression) {
        match &*expression.kind {
            ExpressionKind::Constant(_) => {}
            ExpressionKind::Variable(name) => self.variables.push(name.to_string()),
            ExpressionKind::Attribute(value, _) | ExpressionKind::Not(value) | ExpressionKind::Negate(value) => {
                self.expression(value);
            }
            ExpressionKind::Item(left, right) | ExpressionKind::Binary(_, left, right) => {
                self.expression(left);
                self.expression(right);
            }
            ExpressionKind::And(left, right) | ExpressionKind::Or(left, right) => {
                self.expression(left);
                self.perhaps(|used| used.expression(right));
            }
            ExpressionKind::Slice { value, start, stop, step } => {
                self.expression(value);
                [start, stop, step].into_iter().flatten().for_each(|part| self.expression(part));
            }
            ExpressionKind::Compare(first, rest) => {
                self.expression(first);
                rest.iter().for_each(|(_, value)| self.expression(value));
            }
            ExpressionKind::Condition { test, then, otherwise } => {
                self.expression(test);
                self.perhaps(|used| {
                    used.expression(then);
                    otherwise.iter().for_each(|otherwise| used.expression(otherwise));
                });
            }
            ExpressionKind::Filter { name, value, arguments } => {
                value.iter().for_each(|value| self.expression(value));
                self.arguments(arguments);
                self.uses(NameKind::Filter, name, expression.span, arguments);
                let by_name = BY_NAME.iter().find(|(filter, ..)| *filter == &**name);
                if let Some((named, span)) = by_name.and_then(|(_, index, _)| constant(arguments, *index))
                    && let Some((_, index, kind)) = by_name
                {
                    self.uses(*kind, named, span, &arguments[index + 1..]);
                }
            }
            ExpressionKind::Test { name, value, arguments } => {
                self.uses(NameKind::Test, name, expression.span, arguments);
                self.expression(value);
                self.arguments(arguments);
            }
            ExpressionKind::Call(call) => self.call(call),
            ExpressionKind::List(items) | ExpressionKind::Tuple(items) => {
                items.iter().for_each(|item| self.expression(item));
            }
            ExpressionKind::Map(entries) => entries.iter().for_each(|(key, value)| {
                self.expression(key);
                self.expression(value);
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_for_sure_is_told_from_what_may_be_used() {
        let cases = [
            ("{{ a | one | two(b | three) }}", "one two three", ""),
            ("{% for x in a | one %}{{ x | two }}{% endfor %}{{ b | three }}", "one three", "two"),
            ("{{ a | one if b | two else c | three }}", "two", "one three"),
            ("{{ a | one and b | two or c | three }}", "one", "two three"),
            ("{% if a | one %}{{ b | two }}{% endif %}{{ c | three }}", "one three", "two"),
            ("{% macro m(x) %}{{ x | one }}{% endmacro %}{{ m(1) | two }}", "two", "one"),
            ("{% set x | one %}t{% endset %}{{ [a | two, {'k': b | three}][0 | four] }}", "one two three four", ""),
            ("{{ broken", "", ""),
        ];
        for (text, certain, perhaps) in cases {
            let names = |wanted: bool| {
                let mut names: Vec<String> = names_used(text, Kind::Template)
                    .into_iter()
                    .filter(|used| used.certain == wanted)
                    .map(|used| used.name)
                    .collect();
                names.sort_by_key(|name| ["one", "two", "three", "four"].iter().position(|known| known == name));
                names.join(" ")
            };
            assert_eq!((names(true).as_str(), names(false).as_str()), (certain, perhaps), "{text}");
        }
        assert_eq!(names_used("a | one is defined", Kind::Expression).len(), 2);
    }

    #[test]
    fn names_are_found_with_their_kind() {
        let uses = |text| {
            let names = names_used(text, Kind::Template).into_iter();
            names.map(|used| format!("{:?} {}", used.kind, used.name)).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(uses("{{ a | map('upper') | list }}"), "Filter map, Filter upper, Filter list");
        assert_eq!(uses("{{ a | selectattr('x', 'odd') }}"), "Filter selectattr, Test odd");
        assert_eq!(uses("{{ lookup('file', x) is defined and query(y) }}"), "Test defined, Lookup file");
        assert_eq!(uses("{{ broken"), "");
        let used = names_used_in_file("#jinja2: trim_blocks: False\n\n{{ a | b }}", "x.j2").expect("a template");
        assert_eq!((used[0].name.as_str(), used[0].span.line), ("b", 2));
        assert!(names_used_in_file("{% if %}", "x.j2").is_err());
    }
}
