//! Reads strings, including strings in the quotes of other languages.
//! Invariant: no piece of text is searched twice for the same kind of closing quote.

use base::{Diagnostic, Span};

use super::Lexer;
use crate::codes;
use crate::syntax::reports::{quote_as_literal, shorten_for_message};
use crate::syntax::token::TokenKind;

/// The longest text in bytes that a correction repeats.
const MAX_COPIED_STRING_BYTES: usize = 120;

/// The last search for each kind of closing quote. A search that starts after an escaped quote inside an earlier
/// search ends where the earlier search ended. An escape never extends past its own character, so both searches are in
/// the same state behind it.
#[derive(Default)]
pub(super) struct QuoteScans([Option<QuoteScan>; 5]);

/// A search for a closing quote.
#[derive(Clone, Copy)]
struct QuoteScan {
    /// The offset at which the search started.
    from: usize,
    /// The offset of the closing quote, or of the end of the searched text if there is none.
    to: usize,
    /// Whether the character at `to` is a closing quote.
    closed: bool,
    /// Whether the quote at `to` more likely opens another string, judged by the characters around it. The searched
    /// string is then unclosed.
    opens: bool,
}

impl Lexer<'_, '_> {
    /// Reads a string. It is unclosed if no quote follows, or if the next quote is on a later line and more likely
    /// opens another string.
    pub(super) fn read_string(&mut self, start: usize) {
        let scan = self.scan_for_closing_quote('"', start + 1);
        let first_line = self.line_break_before(start, scan.to);
        if !scan.closed || (scan.opens && first_line.is_some()) {
            self.report_unclosed_string(start);
            return;
        }
        let span = Span::new(start, scan.to + 1);
        self.check_escapes(span);
        self.push_token(TokenKind::String, span);
        self.skip_to(scan.to + 1);
    }

    /// Reads a string in single quotes, backticks or curly quotes, and reports the quotes.
    pub(super) fn read_foreign_string(&mut self, start: usize) {
        let quote = self.text_from(start).chars().next().unwrap_or('\'');
        let inner = start + quote.len_utf8();
        let scan = self.scan_for_closing_quote(quote, inner);
        if !scan.closed
            || self.tokens.last().is_some_and(|last| last.span.end as usize == start && last.kind == TokenKind::Word)
        {
            self.report_stray_word(start, quote);
            return;
        }
        let closing = self.text_from(scan.to).chars().next().map_or(1, char::len_utf8);
        let span = Span::new(start, scan.to + closing);
        let message = format!(
            "text goes into double quotes, not {quote}…{}",
            self.text_from(scan.to).chars().next().unwrap_or(quote)
        );
        let diagnostic = Diagnostic::error(codes::BAD_CHARACTER, span, message);
        let text = decode_string(span.of(self.text));
        if text.len() > MAX_COPIED_STRING_BYTES {
            self.reports.add(diagnostic);
        } else {
            self.reports.add_with_fix(diagnostic, span, &quote_as_literal(&text));
        }
        self.push_token(TokenKind::String, span);
        self.skip_to(span.end as usize);
    }

    /// Reads `"""text"""`, and reports the triple quotes.
    pub(super) fn read_triple_quoted_string(&mut self, start: usize) {
        let inner = start + 3;
        let close = self.text_from(inner).find("\"\"\"");
        let Some(length) = close else {
            let message = "there is no `\"\"\"`, and nothing closes this one; write a string, or `<<TAG`, the text, then a line `TAG`";
            let opener = Span::new(start, inner);
            self.reports.add_error(codes::UNCLOSED_STRING, opener, message);
            self.discard_rest(opener);
            return;
        };
        let span = Span::new(start, inner + length + 3);
        let message =
            "there is no `\"\"\"`: text of several lines is `<<TAG`, the text on its own lines, then a line `TAG`";
        let diagnostic = Diagnostic::error(codes::BAD_CHARACTER, span, message);
        let text = self.text.get(inner..inner + length).unwrap_or("");
        if text.len() > MAX_COPIED_STRING_BYTES {
            self.reports.add(diagnostic);
        } else {
            self.reports.add_with_fix(diagnostic, span, &quote_as_literal(text));
        }
        self.push_token(TokenKind::Bad, span);
        self.skip_to(span.end as usize);
    }

