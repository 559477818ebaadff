//! The parts that documents and type definitions share: names, literals, types, arguments, directives.
//! Invariant: nesting is bounded, so no text can exhaust the stack.

use super::ast::{Argument, Directive, Literal, TypeRef};
use super::lex::{Token, lex};
use crate::graphql::problem::{At, Code, Problem};

const DEEPEST: usize = 100;

pub struct Parser {
    tokens: Vec<(Token, At)>,
    next: usize,
    depth: usize,
}

impl Parser {
    pub fn new(text: &str) -> Result<Parser, Problem> {
        Ok(Parser { tokens: lex(text)?, next: 0, depth: 0 })
    }

    pub fn peek(&self) -> &Token {
        // The last token is `End`, which is never taken.
        self.tokens.get(self.next).map_or(&Token::End, |(token, _)| token)
    }

    pub fn at(&self) -> At {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(At::default(), |(_, at)| *at)
    }

    pub fn wrong<T>(&self, expected: &str) -> Result<T, Problem> {
        let found = match self.peek() {
            Token::Mark(mark) => format!("`{mark}`"),
            Token::Dots => "`...`".to_owned(),
            Token::Name(name) => format!("`{name}`"),
            Token::Int(number) => format!("`{number}`"),
            Token::Float(number) => format!("`{number}`"),
            Token::Text(_) => "a text".to_owned(),
            Token::End => "the end".to_owned(),
        };
        Err(Problem::new(Code::ParseFailed, format!("expected {expected}, found {found}")).at(self.at()))
    }

    pub fn has(&self, mark: char) -> bool {
        *self.peek() == Token::Mark(mark)
    }

    pub fn has_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Name(name) if name == word)
    }

    pub fn skip(&mut self) {
        if *self.peek() != Token::End {
            self.next += 1;
        }
    }

    pub fn take(&mut self, mark: char) -> bool {
        let has = self.has(mark);
        if has {
            self.skip();
        }
        has
    }

    pub fn take_word(&mut self, word: &str) -> bool {
        let has = self.has_word(word);
        if has {
            self.skip();
        }
        has
    }

    pub fn expect(&mut self, mark: char) -> Result<(), Problem> {
        if self.take(mark) { Ok(()) } else { self.wrong(&format!("`{mark}`")) }
    }

    pub fn name(&mut self) -> Result<String, Problem> {
        match self.peek().clone() {
            Token::Name(name) => {
                self.skip();
                Ok(name)
            }
            _ => self.wrong("a name"),
        }
    }

    /// One or more between two marks.
    pub fn group<T>(
        &mut self,
        (open, close): (char, char),
        mut one: impl FnMut(&mut Parser) -> Result<T, Problem>,
    ) -> Result<Vec<T>, Problem> {
        self.expect(open)?;
        let mut items = vec![self.deeper(&mut one)?];
        while !self.take(close) {
            items.push(self.deeper(&mut one)?);
        }
        Ok(items)
    }

    pub fn arguments(&mut self) -> Result<Vec<Argument>, Problem> {
        if !self.has('(') {
            return Ok(Vec::new());
        }
        self.group(('(', ')'), |parser| {
            let name = parser.name()?;
            parser.expect(':')?;
            Ok(Argument { name, value: parser.literal()? })
        })
    }

    pub fn directives(&mut self) -> Result<Vec<Directive>, Problem> {
        let mut directives = Vec::new();
        while self.has('@') {
            let at = self.at();
            self.skip();
            directives.push(Directive { name: self.name()?, arguments: self.arguments()?, at });
        }
        Ok(directives)
    }

    pub fn literal(&mut self) -> Result<Literal, Problem> {
        let literal = match self.peek().clone() {
            Token::Mark('$') => {
                self.skip();
                return Ok(Literal::Variable(self.name()?));
            }
            Token::Mark('[') => return self.list(),
            Token::Mark('{') => return self.object(),
            Token::Int(number) => Literal::Int(number),
            Token::Float(number) => Literal::Float(number),
            Token::Text(text) => Literal::Text(text),
            Token::Name(name) => match name.as_str() {
                "true" => Literal::Boolean(true),
                "false" => Literal::Boolean(false),
                "null" => Literal::Null,
                _ => Literal::Enum(name),
            },
            _ => return self.wrong("a value"),
        };
        self.skip();
        Ok(literal)
    }

    fn list(&mut self) -> Result<Literal, Problem> {
        self.expect('[')?;
        let mut items = Vec::new();
        while !self.take(']') {
            items.push(self.deeper(&mut Parser::literal)?);
        }
        Ok(Literal::List(items))
    }

    fn object(&mut self) -> Result<Literal, Problem> {
        self.expect('{')?;
        let mut fields = Vec::new();
        while !self.take('}') {
            let name = self.name()?;
            self.expect(':')?;
            fields.push((name, self.deeper(&mut Parser::literal)?));
        }
        Ok(Literal::Object(fields))
    }

    pub fn type_ref(&mut self) -> Result<TypeRef, Problem> {
        let inner = if self.take('[') {
            let inner = self.deeper(&mut Parser::type_ref)?;
            self.expect(']')?;
            TypeRef::List(Box::new(inner))
        } else {
            TypeRef::Named(self.name()?)
        };
        Ok(if self.take('!') { TypeRef::NonNull(Box::new(inner)) } else { inner })
    }

    fn deeper<T>(&mut self, one: &mut impl FnMut(&mut Parser) -> Result<T, Problem>) -> Result<T, Problem> {
        if self.depth == DEEPEST {
            return Err(Problem::new(Code::ParseFailed, format!("nested deeper than {DEEPEST}")).at(self.at()));
        }
        self.depth += 1;
        let item = one(self)?;
        self.depth -= 1;
        Ok(item)
    }
}
