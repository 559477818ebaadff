//! Text to tokens, with their places.
//! Invariant: the list ends with `End`, so a reader can always look at the next token.

use crate::graphql::problem::{At, Code, Problem};

#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    /// One of `! $ & ( ) : = @ [ ] { | }`.
    Mark(char),
    Dots,
    Name(String),
    Int(i64),
    Float(f64),
    Text(String),
    End,
}

pub fn lex(text: &str) -> Result<Vec<(Token, At)>, Problem> {
    let mut reader = Reader { rest: text, at: At { line: 1, column: 1 } };
    let mut tokens = Vec::new();
    loop {
        reader.skip_ignored();
        let at = reader.at;
        let token = reader.token().map_err(|message| Problem::new(Code::ParseFailed, message).at(at))?;
        let last = token == Token::End;
        tokens.push((token, at));
        if last {
            return Ok(tokens);
        }
    }
}

struct Reader<'t> {
    rest: &'t str,
    at: At,
}

/// What is wrong, to be given its place by `lex`.
type Wrong = &'static str;

impl<'t> Reader<'t> {
    fn skip_ignored(&mut self) {
        while let Some(next) = self.rest.chars().next() {
            match next {
                '#' => drop(self.take(self.rest.find(['\n', '\r']).unwrap_or(self.rest.len()))),
                ' ' | '\t' | '\n' | '\r' | ',' | '\u{feff}' => drop(self.take(next.len_utf8())),
                _ => return,
            }
        }
    }

    fn token(&mut self) -> Result<Token, Wrong> {
        let Some(next) = self.rest.chars().next() else { return Ok(Token::End) };
        match next {
            '!' | '$' | '&' | '(' | ')' | ':' | '=' | '@' | '[' | ']' | '{' | '|' | '}' => {
                self.take(1);
                Ok(Token::Mark(next))
            }
            '.' if self.rest.starts_with("...") => {
                self.take(3);
                Ok(Token::Dots)
            }
            '"' if self.rest.starts_with("\"\"\"") => self.block(),
            '"' => self.text(),
            '-' | '0'..='9' => self.number(),
            'a'..='z' | 'A'..='Z' | '_' => {
                let length = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                Ok(Token::Name(self.take(length.unwrap_or(self.rest.len())).to_owned()))
            }
            _ => Err("this character means nothing here"),
        }
    }

    fn number(&mut self) -> Result<Token, Wrong> {
        let length = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-' | '+' | '_'));
        let text = self.take(length.unwrap_or(self.rest.len()));
        let digits = text.trim_start_matches('-');
        let is_padded = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
        if is_padded || text.ends_with('.') || text.contains(['_', '+']) && !text.contains(['e', 'E']) {
            return Err("this is no number");
        }
        match (text.parse(), text.parse::<f64>()) {
            (Ok(number), _) => Ok(Token::Int(number)),
            (_, Ok(number)) if number.is_finite() => Ok(Token::Float(number)),
            _ => Err("this is no number"),
        }
    }

    fn text(&mut self) -> Result<Token, Wrong> {
        self.take(1);
        let mut text = String::new();
        loop {
            let next = self.rest.chars().next().filter(|c| !matches!(c, '\n' | '\r')).ok_or("this text has no end")?;
            self.take(next.len_utf8());
            match next {
                '"' => return Ok(Token::Text(text)),
                '\\' => text.push(self.escape()?),
                other => text.push(other),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Wrong> {
        let wrong = "this escape means nothing";
        let next = self.rest.chars().next().ok_or(wrong)?;
        self.take(next.len_utf8());
        Ok(match next {
            '"' | '\\' | '/' => next,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = self.hex().ok_or(wrong)?;
                // Two halves of one character, as JSON writes what is beyond U+FFFF.
                let whole = if (0xD800..0xDC00).contains(&first) && self.rest.starts_with("\\u") {
                    self.take(2);
                    let second = self.hex().filter(|half| (0xDC00..0xE000).contains(half)).ok_or(wrong)?;
                    0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
                } else {
                    first
                };
                char::from_u32(whole).ok_or(wrong)?
            }
            _ => return Err(wrong),
        })
    }

    /// Four digits, or any number of them in braces.
    fn hex(&mut self) -> Option<u32> {
        let digits = if self.rest.starts_with('{') {
            let end = self.rest.find('}')?;
            self.take(end + 1).trim_matches(['{', '}'])
        } else {
            self.rest.get(..4)?;
            self.take(4)
        };
        u32::from_str_radix(digits, 16).ok()
    }

    fn block(&mut self) -> Result<Token, Wrong> {
        self.take(3);
        let mut text = String::new();
        loop {
            let end = self.rest.find("\"\"\"").ok_or("this text has no end")?;
            let part = self.take(end);
            self.take(3);
            match part.strip_suffix('\\') {
                Some(part) => {
                    text.push_str(part);
                    text.push_str("\"\"\"");
                }
                None => {
                    text.push_str(part);
                    return Ok(Token::Text(without_indent(&text)));
                }
            }
        }
    }

    /// The next `length` bytes, which end between two characters.
    fn take(&mut self, length: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(length);
        for c in taken.chars() {
            match c {
                '\n' => self.at = At { line: self.at.line + 1, column: 1 },
                _ => self.at.column += 1,
            }
        }
        self.rest = rest;
        taken
    }
}

/// Takes away what all lines but the first are indented by, and blank lines at both ends.
fn without_indent(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &&str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let filled = lines.iter().skip(1).filter(|line| !line.trim().is_empty());
    let least = filled.map(indent).min().unwrap_or(0);
    let cut = lines.iter().enumerate().map(|(at, line)| if at == 0 { line } else { line.get(least..).unwrap_or("") });
    let cut: Vec<&str> = cut.collect();
    let first = cut.iter().position(|line| !line.trim().is_empty()).unwrap_or(cut.len());
    let last = cut.iter().rposition(|line| !line.trim().is_empty()).map_or(first, |at| at + 1);
    cut[first..last].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token> {
        lex(text).unwrap().into_iter().map(|(token, _)| token).collect()
    }

    #[test]
    fn reads_every_kind() {
        let found = tokens("{ a: -1, b(c: 1.5e3) ...F # x\n \"q\\\"\\u00e9\\uD83D\\uDE00\\u{1F600}\" }");
        let name = |text: &str| Token::Name(text.to_owned());
        let (open, close, colon) = (Token::Mark('{'), Token::Mark('}'), Token::Mark(':'));
        let text = Token::Text("q\"é😀😀".to_owned());
        let expected = [
            open,
            name("a"),
            colon.clone(),
            Token::Int(-1),
            name("b"),
            Token::Mark('('),
            name("c"),
            colon,
            Token::Float(1500.0),
            Token::Mark(')'),
            Token::Dots,
            name("F"),
            text,
            close,
            Token::End,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn block_texts_lose_their_indent() {
        let found = tokens("\"\"\"\n    a\n      b \\\"\"\"\n\n  \"\"\"");
        assert_eq!(found[0], Token::Text("a\n  b \"\"\"".to_owned()));
    }

    #[test]
    fn problems_have_their_place() {
        let problem = lex("{\n  a ?").unwrap_err();
        assert_eq!(problem.at, Some(At { line: 2, column: 5 }));
        for text in ["\"a", "\"a\nb\"", "01", "1.", "1_0", "\"\\q\"", "\"\\u12", "\"\"\"a", "é", "1a"] {
            assert!(lex(text).is_err(), "{text}");
        }
    }
}
