//! Reads a Rust file as nested tokens, and finds the lines that each attribute covers. Rules that must see inside of macros use the tokens.
//! Invariant: the text of comments and strings is never a token, so no rule takes it for code.

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// One token of a file, or a group of tokens in brackets.
#[derive(Debug)]
pub struct Token {
    /// The number of the first line, counted from 1.
    pub line: usize,
    /// The number of the last line. For a group it is the line of the closing bracket.
    pub end: usize,
    pub kind: Kind,
}

#[derive(Debug)]
pub enum Kind {
    Word(String),
    /// A punctuation character such as `;` or `#`.
    Mark(char),
    /// The mark `::` between two parts of a path.
    Path,
    Literal(String),
    Group(Delimiter, Vec<Token>),
}

impl Token {
    pub fn word(&self) -> Option<&str> {
        match &self.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    pub fn is_word(&self, word: &str) -> bool {
        self.word() == Some(word)
    }

    pub fn is_mark(&self, mark: char) -> bool {
        matches!(self.kind, Kind::Mark(c) if c == mark)
    }

    pub fn is_path_mark(&self) -> bool {
        matches!(self.kind, Kind::Path)
    }

    pub fn group(&self, delimiter: Delimiter) -> Option<&[Token]> {
        match &self.kind {
            Kind::Group(d, inner) if *d == delimiter => Some(inner),
            _ => None,
        }
    }
}

/// Converts the tokens of the crate `proc_macro2`.
pub fn read(stream: TokenStream) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let (line, end) = (tree.span().start().line, tree.span().end().line);
        let kind = match tree {
            TokenTree::Ident(ident) => Kind::Word(ident.to_string()),
            TokenTree::Literal(literal) => Kind::Literal(literal.to_string()),
            TokenTree::Group(group) => Kind::Group(group.delimiter(), read(group.stream())),
            TokenTree::Punct(punct) => {
                let joint = punct.as_char() == ':' && punct.spacing() == Spacing::Joint;
                let second = |next: &TokenTree| matches!(next, TokenTree::Punct(p) if p.as_char() == ':');
                match joint.then(|| trees.next_if(second)).flatten() {
                    Some(_) => Kind::Path,
                    None => Kind::Mark(punct.as_char()),
                }
            }
        };
        tokens.push(Token { line, end, kind });
    }
    tokens
}

/// Calls `visit` with the tokens, and then with the tokens of every group inside of them, at any depth.
pub fn levels(tokens: &[Token], visit: &mut dyn FnMut(&[Token])) {
    visit(tokens);
    for token in tokens {
        if let Kind::Group(_, inner) = &token.kind {
            levels(inner, visit);
        }
    }
}

/// Splits tokens at their commas.
pub fn parts(tokens: &[Token]) -> impl Iterator<Item = &[Token]> {
    tokens.split(|token| token.is_mark(',')).filter(|part| !part.is_empty())
}

/// An attribute: `#[…]` or `#![…]`.
#[derive(Debug)]
pub struct Attribute<'a> {
    /// The tokens between the brackets.
    pub body: &'a [Token],
    /// The lines of the item that the attribute belongs to, including all attributes of the item.
    pub covers: RangeInclusive<usize>,
    /// The tokens of the item. For an inner attribute they are all tokens of the same nesting level.
    pub on: &'a [Token],
}

/// Returns all attributes of a file, with the items that they belong to.
pub fn attributes(tokens: &[Token]) -> Vec<Attribute<'_>> {
    let mut attributes = Vec::new();
    collect(tokens, &mut attributes);
    attributes
}

impl Attribute<'_> {
    /// Returns whether the attribute is `#[test]`, `#[tokio::test]`, or a `cfg` that is true only in tests.
    pub fn is_test(&self) -> bool {
        match self.body {
            [cfg, group] if cfg.is_word("cfg") => group.group(Delimiter::Parenthesis).is_some_and(only_in_tests),
            [.., name, last] if last.group(Delimiter::Parenthesis).is_some() => name.is_word("test"),
            [.., name] => name.is_word("test"),
            [] => false,
        }
    }
}

/// Returns whether the condition of a `cfg` is true only in tests.
fn only_in_tests(condition: &[Token]) -> bool {
    match condition {
        [word] => word.is_word("test"),
        [word, group] => match (word.word(), group.group(Delimiter::Parenthesis)) {
            (Some("all"), Some(inner)) => parts(inner).any(only_in_tests),
            (Some("any"), Some(inner)) => !inner.is_empty() && parts(inner).all(only_in_tests),
            _ => false,
        },
        _ => false,
    }
}

