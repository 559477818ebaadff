//! Templates: texts such as `/projects/{project}/tickets/{ticket.number}` with holes, which are places for values.
//! Invariant: a template is parsed once. A literal is sent unchanged, and a value is encoded for the place of its
//! hole, so a value never becomes part of the template's syntax.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

/// The characters that are percent-encoded in a path: all except the unreserved characters of RFC 3986. With this set
/// a value cannot contain a `/` that would split it into two segments.
const ENCODED_IN_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A parsed template. It is serialised as its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    /// Literals and holes in the order of the text.
    pieces: Vec<TemplatePiece>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePiece {
    Literal(String),
    Hole(Hole),
}

/// A place for a value in a template: `{param}`, `{param.part}` for one part of a reference's key, or `{+param}` for
/// a value with several path segments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hole {
    /// The name of the parameter, or of the part of the entity's key, whose value fills the hole.
    pub param: String,
    /// The part of the reference's key that fills the hole, if this key has several parts.
    pub part: Option<String>,
    /// Whether a slash in the value separates path segments. Each segment is encoded on its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub segments: bool,
}

/// Why a text is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The field is the byte offset of the opening brace.
    #[error("`{{` at {0} is not closed")]
    Unclosed(usize),
    /// The field is the byte offset of the closing brace.
    #[error("`}}` at {0} closes nothing")]
    Unopened(usize),
    #[error("`{{{0}}}` is not a parameter; write `{{name}}` or `{{name.part}}`")]
    Name(String),
}

impl Template {
    /// Parses a text. Every `{` begins a hole and every `}` ends one; there is no escape for braces.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(brace) = rest.find(['{', '}']) {
            let offset = text.len() - rest.len() + brace;
            if rest[brace..].starts_with('}') {
                return Err(TemplateError::Unopened(offset));
            }
            if brace > 0 {
                pieces.push(TemplatePiece::Literal(rest[..brace].to_owned()));
            }
            let (name, after_hole) = rest[brace + 1..].split_once('}').ok_or(TemplateError::Unclosed(offset))?;
            pieces.push(TemplatePiece::Hole(Hole::parse(name)?));
            rest = after_hole;
        }
        if !rest.is_empty() {
            pieces.push(TemplatePiece::Literal(rest.to_owned()));
        }
        Ok(Self { pieces })
    }

    /// Returns the holes in the order of the text.
    pub fn holes(&self) -> impl Iterator<Item = &Hole> {
        self.pieces.iter().filter_map(|piece| match piece {
            TemplatePiece::Hole(hole) => Some(hole),
            TemplatePiece::Literal(_) => None,
        })
    }

    /// Returns the holes directly between two quotes, as in `project = "{project}"`. A text with such a hole is in a
    /// query language of the API.
    pub fn holes_between_quotes(&self) -> impl Iterator<Item = &Hole> {
        const QUOTES: [char; 2] = ['"', '\''];
        self.pieces.iter().enumerate().filter_map(|(index, piece)| {
            let before = index.checked_sub(1).and_then(|n| self.pieces.get(n));
            let after = self.pieces.get(index + 1);
            match (before, piece, after) {
                (
                    Some(TemplatePiece::Literal(before)),
                    TemplatePiece::Hole(hole),
                    Some(TemplatePiece::Literal(after)),
                ) if before.ends_with(QUOTES) && after.starts_with(QUOTES) => Some(hole),
                _ => None,
            }
        })
    }

    /// Returns whether the text has any hole.
    pub fn has_holes(&self) -> bool {
        self.holes().next().is_some()
    }

    /// Returns the hole of a template that is one hole without any literal.
    pub fn only_hole(&self) -> Option<&Hole> {
        match self.pieces.as_slice() {
            [TemplatePiece::Hole(hole)] => Some(hole),
            _ => None,
        }
    }

    /// Appends the template to `out` as a path, with each value percent-encoded as one segment. Returns `false` if a
    /// value is missing or not safe ([`Hole::is_safe`]); the caller must then discard `out`, which has an incomplete
    /// path.
    pub fn fill_path<'v>(&self, value: impl Fn(&Hole) -> Option<std::borrow::Cow<'v, str>>, out: &mut String) -> bool {
        for piece in &self.pieces {
            match piece {
                TemplatePiece::Literal(text) => out.push_str(text),
                TemplatePiece::Hole(hole) => match value(hole) {
                    Some(text) if hole.is_safe(&text) => {
                        for (n, segment) in hole.split_segments(&text).enumerate() {
                            out.push_str(if n > 0 { "/" } else { "" });
                            out.extend(utf8_percent_encode(segment, ENCODED_IN_SEGMENT));
                        }
                    }
                    _ => return false,
                },
            }
        }
        true
    }

    /// Returns the template as plain text without any encoding, or `None` if a hole has no value. This function makes
    /// query values and headers; the HTTP client encodes a query value later.
    pub fn fill_text<'v>(&self, value: impl Fn(&Hole) -> Option<std::borrow::Cow<'v, str>>) -> Option<String> {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                TemplatePiece::Literal(text) => out.push_str(text),
                TemplatePiece::Hole(hole) => out.push_str(&value(hole)?),
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

    /// Returns whether this value can fill a hole of a path. A server or a client would resolve the segments `.` and
    /// `..`, and would read a path with an empty segment as another path.
    pub fn is_safe(&self, text: &str) -> bool {
        self.split_segments(text).all(|segment| !matches!(segment, "" | "." | ".."))
    }

    /// Returns the path segments of a value: the value itself, or its parts between slashes for `{+param}`.
    fn split_segments<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let limit = if self.segments { usize::MAX } else { 1 };
        text.splitn(limit, '/')
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
            TemplatePiece::Literal(text) => f.write_str(text),
            TemplatePiece::Hole(hole) => write!(f, "{hole}"),
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
    fn a_value_has_several_segments_only_in_a_plus_hole() {
        assert_eq!(path("/f/{+x}", "src/a b/c.rs").unwrap(), "/f/src/a%20b/c.rs");
        for bad in ["", "/etc", "a//b", "a/../b", "a/.", "..", "a/"] {
            assert_eq!(path("/f/{+x}", bad), None, "{bad:?}");
        }
    }

    #[test]
    fn holes_between_quotes_are_recognised() {
        let quoted = |text: &str| {
            Template::parse(text).unwrap().holes_between_quotes().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(quoted("project = \"{project}\" AND {rest}"), ["{project}"]);
        assert_eq!(quoted("name = '{a.b}'"), ["{a.b}"]);
        assert!(quoted("{a}\"{b} \"{c}").is_empty());
    }

    #[test]
    fn each_mistake_in_a_template_has_its_own_error() {
        assert_eq!(Template::parse("/a/{b"), Err(TemplateError::Unclosed(3)));
        assert_eq!(Template::parse("/a}"), Err(TemplateError::Unopened(2)));
        assert!(matches!(Template::parse("/{a b}"), Err(TemplateError::Name(_))));
        assert!(matches!(Template::parse("/{a.b.c}"), Err(TemplateError::Name(_))));
        assert_eq!(Template::parse("/{a.b}/c{d}/{+e}").unwrap().to_string(), "/{a.b}/c{d}/{+e}");
    }
}
