//! Makes foreign text safe to quote in a message.
//! Invariant: the result has a bounded length. It has no backtick, which could end a quotation, and no character that
//! hides others.

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

/// Returns whether a character is invisible: it reverses the direction of text, joins or hides its neighbours, or
/// breaks a line. With such a character, the words that a model or a person sees could differ from the words in the
/// message.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn invisible_characters_are_replaced_and_the_length_is_bounded() {
        assert_eq!(printable("Ticket", 80), "Ticket");
        assert_eq!(printable("a`b\u{1b}[31m\nc\u{202e}d", 80), "a'b\u{fffd}[31m\u{fffd}c\u{fffd}d");
        assert_eq!(printable("größer", 3), "grö");
    }
}