    /// Reports an unclosed string. The string ends with its first line, but before closing brackets at the end of that
    /// line, because they most likely belong to the program.
    fn report_unclosed_string(&mut self, start: usize) {
        let line_end = self.find_line_end(start);
        let line = self.text.get(start + 1..line_end).unwrap_or("");
        let text = line.trim_end_matches(|c: char| c.is_whitespace() || ")]},".contains(c));
        let end = start + 1 + text.len();
        let span = Span::new(start, end);
        if self.reports.would_keep_error(span) {
            let position = self.reports.position(span.start);
            let message = format!("the string opened at {position} has no closing `\"`");
            let diagnostic = Diagnostic::error(codes::UNCLOSED_STRING, span, message);
            self.reports.add_with_fix(diagnostic, Span::new(end, end), "\"");
        }
        self.push_token(TokenKind::String, span);
        self.skip_to(end);
    }

    /// Returns the offset of the first line break in `start..end`.
    fn line_break_before(&mut self, start: usize, end: usize) -> Option<usize> {
        let at = self.text.get(start..end).unwrap_or("").find('\n');
        self.steps += at.unwrap_or(end - start);
        at
    }

    /// Searches for the closing quote of a string. Returns the last search if it covers the offset `from`.
    fn scan_for_closing_quote(&mut self, quote: char, from: usize) -> QuoteScan {
        let (slot, closers, one_line): (usize, &[char], bool) = match quote {
            '"' => (0, &['"'], false),
            '\'' => (1, &['\''], true),
            '`' => (2, &['`'], true),
            '\u{201C}' => (3, &['\u{201D}', '"'], true),
            _ => (4, &['\u{2019}', '\''], true),
        };
        let cached = self.quote_scans.0.get(slot).copied().flatten();
        if let Some(scan) = cached.filter(|scan| scan.from <= from && from <= scan.to) {
            return scan;
        }
        let (to, closed) = find_closing(self.text_from(from), closers, one_line);
        self.steps += to;
        let after = self.text_from(from + to).strip_prefix(closers).unwrap_or("");
        let blanks = after.len() - after.trim_start_matches([' ', '\t']).len();
        self.steps += blanks;
        let follower = after.get(blanks..).unwrap_or("").chars().next();
        let before = self.text.get(from..from + to).unwrap_or("").trim_end_matches([' ', '\t']);
        let opens = closed
            && before.ends_with(|c| "=(,[{~:<>".contains(c))
            && follower.is_some_and(|c| c.is_alphanumeric() || "_\"$".contains(c));
        let scan = QuoteScan { from, to: from + to, closed, opens };
        if let Some(cached) = self.quote_scans.0.get_mut(slot) {
            *cached = Some(scan);
        }
        scan
    }

    /// Reports invalid escapes in a string.
    fn check_escapes(&mut self, string: Span) {
        let inner = string.start as usize + 1;
        let text = self.text.get(inner..string.end as usize - 1).unwrap_or("");
        let mut at = 0;
        while let Some(offset) = text.get(at..).and_then(|rest| rest.find('\\')) {
            let escape = read_escape(text.get(at + offset..).unwrap_or(""));
            let start = inner + at + offset;
            if escape.meaning.is_none() {
                self.report_bad_escape(Span::new(start, start + escape.length));
            }
            at += offset + escape.length;
        }
        self.steps += text.len();
    }

    /// Reports an invalid escape.
    fn report_bad_escape(&mut self, span: Span) {
        let written = span.of(self.text);
        if written.starts_with("\\u") && written.len() != 6 {
            let message = format!(
                "`{}` is no character; `\\u{{…}}` holds one to six hexadecimal digits",
                shorten_for_message(written)
            );
            self.reports.add_error(codes::BAD_ESCAPE, span, message);
            return;
        }
        let (message, copy) = if let Some(hex) = written.strip_prefix("\\u") {
            (format!("`{written}` is written `\\u{{{hex}}}`"), format!("\\u{{{hex}}}"))
        } else if let Some(plain) = written.strip_prefix('\\').filter(|plain| ["'", "/", "`"].contains(plain)) {
            (format!("`{plain}` needs no backslash"), plain.to_owned())
        } else {
            let name = written.chars().nth(1).map_or(String::new(), |c| c.escape_debug().to_string());
            (format!("there is no escape `\\{name}`; a backslash itself is `\\\\`"), format!("\\{written}"))
        };
        self.reports.add_with_fix(Diagnostic::error(codes::BAD_ESCAPE, span, message), span, &copy);
    }
}

