//! Which filters a text uses, without evaluating it.

use super::tree::{Argument, Call, Expression, ExpressionKind, Macro, Statement, StatementKind};
use super::{Kind, parse};

/// The names of the filters in a text, each once; none if it cannot be parsed. Second, whether all of them are applied
/// whatever the values are: no condition, loop or macro is around them.
pub fn filters_used(text: &str, kind: Kind) -> (Vec<String>, bool) {
    let mut used = Used { names: Vec::new(), certain: true };
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
    (used.names, used.certain)
}

struct Used {
    names: Vec<String>,
    certain: bool,
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
                self.certain = false;
                self.expression(&node.iterable);
                node.condition.iter().for_each(|condition| self.expression(condition));
                self.statements(&node.body);
                self.statements(&node.otherwise);
            }
            StatementKind::If { condition, then, otherwise } => {
                self.certain = false;
                self.expression(condition);
                self.statements(then);
                self.statements(otherwise);
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
        self.certain = false;
        definition.defaults.iter().for_each(|default| self.expression(default));
        self.statements(&definition.body);
    }

    fn call(&mut self, call: &Call) {
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
            ExpressionKind::Constant(_) | ExpressionKind::Variable(_) => {}
            ExpressionKind::Attribute(value, _) | ExpressionKind::Not(value) | ExpressionKind::Negate(value) => {
                self.expression(value);
            }
            ExpressionKind::Item(left, right) | ExpressionKind::Binary(_, left, right) => {
                self.expression(left);
                self.expression(right);
            }
            ExpressionKind::And(left, right) | ExpressionKind::Or(left, right) => {
                self.certain = false;
                self.expression(left);
                self.expression(right);
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
                self.certain = false;
                self.expression(test);
                self.expression(then);
                otherwise.iter().for_each(|otherwise| self.expression(otherwise));
            }
            ExpressionKind::Filter { name, value, arguments } => {
                value.iter().for_each(|value| self.expression(value));
                self.arguments(arguments);
                if !self.names.iter().any(|known| **known == **name) {
                    self.names.push(name.to_string());
                }
            }
            ExpressionKind::Test { value, arguments, .. } => {
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
    fn filters_are_found_wherever_they_stand() {
        let cases = [
            ("{{ a | one | two(b | three) }}", "one three two", true),
            ("{% for x in a | one %}{{ x | two }}{% endfor %}", "one two", false),
            ("{{ a | one if b else c }}", "one", false),
            ("{% set x | one %}t{% endset %}{{ [a | two, {'k': b | three}][0 | four] }}", "one two three four", true),
            ("{{ broken", "", true),
        ];
        for (text, names, certain) in cases {
            let (found, is_certain) = filters_used(text, Kind::Template);
            assert_eq!((found.join(" ").as_str(), is_certain), (names, certain), "{text}");
        }
        assert_eq!(filters_used("a | one is defined", Kind::Expression), (vec!["one".to_owned()], true));
    }
}
