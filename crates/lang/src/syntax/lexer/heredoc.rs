//! Reads heredocs, which are blocks of text: a line that ends with `<<TAG`, the text, and a line `TAG`.
//! Invariant: the lines that may close a heredoc are collected once for the whole text, however many heredocs it has.

use std::collections::HashMap;

use base::{Diagnostic, Span};

use super::Lexer;
use crate::codes;
use crate::syntax::ParseMode;
use crate::syntax::reports::{quote_as_literal, shorten_for_message};
use crate::syntax::token::TokenKind;

/// The most bytes behind a heredoc's opener that are searched for text on the same line.
const MAX_LINE_REST_BYTES: usize = 120;

/// The lines that may close or open a heredoc, by tag.
pub(super) struct ClosingLines<'t>(HashMap<&'t str, TagLines>);

/// The lines of one tag. Each list is in the order of the text.
#[derive(Default)]
struct TagLines {
    /// The lines that consist of the tag, possibly followed by closing brackets and commas.
    closing: Vec<TagLine>,
    /// The lines that begin with the tag and a closing bracket or comma, followed by other text.
    sloppy: Vec<TagLine>,
    /// The lines that end with `<<TAG`.
    opening: Vec<TagLine>,
}

/// A line that contains a tag.
#[derive(Clone, Copy)]
struct TagLine {
    /// The offset of the start of the line.
    start: usize,
    /// The offset behind the tag at the start of the line.
    end: usize,
}

/// The line that closes a heredoc.
enum ClosingLine {
    /// A proper closing line: only closing brackets and commas follow the tag.
    Proper(TagLine),
    /// A sloppy closing line: other text follows the tag.
    Sloppy(TagLine),
    /// The heredoc has no closing line.
    None,
}

impl<'t> ClosingLines<'t> {
    /// Collects the lines of all tags in one pass.
    fn new(text: &'t str) -> Self {
        let mut tags: HashMap<&'t str, TagLines> = HashMap::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let indent = line.len() - line.trim_start().len();
            let content = line.trim();
            let tag = leading_tag(content);
            let after = content.get(tag.len()..).unwrap_or("");
            let tag_line = TagLine { start, end: start + indent + tag.len() };
            let closer = |c: char| ")]},".contains(c);
            if !tag.is_empty() && after.chars().all(|c| c.is_whitespace() || closer(c)) {
                tags.entry(tag).or_default().closing.push(tag_line);
            } else if !tag.is_empty() && after.trim_start().starts_with(closer) {
                tags.entry(tag).or_default().sloppy.push(tag_line);
            }
            let opener = content.rfind("<<").and_then(|at| content.get(at + 2..));
            if let Some(opened) = opener.filter(|opened| !opened.is_empty() && leading_tag(opened) == *opened) {
                tags.entry(opened).or_default().opening.push(tag_line);
            }
            start += line.len();
        }
        Self(tags)
    }

    /// Finds the closing line of a heredoc that opens with `tag` at `after`. A sloppy line is used if there is no
    /// proper line, or if the proper line closes a later heredoc with the same tag.
    fn find_closing_line(&self, tag: &str, after: usize) -> ClosingLine {
        let Some(lines) = self.0.get(tag) else { return ClosingLine::None };
        match (first_after(&lines.closing, after), first_after(&lines.sloppy, after)) {
            (Some(line), Some(sloppy)) if sloppy.start < line.start && lines.opens_between(sloppy, line) => {
                ClosingLine::Sloppy(sloppy)
            }
            (Some(line), _) => ClosingLine::Proper(line),
            (None, Some(sloppy)) => ClosingLine::Sloppy(sloppy),
            (None, None) => ClosingLine::None,
        }
    }

    /// Finds the closing line of a heredoc with more text on its opening line. Returns `None` if the line closes
    /// another heredoc.
    fn find_closing_line_of_crowded_opener(&self, tag: &str, after: usize) -> Option<TagLine> {
        let lines = self.0.get(tag)?;
        let line = first_after(&lines.closing, after)?;
        let opening = first_after(&lines.opening, after);
        opening.is_none_or(|opening| opening.start >= line.start).then_some(line)
    }
}

impl TagLines {
    /// Returns whether a heredoc opens between two lines.
    fn opens_between(&self, from: TagLine, to: TagLine) -> bool {
        let next = self.opening.get(self.opening.partition_point(|line| line.start < from.start));
        next.is_some_and(|opening| opening.start < to.start)
    }
}

