//! Reads what a client sends: operations and fragments.
//! Invariant: the whole text is read, or it is refused at the first place that does not fit; a text has a longest length, so
//! that what grows with the square of it stays small.

use super::ast::{Document, Field, Fragment, Operation, OperationKind, Selection, Variable};
use super::lex::Token;
use super::parser::Parser;
use crate::graphql::problem::{Code, Problem};

const LONGEST: usize = 100_000;

pub fn document(text: &str) -> Result<Document, Problem> {
    if text.len() > LONGEST {
        return Err(Problem::new(Code::ParseFailed, format!("the text has more than {LONGEST} bytes")));
    }
    let mut parser = Parser::new(text)?;
    let mut document = Document::default();
    loop {
        match parser.peek() {
            Token::End if document.operations.is_empty() && document.fragments.is_empty() => {
                return parser.wrong("an operation");
            }
            Token::End => return Ok(document),
            Token::Name(word) if word == "fragment" => document.fragments.push(fragment(&mut parser)?),
            _ => document.operations.push(operation(&mut parser)?),
        }
    }
}

fn operation(parser: &mut Parser) -> Result<Operation, Problem> {
    let at = parser.at();
    if parser.has('{') {
        let selections = selections(parser)?;
        return Ok(Operation { kind: OperationKind::Query, name: None, variables: Vec::new(), selections, at });
    }
    let kind = if parser.take_word("query") {
        OperationKind::Query
    } else if parser.take_word("mutation") {
        OperationKind::Mutation
    } else if parser.take_word("subscription") {
        OperationKind::Subscription
    } else {
        return parser.wrong("query, mutation, fragment or `{`");
    };
    let name = if matches!(parser.peek(), Token::Name(_)) { Some(parser.name()?) } else { None };
    let variables = if parser.has('(') { parser.group(('(', ')'), variable)? } else { Vec::new() };
    parser.directives()?;
    Ok(Operation { kind, name, variables, selections: selections(parser)?, at })
}

fn variable(parser: &mut Parser) -> Result<Variable, Problem> {
    let at = parser.at();
    parser.expect('$')?;
    let name = parser.name()?;
    parser.expect(':')?;
    let of = parser.type_ref()?;
    let default = if parser.take('=') { Some(parser.literal()?) } else { None };
    parser.directives()?;
    Ok(Variable { name, of, default, at })
}

fn fragment(parser: &mut Parser) -> Result<Fragment, Problem> {
    parser.take_word("fragment");
    if parser.has_word("on") {
        return parser.wrong("a fragment's name");
    }
    let name = parser.name()?;
    if !parser.take_word("on") {
        return parser.wrong("`on`");
    }
    let on = parser.name()?;
    parser.directives()?;
    Ok(Fragment { name, on, selections: selections(parser)? })
}

fn selections(parser: &mut Parser) -> Result<Vec<Selection>, Problem> {
    parser.group(('{', '}'), selection)
}

fn selection(parser: &mut Parser) -> Result<Selection, Problem> {
    let at = parser.at();
    if *parser.peek() != Token::Dots {
        return field(parser).map(Selection::Field);
    }
    parser.skip();
    if matches!(parser.peek(), Token::Name(name) if name != "on") {
        return Ok(Selection::Spread { name: parser.name()?, directives: parser.directives()?, at });
    }
    let on = if parser.take_word("on") { Some(parser.name()?) } else { None };
    Ok(Selection::Inline { on, directives: parser.directives()?, selections: selections(parser)?, at })
}

fn field(parser: &mut Parser) -> Result<Field, Problem> {
    let at = parser.at();
    let first = parser.name()?;
    let (alias, name) = if parser.take(':') { (Some(first), parser.name()?) } else { (None, first) };
    let (arguments, directives) = (parser.arguments()?, parser.directives()?);
    let selections = if parser.has('{') { selections(parser)? } else { Vec::new() };
    Ok(Field { alias, name, arguments, directives, selections, at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_operations_and_fragments() {
        let text = "query Q($a: [ID!]! = [\"x\"], $b: Int) { x: y(a: $a, b: {c: [1, E]}) @skip(if: true) { ...F ... on T { z } ... { w } } } \
                    fragment F on T { on }";
        let document = document(text).unwrap();
        let operation = &document.operations[0];
        assert_eq!((operation.name.as_deref(), operation.variables.len()), (Some("Q"), 2));
        assert_eq!(operation.variables[0].of.to_string(), "[ID!]!");
        let Selection::Field(field) = &operation.selections[0] else { panic!() };
        assert_eq!((field.key(), field.name.as_str(), field.selections.len()), ("x", "y", 3));
        assert_eq!(field.arguments[1].value.to_string(), "{c: [1, E]}");
        assert_eq!(document.fragments[0].on, "T");
    }

    #[test]
    fn refuses_what_does_not_fit() {
        for text in ["", "{", "{}", "{ a", "query", "{ a( }", "{ a(b) }", "fragment on on T { a }", "{ a } }", "type A"]
        {
            assert!(document(text).is_err(), "{text}");
        }
        let deep = format!("{}a{}", "{a".repeat(5000), "}".repeat(5000));
        assert!(document(&deep).unwrap_err().message.contains("deeper"));
        let list = format!("{{a(b: {}", "[".repeat(50_000));
        assert!(document(&list).unwrap_err().message.contains("deeper"));
    }
}
