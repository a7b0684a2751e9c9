//! Reads a query: words, then a tree by the strength of operators.

use super::{Comparison, Node};
use crate::template::filters::parse_json;
use crate::value::Value;

type Result<T> = std::result::Result<T, String>;

/// Nesting beyond this is refused.
const DEPTH_LIMIT: usize = 60;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    Quoted(String),
    Number(i64),
    Literal(Value),
    Compare(Comparison),
    /// `. * [ ] { } ( ) , : @ & !` and the pairs below
    Mark(char),
    Flatten,
    Filter,
    Pipe,
    Or,
    And,
    End,
}

fn tokens(query: &str) -> Result<Vec<Token>> {
    let characters: Vec<char> = query.chars().collect();
    let mut out = Vec::new();
    let mut index = 0;
    // the text up to the closing mark; a backslash before the mark keeps it
    let quoted = |start: usize, mark: char| -> Result<(String, usize)> {
        let mut text = String::new();
        let mut index = start;
        loop {
            match characters.get(index) {
                None => return Err(format!("`{mark}` is not closed")),
                Some(letter) if *letter == mark => return Ok((text, index + 1)),
                Some('\\') if characters.get(index + 1) == Some(&mark) => {
                    if mark == '"' {
                        text.push('\\');
                    }
                    text.push(mark);
                    index += 2;
                }
                Some('\\') if mark != '`' && characters.get(index + 1) == Some(&'\\') => {
                    text.push_str(if mark == '"' { "\\\\" } else { "\\" });
                    index += 2;
                }
                Some(letter) => {
                    text.push(*letter);
                    index += 1;
                }
            }
        }
    };
    while let Some(&letter) = characters.get(index) {
        let next = characters.get(index + 1).copied();
        let (token, length) = match (letter, next) {
            (letter, _) if letter.is_whitespace() => {
                index += 1;
                continue;
            }
            ('[', Some('?')) => (Token::Filter, 2),
            ('[', Some(']')) => (Token::Flatten, 2),
            ('|', Some('|')) => (Token::Or, 2),
            ('|', _) => (Token::Pipe, 1),
            ('&', Some('&')) => (Token::And, 2),
            ('=', Some('=')) => (Token::Compare(Comparison::Equal), 2),
            ('!', Some('=')) => (Token::Compare(Comparison::NotEqual), 2),
            ('<', Some('=')) => (Token::Compare(Comparison::LessOrEqual), 2),
            ('>', Some('=')) => (Token::Compare(Comparison::GreaterOrEqual), 2),
            ('<', _) => (Token::Compare(Comparison::Less), 1),
            ('>', _) => (Token::Compare(Comparison::Greater), 1),
            ('.' | '*' | '[' | ']' | '{' | '}' | '(' | ')' | ',' | ':' | '@' | '&' | '!', _) => {
                (Token::Mark(letter), 1)
            }
            ('\'', _) => {
                let (text, end) = quoted(index + 1, '\'')?;
                (Token::Literal(Value::from(text)), end - index)
            }
            ('"', _) => {
                let (text, end) = quoted(index + 1, '"')?;
                let text = serde_json::from_str(&format!("\"{text}\"")).map_err(|error| error.to_string())?;
                (Token::Quoted(text), end - index)
            }
            ('`', _) => {
                let (text, end) = quoted(index + 1, '`')?;
                // an old form: a bare word is a text
                let value = parse_json(text.trim()).unwrap_or_else(|_| Value::from(text.trim_start()));
                (Token::Literal(value), end - index)
            }
            ('-' | '0'..='9', _) => {
                let digits = characters[index + 1..].iter().take_while(|letter| letter.is_ascii_digit()).count();
                let text: String = characters[index..=index + digits].iter().collect();
                (Token::Number(text.parse().map_err(|_| format!("`{text}` is no number"))?), digits + 1)
            }
            (letter, _) if letter.is_ascii_alphabetic() || letter == '_' => {
                let is_part = |letter: &&char| letter.is_ascii_alphanumeric() || **letter == '_';
                let length = characters[index..].iter().take_while(is_part).count();
                (Token::Name(characters[index..index + length].iter().collect()), length)
            }
            (other, _) => return Err(format!("unknown character `{other}`")),
        };
        out.push(token);
        index += length;
    }
    out.push(Token::End);
    Ok(out)
}

