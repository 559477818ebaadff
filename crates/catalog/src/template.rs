//! Text with holes, parsed once: `/projects/{project}/tickets/{ticket.number}`.
//! Invariant: a literal is never reinterpreted and a value never becomes a literal: it is encoded where it is put.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

/// All but RFC 3986's unreserved characters: a value stays one path segment, whatever it holds.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Literal(String),
    Hole(Hole),
}

/// `{param}`, or `{param.part}` for one part of a reference's key, or in a path `{+param}` for several segments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hole {
    pub param: String,
    pub part: Option<String>,
    /// In a path: slashes of the value separate segments, each of which is encoded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub segments: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("`{{` at {0} is not closed")]
    Unclosed(usize),
    #[error("`}}` at {0} closes nothing")]
    Unopened(usize),
    #[error("`{{{0}}}` is not a parameter; write `{{name}}` or `{{name.part}}`")]
    Name(String),
}

impl Template {
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let offset = text.len() - rest.len() + at;
            if rest[at..].starts_with('}') {
                return Err(TemplateError::Unopened(offset));
            }
            if at > 0 {
                pieces.push(Piece::Literal(rest[..at].to_owned()));
            }
            let (name, after) = rest[at + 1..].split_once('}').ok_or(TemplateError::Unclosed(offset))?;
            pieces.push(Piece::Hole(Hole::parse(name)?));
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Literal(rest.to_owned()));
        }
        Ok(Self { pieces })
    }

    pub fn holes(&self) -> impl Iterator<Item = &Hole> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Hole(hole) => Some(hole),
            Piece::Literal(_) => None,
        })
    }

    /// Holes that stand between quotes of a language inside the text: `project = "{project}"`.
    pub fn quoted(&self) -> impl Iterator<Item = &Hole> {
        let ends = |piece: Option<&Piece>| matches!(piece, Some(Piece::Literal(text)) if text.ends_with(['"', '\'']));
        let starts =
            |piece: Option<&Piece>| matches!(piece, Some(Piece::Literal(text)) if text.starts_with(['"', '\'']));
        self.pieces.iter().enumerate().filter_map(move |(at, piece)| match piece {
            Piece::Hole(hole)
                if ends(at.checked_sub(1).and_then(|n| self.pieces.get(n))) && starts(self.pieces.get(at + 1)) =>
            {
                Some(hole)
            }
            _ => None,
        })
    }

    pub fn has_holes(&self) -> bool {
        self.holes().next().is_some()
    }

    /// The hole that it is nothing but.
    pub fn only_hole(&self) -> Option<&Hole> {
        match self.pieces.as_slice() {
            [Piece::Hole(hole)] => Some(hole),
            _ => None,
        }
    }

    /// As a path, onto `out`: each value is one percent-encoded segment. False, with nothing of use in `out`, when a value is
    /// missing or would be empty, `.` or `..`, because a server would read that as another path.
    pub fn fill_path<'v>(&self, value: impl Fn(&Hole) -> Option<std::borrow::Cow<'v, str>>, out: &mut String) -> bool {
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                Piece::Hole(hole) => match value(hole) {
                    Some(text) if hole.is_safe(&text) => {
                        for (n, segment) in hole.split(&text).enumerate() {
                            out.push_str(if n > 0 { "/" } else { "" });
                            out.extend(utf8_percent_encode(segment, SEGMENT));
                        }
                    }
                    _ => return false,
                },
            }
        }
        true
    }

    /// As plain text (a query value, encoded later as a whole); `None` when a hole has no value.
    pub fn fill_text<'v>(&self, value: impl Fn(&Hole) -> Option<std::borrow::Cow<'v, str>>) -> Option<String> {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                Piece::Hole(hole) => out.push_str(&value(hole)?),
            }
        }
        Some(out)
    }
}

