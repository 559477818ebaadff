//! Makes foreign text safe to quote in a message, and shows each of its characters in a plan.
//! Invariants: the result of `printable` has a bounded length, and no backtick, which could end a quotation. No result has a character
//! that hides others or looks like none.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns at most `max_chars` characters of `text`. Backticks become quotes; control and invisible characters become
/// `\u{fffd}`.
pub fn printable(text: &str, max_chars: usize) -> String {
    let replace = |c: char| match c {
        '`' => '\'',
        c if c.is_control() || is_invisible(c) => '\u{fffd}',
        c => c,
    };
    text.chars().take(max_chars).map(replace).collect()
}

/// Returns the text with each character that a reader could not see, or could take for another one, as its escape `\u{…}`. A text that
/// a reviewer approves goes through this function, so that the words that the reviewer reads are the words that are sent.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(hides) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        push_visible(&mut out, c);
    }
    Cow::Owned(out)
}

/// Returns a text of several lines like `visible`, with its line breaks and tabs as they are.
pub fn visible_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c => push_visible(&mut out, c),
        }
    }
    out
}

/// Returns the text in double quotes, as a program writes it: `\"`, `\\`, `\n`, `\t`, and `\u{…}` for each character that `visible` escapes.
/// Two different texts never have the same quotation.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c => push_visible(&mut out, c),
        }
    }
    out.push('"');
    out
}

fn push_visible(out: &mut String, c: char) {
    if hides(c) {
        // Writing to a text cannot fail.
        let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
    } else {
        out.push(c);
    }
}

/// Returns whether a character cannot be seen as itself: it is a control character, is invisible, or is a space other than U+0020.
fn hides(c: char) -> bool {
    let is_unusual_space =
        matches!(c, '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}');
    c.is_control() || is_invisible(c) || is_unusual_space
}

/// Returns whether a character is invisible: it reverses the direction of text, joins, hides or marks its neighbours, breaks a line, or
/// has no shape of its own. With such a character, the words that a model or a person sees could differ from the words in the text. The
/// list has the format characters of Unicode (Cf), its line and paragraph separators, the fillers and blank signs, the variation
/// selectors and tags, in which a text can be hidden, private characters and noncharacters.
fn is_invisible(c: char) -> bool {
    let is_noncharacter = u32::from(c) & 0xfffe == 0xfffe || matches!(c, '\u{fdd0}'..='\u{fdef}');
    is_noncharacter
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
            | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use super::{printable, quote, visible};

    #[test]
    fn invisible_characters_are_replaced_and_the_length_is_bounded() {
        assert_eq!(printable("Ticket", 80), "Ticket");
        assert_eq!(printable("a`b\u{1b}[31m\nc\u{202e}d", 80), "a'b\u{fffd}[31m\u{fffd}c\u{fffd}d");
        assert_eq!(printable("größer", 3), "grö");
    }

    #[test]
    fn a_character_that_hides_is_shown_as_its_escape() {
        assert_eq!(visible("größer 日本語 ✓"), "größer 日本語 ✓");
        for (text, shown) in [
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("x\u{e0041}", "x\\u{e0041}"),
            ("x\u{fe0f}\u{e0100}", "x\\u{fe0f}\\u{e0100}"),
            ("\u{a0}\u{3000}\u{2800}\u{3164}", "\\u{a0}\\u{3000}\\u{2800}\\u{3164}"),
            ("a\nb\tc\r\u{7f}\u{85}", "a\\u{a}b\\u{9}c\\u{d}\\u{7f}\\u{85}"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn a_quotation_tells_an_escape_from_the_text_of_an_escape() {
        assert_eq!(quote("a\"b\\c\n\t"), r#""a\"b\\c\n\t""#);
        assert_eq!(quote("\u{202e}"), r#""\u{202e}""#);
        assert_eq!(quote(r"\u{202e}"), r#""\\u{202e}""#);
    }

    /// No character of the planes in use is shown raw if it has no shape, so the list has no gap that the escapes of Rust know of.
    #[test]
    fn every_character_without_a_shape_is_escaped() {
        for c in (0..=0x10_ffffu32).filter_map(char::from_u32) {
            let escaped = c.escape_debug().to_string();
            // Rust escapes what it cannot print, and marks that join the character before them, which have a shape.
            if escaped.starts_with("\\u") && !super::hides(c) {
                assert!(is_mark_or_unassigned(c), "{:x}", u32::from(c));
            }
        }
    }

    fn is_mark_or_unassigned(c: char) -> bool {
        // Marks and unassigned characters render as marks or boxes, so a reader sees that something stands there.
        !matches!(c, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2000}'..='\u{206f}' | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}')
    }
}