struct Parser {
    tokens: Vec<Token>,
    place: usize,
    depth: usize,
}

/// How strongly a token binds to what stands left of it.
fn strength(token: &Token) -> u8 {
    match token {
        Token::Pipe => 1,
        Token::Or => 2,
        Token::And => 3,
        Token::Compare(_) => 5,
        Token::Flatten => 9,
        Token::Filter => 21,
        Token::Mark('*') => 20,
        Token::Mark('.') => 40,
        Token::Mark('!') => 45,
        Token::Mark('{') => 50,
        Token::Mark('[') => 55,
        Token::Mark('(') => 60,
        _ => 0,
    }
}

/// Operators weaker than this end a projection.
const PROJECTION_END: u8 = 10;

pub fn parse(query: &str) -> Result<Node> {
    let mut parser = Parser { tokens: tokens(query)?, place: 0, depth: 0 };
    let node = parser.expression(0)?;
    match parser.next() {
        Token::End => Ok(node),
        other => Err(format!("unexpected {other:?}")),
    }
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.place).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.place += 1;
        token
    }

    fn expect(&mut self, mark: char) -> Result<()> {
        match self.next() {
            Token::Mark(found) if found == mark => Ok(()),
            other => Err(format!("expected `{mark}`, found {other:?}")),
        }
    }

    fn expression(&mut self, binding: u8) -> Result<Node> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            return Err("it is nested too deeply".to_owned());
        }
        let mut left = self.first()?;
        while binding < strength(self.peek()) {
            left = self.then(left)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    /// What begins an expression.
    fn first(&mut self) -> Result<Node> {
        Ok(match self.next() {
            Token::Literal(value) => Node::Literal(value),
            Token::Name(name) => match self.peek() {
                Token::Mark('(') => {
                    self.next();
                    Node::Call(name, self.arguments()?)
                }
                _ => Node::Field(name),
            },
            Token::Quoted(name) => Node::Field(name),
            Token::Mark('*') => {
                let right = self.projected(20)?;
                Node::ValueProjection(Box::new(Node::Current), Box::new(right))
            }
            Token::Filter => self.filter(Node::Current)?,
            Token::Mark('{') => self.hash()?,
            Token::Mark('(') => {
                let inner = self.expression(0)?;
                self.expect(')')?;
                inner
            }
            Token::Flatten => {
                let right = self.projected(9)?;
                Node::ListProjection(Box::new(Node::Flatten(Box::new(Node::Current))), Box::new(right))
            }
            Token::Mark('!') => Node::Not(Box::new(self.expression(45)?)),
            Token::Mark('[') => match (self.peek().clone(), self.tokens.get(self.place + 1)) {
                (Token::Number(_) | Token::Mark(':'), _) => self.index(Node::Current)?,
                (Token::Mark('*'), Some(Token::Mark(']'))) => {
                    self.place += 2;
                    let right = self.projected(20)?;
                    Node::ListProjection(Box::new(Node::Current), Box::new(right))
                }
                _ => self.list()?,
            },
            Token::Mark('@') => Node::Current,
            Token::Mark('&') => Node::Reference(Box::new(self.expression(0)?)),
            Token::End => return Err("it ends too early".to_owned()),
            other => return Err(format!("unexpected {other:?}")),
        })
    }

    /// What goes on after a left side.
    fn then(&mut self, left: Node) -> Result<Node> {
        let left = Box::new(left);
        Ok(match self.next() {
            Token::Mark('.') => {
                if *self.peek() == Token::Mark('*') {
                    self.next();
                    let right = self.projected(20)?;
                    return Ok(Node::ValueProjection(left, Box::new(right)));
                }
                let right = self.after_dot(40)?;
                Node::Sub(left, Box::new(right))
            }
            Token::Pipe => Node::Pipe(left, Box::new(self.expression(1)?)),
            Token::Or => Node::Or(left, Box::new(self.expression(2)?)),
            Token::And => Node::And(left, Box::new(self.expression(3)?)),
            Token::Compare(comparison) => Node::Compare(comparison, left, Box::new(self.expression(5)?)),
            Token::Flatten => {
                let right = self.projected(9)?;
                Node::ListProjection(Box::new(Node::Flatten(left)), Box::new(right))
            }
            Token::Filter => self.filter(*left)?,
            Token::Mark('[') => match self.peek() {
                Token::Number(_) | Token::Mark(':') => self.index(*left)?,
                _ => {
                    self.expect('*')?;
                    self.expect(']')?;
                    let right = self.projected(20)?;
                    Node::ListProjection(left, Box::new(right))
                }
            },
            other => return Err(format!("unexpected {other:?}")),
        })
    }

    fn filter(&mut self, left: Node) -> Result<Node> {
        let condition = self.expression(0)?;
        self.expect(']')?;
        let right = if *self.peek() == Token::Flatten { Node::Current } else { self.projected(21)? };
        Ok(Node::FilterProjection(Box::new(left), Box::new(condition), Box::new(right)))
    }

    /// After `[`: a number, or the bounds of a slice.
    fn index(&mut self, left: Node) -> Result<Node> {
        let mut bounds = [None, None, None];
        let mut colons = 0;
        loop {
            match self.next() {
                Token::Number(number) if bounds[colons].is_none() => bounds[colons] = Some(number),
                Token::Mark(':') if colons < 2 => colons += 1,
                Token::Mark(']') => break,
                other => return Err(format!("unexpected {other:?} within brackets")),
            }
        }
        if colons == 0 {
            let index = bounds[0].ok_or_else(|| "an index is missing".to_owned())?;
            return Ok(Node::Sub(Box::new(left), Box::new(Node::Index(index))));
        }
        let slice = Node::Sub(Box::new(left), Box::new(Node::Slice(bounds)));
        let right = self.projected(20)?;
        Ok(Node::ListProjection(Box::new(slice), Box::new(right)))
    }

    /// The right side of a projection: what applies to each element.
    fn projected(&mut self, binding: u8) -> Result<Node> {
        match self.peek() {
            token if strength(token) < PROJECTION_END => Ok(Node::Current),
            Token::Mark('[') | Token::Filter => self.expression(binding),
            Token::Mark('.') => {
                self.next();
                self.after_dot(binding)
            }
            other => Err(format!("unexpected {other:?}")),
        }
    }

    fn after_dot(&mut self, binding: u8) -> Result<Node> {
        match self.peek() {
            Token::Name(_) | Token::Quoted(_) | Token::Mark('*') => self.expression(binding),
            Token::Mark('[') => {
                self.next();
                self.list()
            }
            Token::Mark('{') => {
                self.next();
                self.hash()
            }
            other => Err(format!("unexpected {other:?} after a dot")),
        }
    }

    fn list(&mut self) -> Result<Node> {
        let mut nodes = vec![self.expression(0)?];
        loop {
            match self.next() {
                Token::Mark(',') => nodes.push(self.expression(0)?),
                Token::Mark(']') => return Ok(Node::List(nodes)),
                other => return Err(format!("expected `,` or `]`, found {other:?}")),
            }
        }
    }

    fn hash(&mut self) -> Result<Node> {
        let mut entries = Vec::new();
        loop {
            let name = match self.next() {
                Token::Name(name) | Token::Quoted(name) => name,
                other => return Err(format!("expected a name, found {other:?}")),
            };
            self.expect(':')?;
            entries.push((name, self.expression(0)?));
            match self.next() {
                Token::Mark(',') => {}
                Token::Mark('}') => return Ok(Node::Hash(entries)),
                other => return Err(format!("expected `,` or `}}`, found {other:?}")),
            }
        }
    }

    fn arguments(&mut self) -> Result<Vec<Node>> {
        let mut arguments = Vec::new();
        if *self.peek() == Token::Mark(')') {
            self.next();
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression(0)?);
            match self.next() {
                Token::Mark(',') => {}
                Token::Mark(')') => return Ok(arguments),
                other => return Err(format!("expected `,` or `)`, found {other:?}")),
            }
        }
    }
}