impl Hole {
    fn parse(name: &str) -> Result<Self, TemplateError> {
        let is_name =
            |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let (bare, segments) = name.strip_prefix('+').map_or((name, false), |bare| (bare, true));
        match bare.split_once('.') {
            None if is_name(bare) => Ok(Self { param: bare.to_owned(), part: None, segments }),
            Some((param, part)) if is_name(param) && is_name(part) => {
                Ok(Self { param: param.to_owned(), part: Some(part.to_owned()), segments })
            }
            _ => Err(TemplateError::Name(name.chars().take(64).collect())),
        }
    }

    /// Whether this value can stand in a path without becoming another path.
    pub fn is_safe(&self, text: &str) -> bool {
        self.split(text).all(|segment| !matches!(segment, "" | "." | ".."))
    }

    fn split<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let (whole, parts) = if self.segments { (None, Some(text.split('/'))) } else { (Some(text), None) };
        whole.into_iter().chain(parts.into_iter().flatten())
    }
}

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plus = if self.segments { "+" } else { "" };
        match &self.part {
            None => write!(f, "{{{plus}{}}}", self.param),
            Some(part) => write!(f, "{{{plus}{}.{part}}}", self.param),
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Literal(text) => f.write_str(text),
            Piece::Hole(hole) => write!(f, "{hole}"),
        })
    }
}

impl TryFrom<String> for Template {
    type Error = TemplateError;
    fn try_from(text: String) -> Result<Self, TemplateError> {
        Self::parse(&text)
    }
}

impl From<Template> for String {
    fn from(template: Template) -> String {
        template.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    fn path(template: &str, value: &str) -> Option<String> {
        let mut out = String::new();
        Template::parse(template).unwrap().fill_path(|_| Some(Cow::Borrowed(value)), &mut out).then_some(out)
    }

    #[test]
    fn a_value_stays_one_segment() {
        assert_eq!(path("/p/{x}/t", "a/../../b?c#d%2F\\").unwrap(), "/p/a%2F..%2F..%2Fb%3Fc%23d%252F%5C/t");
        assert_eq!(path("/p/{x}", "http://evil.example/").unwrap(), "/p/http%3A%2F%2Fevil.example%2F");
        assert_eq!(path("/p/{x}", "é 1").unwrap(), "/p/%C3%A9%201");
        assert_eq!(path("/p/{x}", "{y}").unwrap(), "/p/%7By%7D", "a value is not read as a template");
    }

    #[test]
    fn a_value_that_changes_the_path_is_refused() {
        for bad in ["", ".", ".."] {
            assert_eq!(path("/p/{x}/t", bad), None, "{bad:?}");
        }
    }

    #[test]
    fn several_segments_only_where_the_template_says_so() {
        assert_eq!(path("/f/{+x}", "src/a b/c.rs").unwrap(), "/f/src/a%20b/c.rs");
        for bad in ["", "/etc", "a//b", "a/../b", "a/.", "..", "a/"] {
            assert_eq!(path("/f/{+x}", bad), None, "{bad:?}");
        }
    }

    #[test]
    fn holes_between_quotes_are_known() {
        let quoted = |text: &str| Template::parse(text).unwrap().quoted().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(quoted("project = \"{project}\" AND {rest}"), ["{project}"]);
        assert_eq!(quoted("name = '{a.b}'"), ["{a.b}"]);
        assert!(quoted("{a}\"{b} \"{c}").is_empty());
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(Template::parse("/a/{b"), Err(TemplateError::Unclosed(3)));
        assert_eq!(Template::parse("/a}"), Err(TemplateError::Unopened(2)));
        assert!(matches!(Template::parse("/{a b}"), Err(TemplateError::Name(_))));
        assert!(matches!(Template::parse("/{a.b.c}"), Err(TemplateError::Name(_))));
        assert_eq!(Template::parse("/{a.b}/c{d}/{+e}").unwrap().to_string(), "/{a.b}/c{d}/{+e}");
    }
}