/// Returns the offset of the closing quote and `true`. Without a closing quote, returns `false` and the offset of the
/// end of the text or, if `one_line` is true, of the line.
fn find_closing(text: &str, closers: &[char], one_line: bool) -> (usize, bool) {
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        if c == '\\' {
            // An escaped line break does not continue a one-line string on the next line.
            if one_line && characters.as_str().starts_with('\n') {
                return (at + 1, false);
            }
            characters.next();
        } else if closers.contains(&c) {
            return (at, true);
        } else if one_line && c == '\n' {
            return (at, false);
        }
    }
    (text.len(), false)
}

/// Returns the value of a string token. Invalid escapes are kept as written.
pub(in crate::syntax) fn decode_string(token: &str) -> String {
    let mut characters = token.chars();
    let closers: &[char] = match characters.next() {
        Some('\'') => &['\''],
        Some('`') => &['`'],
        Some('\u{201C}') => &['\u{201D}', '"'],
        Some('\u{2018}') => &['\u{2019}', '\''],
        _ => &['"'],
    };
    let mut rest = characters.as_str();
    let mut out = String::with_capacity(rest.len());
    while let Some(at) = rest.find(|c| c == '\\' || closers.contains(&c)) {
        out.push_str(rest.get(..at).unwrap_or(""));
        let tail = rest.get(at..).unwrap_or("");
        if !tail.starts_with('\\') {
            return out;
        }
        let escape = read_escape(tail);
        let own_quote = tail.get(1..).and_then(|tail| tail.chars().next()).filter(|c| closers.contains(c));
        match escape.meaning.or(own_quote) {
            Some(c) => out.push(c),
            None => out.push_str(tail.get(..escape.length).unwrap_or("")),
        }
        rest = tail.get(escape.length..).unwrap_or("");
    }
    out.push_str(rest);
    out
}

/// An escape sequence.
struct Escape {
    /// The length in bytes, including the backslash.
    length: usize,
    /// The character that the sequence represents, or `None` if the sequence is invalid.
    meaning: Option<char>,
}

/// Reads the escape sequence at the start of `text`, which begins with a backslash.
fn read_escape(text: &str) -> Escape {
    let Some(second) = text.chars().nth(1) else {
        return Escape { length: text.len(), meaning: None };
    };
    let length = 1 + second.len_utf8();
    let simple = |c| Escape { length, meaning: Some(c) };
    match second {
        '"' => simple('"'),
        '\\' => simple('\\'),
        'n' => simple('\n'),
        't' => simple('\t'),
        'r' => simple('\r'),
        'u' => read_unicode_escape(text),
        _ => Escape { length, meaning: None },
    }
}

/// Reads `\u{…}` at the start of `text`. `\u` with digits but without braces is invalid.
fn read_unicode_escape(text: &str) -> Escape {
    let body = text.get(2..).unwrap_or("");
    let is_hex = |c: char| c.is_ascii_hexdigit();
    let Some(inner) = body.strip_prefix('{') else {
        let digits = body.chars().take(4).take_while(|c| is_hex(*c)).count();
        return Escape { length: 2 + digits, meaning: None };
    };
    let digits = inner.chars().take(7).take_while(|c| is_hex(*c)).count();
    let closed = inner.get(digits..).is_some_and(|rest| rest.starts_with('}'));
    let number = inner.get(..digits).and_then(|hex| u32::from_str_radix(hex, 16).ok());
    let meaning = number.filter(|_| closed && digits <= 6).and_then(char::from_u32);
    Escape { length: 3 + digits + usize::from(closed), meaning }
}
