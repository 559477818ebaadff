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

/// For each tag: the lines that could close a block, and those that open one.
pub(super) struct ClosingLines<'t>(HashMap<&'t str, Lines>);

#[derive(Default)]
struct Lines {
    /// The line begins with the tag, and nothing but closers and commas follows.
    closing: Vec<Line>,
    /// A closer or a comma follows the tag, and then more.
    sloppy: Vec<Line>,
    /// The line ends with `<<TAG`.
    opening: Vec<Line>,
}

#[derive(Clone, Copy)]
struct Line {
    start: usize,
    /// After the tag.
    end: usize,
}

enum Closing {
    Line(Line),
    /// More follows the tag on its line.
    Sloppy(Line),
    None,
}

impl<'t> ClosingLines<'t> {
    fn new(text: &'t str) -> Self {
        let mut tags: HashMap<&'t str, Lines> = HashMap::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let indent = line.len() - line.trim_start().len();
            let content = line.trim();
            let tag = tag_of(content);
            let after = content.get(tag.len()..).unwrap_or("");
            let place = Line { start, end: start + indent + tag.len() };
            let closer = |c: char| ")]},".contains(c);
            if !tag.is_empty() && after.chars().all(|c| c.is_whitespace() || closer(c)) {
                tags.entry(tag).or_default().closing.push(place);
            } else if !tag.is_empty() && after.trim_start().starts_with(closer) {
                tags.entry(tag).or_default().sloppy.push(place);
            }
            let opener = content.rfind("<<").and_then(|at| content.get(at + 2..));
            if let Some(opened) = opener.filter(|opened| !opened.is_empty() && tag_of(opened) == *opened) {
                tags.entry(opened).or_default().opening.push(place);
            }
            start += line.len();
        }
        Self(tags)
    }

    /// What closes the block that `tag` opens at `after`. A line with more after its tag does if no other line would, or if
    /// the block would otherwise hold the opener of the block that the other line closes.
    fn of(&self, tag: &str, after: usize) -> Closing {
        let Some(lines) = self.0.get(tag) else { return Closing::None };
        match (first_after(&lines.closing, after), first_after(&lines.sloppy, after)) {
            (Some(line), Some(sloppy)) if sloppy.start < line.start && lines.opens_between(sloppy, line) => {
                Closing::Sloppy(sloppy)
            }
            (Some(line), _) => Closing::Line(line),
            (None, Some(sloppy)) => Closing::Sloppy(sloppy),
            (None, None) => Closing::None,
        }
    }

    /// What closes the block of an opener that has more on its line: no line that closes another block.
    fn of_crowded(&self, tag: &str, after: usize) -> Option<Line> {
        let lines = self.0.get(tag)?;
        let line = first_after(&lines.closing, after)?;
        let opening = first_after(&lines.opening, after);
        opening.is_none_or(|opening| opening.start >= line.start).then_some(line)
    }
}

impl Lines {
    fn opens_between(&self, from: Line, to: Line) -> bool {
        let next = self.opening.get(self.opening.partition_point(|line| line.start < from.start));
        next.is_some_and(|opening| opening.start < to.start)
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
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).unwrap_or(text.len());
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
        let crowded = if alone { None } else { self.closing_lines().of_crowded(tag, start) };
        let closing = if alone { self.closing_lines().of(tag, start) } else { Closing::None };
        match (closing, crowded) {
            (Closing::Line(line), _) => self.block(start, line),
            (Closing::Sloppy(line), _) if self.mode == Mode::Program => self.sloppy_block(start, line, tag),
            _ if self.mode == Mode::Taught => {
                self.push(TokenKind::Hole, opener);
                self.jump(opener.end as usize);
            }
            (_, Some(line)) => self.opener_not_alone(opener, line),
            _ if alone => self.unclosed(opener, tag),
            _ => self.on_one_line(opener, tag),
        }
    }

    fn block(&mut self, start: usize, line: Line) {
        self.push(TokenKind::Heredoc, Span::new(start, line.end));
        self.jump(line.end);
    }

    /// The closing line is like `TAG).limit(3)` or `TAG, p6=1)`.
    fn sloppy_block(&mut self, start: usize, line: Line, tag: &str) {
        let place = Span::new(line.end - tag.len(), line.end);
        let message = format!("`{tag}` was read as the end of the text, although more follows it on its line");
        self.reports.add(Diagnostic::note(codes::UNCLOSED_HEREDOC, place, message));
        self.block(start, line);
    }

    /// The rest of the line, as far as it is looked at.
    fn near(&self, from: usize) -> &'t str {
        let rest = self.rest(from);
        let near = rest.get(..rest.floor_char_boundary(LONGEST.min(rest.len()))).unwrap_or("");
        near.split('\n').next().unwrap_or("")
    }

    fn closing_lines(&mut self) -> &ClosingLines<'t> {
        if self.closing.is_none() {
            self.steps += self.text.len();
        }
        self.closing.get_or_insert_with(|| ClosingLines::new(self.text))
    }

    fn unclosed(&mut self, opener: Span, tag: &str) {
        if self.reports.accepts(opener) {
            let place = self.reports.place(opener.start);
            let message =
                format!("`<<{tag}` opened at {place} is not closed; end its text with a line that holds only `{tag}`");
            self.reports.add(Diagnostic::error(codes::UNCLOSED_HEREDOC, opener, message).with_copy(tag));
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
        self.reports.add(if closers { diagnostic.with_copy(format!("{tag}{}", near.trim())) } else { diagnostic });
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
        self.reports.fix(diagnostic, whole, &quoted(near.get(..close).unwrap_or("").trim()));
        self.push(TokenKind::Bad, whole);
        self.jump(end);
    }

    /// `<<`, `<<<TAG`, `<<-TAG`, `<<"TAG"`, `<< TAG`
    fn bad_opener(&mut self, start: usize) {
        let rest = self.rest(start + 2);
        let gap: usize = rest.chars().take(4).take_while(|c| "<-~'\" ".contains(*c)).map(char::len_utf8).sum();
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
        self.reports.fix(Diagnostic::error(codes::BAD_HEREDOC_OPENER, opener, message), opener, &format!("<<{name}"));
        let line = if tag.is_empty() { None } else { self.closing_lines().of_crowded(tag, start) };
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
