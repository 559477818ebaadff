//! Reads a schema's type definitions (SDL), as far as the demo's own schema uses the language.
//! Invariant: the text that `/graphql/schema` shows is the text that is read here, so the two cannot differ.

use super::ast::{Directive, EnumValue, FieldDef, InputDef, Kind, Literal, TypeDef};
use super::lex::Token;
use super::parser::Parser;
use crate::graphql::problem::Problem;

pub fn definitions(text: &str) -> Result<Vec<TypeDef>, Problem> {
    let mut parser = Parser::new(text)?;
    let mut definitions = Vec::new();
    while *parser.peek() != Token::End {
        definitions.push(definition(&mut parser)?);
    }
    Ok(definitions)
}

fn definition(parser: &mut Parser) -> Result<TypeDef, Problem> {
    let about = about(parser);
    let word = parser.name()?;
    let name = parser.name()?;
    let kind = match word.as_str() {
        "scalar" => Kind::Scalar,
        "enum" => Kind::Enum(parser.group(('{', '}'), enum_value)?),
        "type" => Kind::Object { interfaces: interfaces(parser)?, fields: parser.group(('{', '}'), field)? },
        "interface" => Kind::Interface { fields: parser.group(('{', '}'), field)? },
        "union" => Kind::Union(members(parser)?),
        "input" => Kind::Input(parser.group(('{', '}'), input)?),
        _ => return parser.wrong("a definition"),
    };
    Ok(TypeDef { name, about, kind })
}

fn about(parser: &mut Parser) -> Option<String> {
    match parser.peek().clone() {
        Token::Text(text) => {
            parser.skip();
            Some(text)
        }
        _ => None,
    }
}

fn interfaces(parser: &mut Parser) -> Result<Vec<String>, Problem> {
    let mut names = Vec::new();
    if parser.take_word("implements") {
        names.push(parser.name()?);
        while parser.take('&') {
            names.push(parser.name()?);
        }
    }
    Ok(names)
}

fn members(parser: &mut Parser) -> Result<Vec<String>, Problem> {
    parser.expect('=')?;
    let mut names = vec![parser.name()?];
    while parser.take('|') {
        names.push(parser.name()?);
    }
    Ok(names)
}

fn field(parser: &mut Parser) -> Result<FieldDef, Problem> {
    let about = about(parser);
    let name = parser.name()?;
    let arguments = if parser.has('(') { parser.group(('(', ')'), input)? } else { Vec::new() };
    parser.expect(':')?;
    let of = parser.type_ref()?;
    let deprecated = parser.directives()?.iter().find(|one| one.name == "deprecated").map(reason);
    Ok(FieldDef { name, about, arguments, of, deprecated })
}

fn reason(directive: &Directive) -> String {
    match directive.arguments.iter().find(|argument| argument.name == "reason").map(|argument| &argument.value) {
        Some(Literal::Text(reason)) => reason.clone(),
        _ => "No longer supported".to_owned(),
    }
}

fn input(parser: &mut Parser) -> Result<InputDef, Problem> {
    let about = about(parser);
    let name = parser.name()?;
    parser.expect(':')?;
    let of = parser.type_ref()?;
    let default = if parser.take('=') { Some(parser.literal()?) } else { None };
    Ok(InputDef { name, about, of, default })
}

fn enum_value(parser: &mut Parser) -> Result<EnumValue, Problem> {
    Ok(EnumValue { about: about(parser), name: parser.name()? })
}
