//! Blocks of text: `<<TAG`, the text, a line `TAG`.
//! Invariant: the lines that could close a block are found once for the whole text, however many blocks it opens.

use std::collections::HashMap;

use base::{Diagnostic, Span};

use super::Lexer;
use crate::codes;
use crate::syntax::Mode;
use crate::syntax::reports::{quoted, shown};
use crate::syntax::token::TokenKind;

/// How far a text on the opener's own line is looked for.
const LONGEST: usize = 120;

/// For each word that begins a line: the lines where it could close a block.
pub(super) struct ClosingLines<'t>(HashMap<&'t str, Lines>);

#[derive(Default)]
struct Lines {
    /// Nothing but closers and commas follows the word.
    closing: Vec<Line>,
    /// A closer or a comma follows the word, and then more.
    sloppy: Vec<Line>,
}

#[derive(Clone, Copy)]
struct Line {
    start: usize,
    /// After the word.
    end: usize,
}

impl<'t> ClosingLines<'t> {
    fn new(text: &'t str) -> Self {
        let mut words: HashMap<&'t str, Lines> = HashMap::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let indent = line.len() - line.trim_start().len();
            let rest = line.trim_start();
            let word = tag_of(rest);
            if !word.is_empty() {
                let after = rest.get(word.len()..).unwrap_or("");
                let line = Line {
                    start,
                    end: start + indent + word.len(),
                };
                let closers = |c: char| ")]},".contains(c);
                if after.chars().all(|c| c.is_whitespace() || closers(c)) {
                    words.entry(word).or_default().closing.push(line);
                } else if after.starts_with(closers) {
                    words.entry(word).or_default().sloppy.push(line);
                }
            }
            start += line.len();
        }
        Self(words)
    }

    fn closing(&self, tag: &str, after: usize) -> Option<Line> {
        first_after(&self.0.get(tag)?.closing, after)
    }

    fn sloppy(&self, tag: &str, after: usize) -> Option<Line> {
        first_after(&self.0.get(tag)?.sloppy, after)
    }
}

fn first_after(lines: &[Line], after: usize) -> Option<Line> {
    lines.get(lines.partition_point(|line| line.start <= after)).copied()
}

/// The tag that `text` begins with; empty if there is none.
fn tag_of(text: &str) -> &str {
    if !text.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return "";
    }
    let end = text
        .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
        .unwrap_or(text.len());
    text.get(..end).unwrap_or("").trim_end_matches('-')
}

/// Tag and body of a heredoc token.
pub(in crate::syntax) fn parts(token: &str) -> (&str, &str) {
    let opener = token.get(2..).unwrap_or("");
    let tag = tag_of(opener);
    let Some(first) = opener.find('\n') else {
        return (tag, "");
    };
    let lines = opener.get(first + 1..).unwrap_or("");
    let body = lines.rfind('\n').map_or("", |last| lines.get(..last).unwrap_or(""));
    (tag, body.strip_suffix('\r').unwrap_or(body))
}