/// Returns the first line that starts after an offset.
fn first_after(lines: &[TagLine], after: usize) -> Option<TagLine> {
    lines.get(lines.partition_point(|line| line.start <= after)).copied()
}

/// Returns the tag at the start of `text`, or an empty string if there is none.
fn leading_tag(text: &str) -> &str {
    if !text.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return "";
    }
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).unwrap_or(text.len());
    text.get(..end).unwrap_or("").trim_end_matches('-')
}

/// Splits the text of a heredoc token into its tag and its body.
pub(in crate::syntax) fn heredoc_tag_and_body(token: &str) -> (&str, &str) {
    let opener = token.get(2..).unwrap_or("");
    let tag = leading_tag(opener);
    let Some(first) = opener.find('\n') else {
        return (tag, "");
    };
    let lines = opener.get(first + 1..).unwrap_or("");
    let body = lines.rfind('\n').map_or("", |last| lines.get(..last).unwrap_or(""));
    (tag, body.strip_suffix('\r').unwrap_or(body))
}

impl<'t> Lexer<'t, '_> {
    /// Reads the token at `<<`: a heredoc, a placeholder in a taught line, or a mistake.
    pub(super) fn read_heredoc(&mut self, start: usize) {
        let tag = leading_tag(self.text_from(start + 2));
        if tag.is_empty() {
            self.report_bad_opener(start);
            return;
        }
        let opener = Span::new(start, start + 2 + tag.len());
        let after = self.text_from(opener.end as usize);
        let after = after.trim_start_matches([' ', '\t', '\r']);
        let alone = after.is_empty() || after.starts_with('\n');
        let crowded_close =
            if alone { None } else { self.closing_lines().find_closing_line_of_crowded_opener(tag, start) };
        let closing = if alone { self.closing_lines().find_closing_line(tag, start) } else { ClosingLine::None };
        match (closing, crowded_close) {
            (ClosingLine::Proper(line), _) => self.push_heredoc(start, line),
            (ClosingLine::Sloppy(line), _) if self.mode == ParseMode::Program => {
                self.read_sloppy_heredoc(start, line, tag)
            }
            _ if self.mode == ParseMode::Taught => {
                self.push_token(TokenKind::Placeholder, opener);
                self.skip_to(opener.end as usize);
            }
            (_, Some(line)) => self.report_opener_not_alone(opener, line),
            _ if alone => self.report_unclosed(opener, tag),
            _ => self.report_text_on_opener_line(opener, tag),
        }
    }

    fn push_heredoc(&mut self, start: usize, line: TagLine) {
        self.push_token(TokenKind::Heredoc, Span::new(start, line.end));
        self.skip_to(line.end);
    }

    /// Reads a heredoc whose closing line has other text, such as `TAG).limit(3)` or `TAG, p6=1)`, and adds a note.
    fn read_sloppy_heredoc(&mut self, start: usize, line: TagLine, tag: &str) {
        let tag_span = Span::new(line.end - tag.len(), line.end);
        let message = format!("`{tag}` was read as the end of the text, although more follows it on its line");
        self.reports.add(Diagnostic::note(codes::UNCLOSED_HEREDOC, tag_span, message));
        self.push_heredoc(start, line);
    }

    /// Returns the rest of the line, limited to `MAX_LINE_REST_BYTES`.
    fn rest_of_line(&self, from: usize) -> &'t str {
        let rest = self.text_from(from);
        let rest_of_line = rest.get(..rest.floor_char_boundary(MAX_LINE_REST_BYTES.min(rest.len()))).unwrap_or("");
        rest_of_line.split('\n').next().unwrap_or("")
    }

    /// Returns the lines of all tags. The first call collects them.
    fn closing_lines(&mut self) -> &ClosingLines<'t> {
        if self.closing_lines.is_none() {
            self.steps += self.text.len();
        }
        self.closing_lines.get_or_insert_with(|| ClosingLines::new(self.text))
    }

    fn report_unclosed(&mut self, opener: Span, tag: &str) {
        if self.reports.would_keep_error(opener) {
            let position = self.reports.position(opener.start);
            let message = format!(
                "`<<{tag}` opened at {position} is not closed; end its text with a line that holds only `{tag}`"
            );
            self.reports.add(Diagnostic::error(codes::UNCLOSED_HEREDOC, opener, message).with_copy(tag));
        }
        self.discard_rest(opener);
    }

    /// Skips the rest of the text, which belongs to an unclosed string or heredoc.
    pub(super) fn discard_rest(&mut self, opener: Span) {
        self.rest_discarded = true;
        self.push_token(TokenKind::Bad, opener);
        self.skip_to(self.text.len());
    }

    /// Reports text behind `<<TAG` on its line, as in `m1(p5=<<TAG)`. The body on the next lines is skipped at the end
    /// of this line.
    fn report_opener_not_alone(&mut self, opener: Span, line: TagLine) {
        let tag = opener.of(self.text).trim_start_matches('<');
        let message = format!(
            "nothing may follow `<<{tag}` on its line: what belongs after the text follows the closing `{tag}`"
        );
        let diagnostic = Diagnostic::error(codes::BAD_HEREDOC_OPENER, opener, message);
        let rest_of_line = self.rest_of_line(opener.end as usize);
        let closers = rest_of_line.len() < MAX_LINE_REST_BYTES
            && rest_of_line.chars().all(|c| c.is_whitespace() || ")]},".contains(c));
        self.reports.add(if closers {
            diagnostic.with_copy(format!("{tag}{}", rest_of_line.trim()))
        } else {
            diagnostic
        });
        self.push_token(TokenKind::Bad, opener);
        self.resume_at = self.resume_at.max(line.end);
        self.skip_to(opener.end as usize);
    }

    /// Reports `<<T text T` on one line, or a placeholder `<<T` that was copied from a taught table.
    fn report_text_on_opener_line(&mut self, opener: Span, tag: &str) {
        let message = format!(
            "the text of `<<{tag}` starts on the next line and ends with a line `{tag}`; a short text is a string"
        );
        let diagnostic = Diagnostic::error(codes::BAD_HEREDOC_OPENER, opener, message);
        let rest_of_line = self.rest_of_line(opener.end as usize);
        let close = rest_of_line.match_indices(tag).map(|(at, _)| at).find(|at| {
            let apart = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '<');
            apart(rest_of_line.get(..*at).and_then(|text| text.chars().next_back()))
                && apart(rest_of_line.get(at + tag.len()..).and_then(|text| text.chars().next()))
        });
        let Some(close) = close else {
            let filled = quote_as_literal("text");
            self.reports.add_with_fix(diagnostic, opener, &filled);
            self.push_token(TokenKind::Bad, opener);
            self.skip_to(opener.end as usize);
            return;
        };
        let end = opener.end as usize + close + tag.len();
        let whole = Span::new(opener.start as usize, end);
        self.reports.add_with_fix(diagnostic, whole, &quote_as_literal(rest_of_line.get(..close).unwrap_or("").trim()));
        self.push_token(TokenKind::Bad, whole);
        self.skip_to(end);
    }

    /// Reports a misspelled opener: `<<`, `<<<TAG`, `<<-TAG`, `<<"TAG"` or `<< TAG`. The text that was probably meant
    /// as the body is skipped.
    fn report_bad_opener(&mut self, start: usize) {
        let rest = self.text_from(start + 2);
        let gap: usize = rest.chars().take(4).take_while(|c| "<-~'\" ".contains(*c)).map(char::len_utf8).sum();
        let tag = leading_tag(rest.get(gap..).unwrap_or(""));
        let mut end = start + 2 + gap + tag.len();
        if !tag.is_empty() && self.text_from(end).starts_with(['\'', '"']) {
            end += 1;
        }
        let opener = Span::new(start, end);
        let name = if tag.is_empty() { "TAG" } else { tag };
        let message = format!(
            "`{}` opens no text; write `<<{name}`, the text on its own lines, then a line `{name}`",
            shorten_for_message(opener.of(self.text).trim_end())
        );
        self.reports.add_with_fix(
            Diagnostic::error(codes::BAD_HEREDOC_OPENER, opener, message),
            opener,
            &format!("<<{name}"),
        );
        let line =
            if tag.is_empty() { None } else { self.closing_lines().find_closing_line_of_crowded_opener(tag, start) };
        let alone = self.text_from(end).trim_start_matches([' ', '\t', '\r']).starts_with('\n');
        match line {
            Some(line) if alone => {
                self.push_token(TokenKind::Bad, Span::new(start, line.end));
                self.skip_to(line.end);
            }
            Some(line) => {
                self.push_token(TokenKind::Bad, opener);
                self.resume_at = self.resume_at.max(line.end);
                self.skip_to(end);
            }
            // The following lines are most likely the body. Reading them as program text would only add diagnostics.
            None if alone => self.discard_rest(opener),
            None => {
                self.push_token(TokenKind::Bad, opener);
                self.skip_to(end);
            }
        }
    }
}