fn collect<'a>(level: &'a [Token], attributes: &mut Vec<Attribute<'a>>) {
    let mut at = 0;
    while at < level.len() {
        let Some(body) = outer(level, at) else {
            if let Some(body) = inner(level, at) {
                let covers = level[0].line..=level[level.len() - 1].end;
                attributes.push(Attribute { body, covers, on: level });
            } else if let Kind::Group(_, inside) = &level[at].kind {
                collect(inside, attributes);
            }
            at += 1;
            continue;
        };
        let first = at;
        let mut stack = vec![body];
        at += 2;
        while let Some(body) = outer(level, at) {
            stack.push(body);
            at += 2;
        }
        let on = &level[at..at + extent(&level[at..])];
        let last = on.last().map_or(level[at - 1].end, |token| token.end);
        for body in stack {
            let covers = level[first].line..=last;
            attributes.push(Attribute { body, covers, on });
        }
    }
}

fn outer(level: &[Token], at: usize) -> Option<&[Token]> {
    level.get(at).filter(|token| token.is_mark('#'))?;
    level.get(at + 1)?.group(Delimiter::Bracket)
}

fn inner(level: &[Token], at: usize) -> Option<&[Token]> {
    level.get(at).filter(|token| token.is_mark('#'))?;
    level.get(at + 1).filter(|token| token.is_mark('!'))?;
    level.get(at + 2)?.group(Delimiter::Bracket)
}

/// Returns the number of tokens of the item, statement, field or match arm that begins at the first token.
fn extent(tokens: &[Token]) -> usize {
    let start = tokens.iter().position(|t| !t.is_word("pub") && t.group(Delimiter::Parenthesis).is_none()).unwrap_or(0);
    let word = |at: usize| tokens.get(start + at).and_then(Token::word);
    let (braces_end, commas_end) = match word(0) {
        Some("const") if matches!(word(1), Some("fn" | "unsafe" | "async" | "extern")) => (true, false),
        Some("let" | "static" | "const" | "use" | "type") => (false, false),
        Some(
            "fn" | "mod" | "impl" | "struct" | "enum" | "trait" | "union" | "extern" | "unsafe" | "async"
            | "macro_rules",
        ) => (true, false),
        _ => (true, true),
    };
    let ends = |token: &Token| {
        token.is_mark(';') || commas_end && token.is_mark(',') || braces_end && token.group(Delimiter::Brace).is_some()
    };
    tokens.iter().position(ends).map_or(tokens.len(), |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token> {
        read(text.parse().unwrap())
    }

    fn covers(text: &str) -> Vec<RangeInclusive<usize>> {
        attributes(&tokens(text)).into_iter().map(|attribute| attribute.covers).collect()
    }

    #[test]
    fn an_attribute_covers_its_item_and_no_more() {
        assert_eq!(covers("#[a]\nfn f<A, B>() {\n}\nfn g() {}"), [1..=3]);
        assert_eq!(covers("#[a]\npub(crate) use x::{\n  y,\n  z};\nfn g() {}"), [1..=4]);
        assert_eq!(covers("#[a]\nconst X: T = T {\n  b: 1 };\nfn g() {}"), [1..=3]);
        assert_eq!(covers("#[a]\nconst fn f() {\n}\nfn g() {}"), [1..=3]);
        assert_eq!(covers("struct S {\n#[a]\npub x: u8,\ny: u8 }"), [2..=3]);
        assert_eq!(covers("fn f() {\n#[a]\nlet x = S {\n}.y()\n;\nz();\n}"), [2..=5]);
        assert_eq!(covers("#[a]\n#[b]\n\nmod m {\n#[c] fn f() {}\n}"), [1..=6, 1..=6, 5..=5]);
    }

    #[test]
    fn an_inner_attribute_covers_its_level() {
        assert_eq!(covers("use x;\n#![a]\nfn f() {}"), [1..=3]);
        assert_eq!(covers("mod m {\n#![a]\nfn f() {}\n}"), [2..=3]);
    }

    #[test]
    fn test_attributes_are_known() {
        let is_test = |text: &str| attributes(&tokens(text))[0].is_test();
        for text in ["#[test] fn f() {}", "#[tokio::test(flavor = \"x\")] fn f() {}", "#[cfg(test)] mod t {}"] {
            assert!(is_test(text), "{text}");
        }
        assert!(is_test("#[cfg(all(unix, test))] mod t {}"));
        for text in
            ["#[cfg(not(test))] mod t {}", "#[cfg(any(test, feature = \"x\"))] mod t {}", "#[doc = \"test\"] mod t {}"]
        {
            assert!(!is_test(text), "{text}");
        }
    }
}