impl<'t> Lexer<'t, '_> {
    pub(super) fn heredoc(&mut self, start: usize) {
        let tag = tag_of(self.rest(start + 2));
        if tag.is_empty() {
            self.bad_opener(start);
            return;
        }
        let opener = Span::new(start, start + 2 + tag.len());
        let after = self.rest(opener.end as usize);
        let after = after.trim_start_matches([' ', '\t', '\r']);
        let alone = after.is_empty() || after.starts_with('\n');
        match self.closing(tag, start) {
            Some(line) if alone => {
                self.push(TokenKind::Heredoc, Span::new(start, line.end));
                self.jump(line.end);
            }
            _ if self.mode == Mode::Taught => {
                self.push(TokenKind::Hole, opener);
                self.jump(opener.end as usize);
            }
            Some(line) => self.opener_not_alone(opener, line),
            None if alone => self.unclosed(opener, tag, start),
            None => self.on_one_line(opener, tag),
        }
    }

    /// The rest of the line, as far as it is looked at.
    fn near(&self, from: usize) -> &'t str {
        let rest = self.rest(from);
        let near = rest
            .get(..rest.floor_char_boundary(LONGEST.min(rest.len())))
            .unwrap_or("");
        near.split('\n').next().unwrap_or("")
    }

    fn closing(&mut self, tag: &str, after: usize) -> Option<Line> {
        if self.closing.is_none() {
            self.steps += self.text.len();
        }
        self.closing
            .get_or_insert_with(|| ClosingLines::new(self.text))
            .closing(tag, after)
    }

    /// No line holds only the tag. One that begins with it, as in `TAG, p6=1)`, must be meant.
    fn unclosed(&mut self, opener: Span, tag: &str, start: usize) {
        let sloppy = self.closing.as_ref().and_then(|lines| lines.sloppy(tag, start));
        if let Some(line) = sloppy {
            let place = Span::new(line.end - tag.len(), line.end);
            let message = format!("`{tag}` was read as the end of the text, although more follows it on its line");
            self.reports
                .add(Diagnostic::note(codes::UNCLOSED_HEREDOC, place, message));
            self.push(TokenKind::Heredoc, Span::new(start, line.end));
            self.jump(line.end);
            return;
        }
        if self.reports.accepts(opener) {
            let place = self.reports.place(opener.start);
            let message =
                format!("`<<{tag}` opened at {place} is not closed; end its text with a line that holds only `{tag}`");
            self.reports
                .add(Diagnostic::error(codes::UNCLOSED_HEREDOC, opener, message).with_copy(tag));
        }
        self.take_the_rest(opener);
    }

    pub(super) fn take_the_rest(&mut self, opener: Span) {
        self.cut = true;
        self.push(TokenKind::Bad, opener);
        self.jump(self.text.len());
    }

    /// `m1(p5=<<TAG)` with the text on the next lines.
    fn opener_not_alone(&mut self, opener: Span, line: Line) {
        let tag = opener.of(self.text).trim_start_matches('<');
        let message = format!(
            "nothing may follow `<<{tag}` on its line: what belongs after the text follows the closing `{tag}`"
        );
        let diagnostic = Diagnostic::error(codes::BAD_HEREDOC_OPENER, opener, message);
        let near = self.near(opener.end as usize);
        let closers = near.len() < LONGEST && near.chars().all(|c| c.is_whitespace() || ")]},".contains(c));
        self.reports.add(if closers {
            diagnostic.with_copy(format!("{tag}{}", near.trim()))
        } else {
            diagnostic
        });
        self.push(TokenKind::Bad, opener);
        self.resume = self.resume.max(line.end);
        self.jump(opener.end as usize);
    }

    /// `<<T text T`, or a `<<T` that was copied from the table and not filled.
    fn on_one_line(&mut self, opener: Span, tag: &str) {
        let message = format!(
            "the text of `<<{tag}` starts on the next line and ends with a line `{tag}`; a short text is a string"
        );
        let diagnostic = Diagnostic::error(codes::BAD_HEREDOC_OPENER, opener, message);
        let near = self.near(opener.end as usize);
        let close = near.match_indices(tag).map(|(at, _)| at).find(|at| {
            let apart = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '<');
            apart(near.get(..*at).and_then(|text| text.chars().next_back()))
                && apart(near.get(at + tag.len()..).and_then(|text| text.chars().next()))
        });
        let Some(close) = close else {
            let filled = quoted("text");
            self.reports.fix(diagnostic, opener, &filled);
            self.push(TokenKind::Bad, opener);
            self.jump(opener.end as usize);
            return;
        };
        let end = opener.end as usize + close + tag.len();
        let whole = Span::new(opener.start as usize, end);
        self.reports
            .fix(diagnostic, whole, &quoted(near.get(..close).unwrap_or("").trim()));
        self.push(TokenKind::Bad, whole);
        self.jump(end);
    }

    /// `<<`, `<<<TAG`, `<<-TAG`, `<<"TAG"`, `<< TAG`
    fn bad_opener(&mut self, start: usize) {
        let rest = self.rest(start + 2);
        let gap: usize = rest
            .chars()
            .take(4)
            .take_while(|c| "<-~'\" ".contains(*c))
            .map(char::len_utf8)
            .sum();
        let tag = tag_of(rest.get(gap..).unwrap_or(""));
        let mut end = start + 2 + gap + tag.len();
        if !tag.is_empty() && self.rest(end).starts_with(['\'', '"']) {
            end += 1;
        }
        let opener = Span::new(start, end);
        let name = if tag.is_empty() { "TAG" } else { tag };
        let message = format!(
            "`{}` opens no text; write `<<{name}`, the text on its own lines, then a line `{name}`",
            shown(opener.of(self.text).trim_end())
        );
        self.reports.fix(
            Diagnostic::error(codes::BAD_HEREDOC_OPENER, opener, message),
            opener,
            &format!("<<{name}"),
        );
        let line = if tag.is_empty() { None } else { self.closing(tag, start) };
        let alone = self.rest(end).trim_start_matches([' ', '\t', '\r']).starts_with('\n');
        match line {
            Some(line) if alone => {
                self.push(TokenKind::Bad, Span::new(start, line.end));
                self.jump(line.end);
            }
            Some(line) => {
                self.push(TokenKind::Bad, opener);
                self.resume = self.resume.max(line.end);
                self.jump(end);
            }
            // What follows is most likely the text: reading it as program would only add noise.
            None if alone => self.take_the_rest(opener),
            None => {
                self.push(TokenKind::Bad, opener);
                self.jump(end);
            }
        }
    }
}
