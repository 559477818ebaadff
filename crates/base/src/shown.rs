//! A piece of somebody's input inside a sentence of ours.
//! Invariant: it has a bounded length, ends no quotation and moves no cursor: what it looks like is what it is.

/// At most `most` characters; a backtick, which would end the quotation, and what has no shape are replaced.
pub fn shown(text: &str, most: usize) -> String {
    let plain = |c: char| match c {
        '`' => '\'',
        c if c.is_control() || is_shapeless(c) => '\u{fffd}',
        c => c,
    };
    text.chars().take(most).map(plain).collect()
}

/// Marks that turn the direction of text, join or hide what is beside them, or break a line.
fn is_shapeless(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn what_is_shown_is_what_it_looks_like() {
        assert_eq!(shown("Ticket", 80), "Ticket");
        assert_eq!(shown("a`b\u{1b}[31m\nc\u{202e}d", 80), "a'b\u{fffd}[31m\u{fffd}c\u{fffd}d");
        assert_eq!(shown("größer", 3), "grö");
    }
}
