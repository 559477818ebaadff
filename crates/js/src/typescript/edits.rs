//! The type `Edits`: the changes of a source text. It contains ranges that become spaces, and single characters that
//! are replaced.
//! Invariant: line ends are kept, and every other character is replaced by one character, so the line and column of
//! each character stay the same.

use std::collections::BTreeMap;

#[derive(Default)]
pub struct Edits {
    /// The byte ranges that become spaces. They are sorted and disjoint after [`Edits::sort`].
    blanks: Vec<(usize, usize)>,
    /// The new characters by byte position. They take precedence over ranges.
    replacements: BTreeMap<usize, char>,
}

impl Edits {
    pub fn blank(&mut self, from: u32, to: u32) {
        if from < to {
            self.blanks.push((from as usize, to as usize));
        }
    }

    /// Replaces the character that begins at byte `at`. If a character is replaced twice, the first replacement is
    /// used.
    pub fn replace(&mut self, at: usize, character: char) {
        self.replacements.entry(at).or_insert(character);
    }

    /// Sorts the ranges, and joins ranges that overlap or touch.
    pub fn sort(&mut self) {
        self.blanks.sort_unstable();
        self.blanks.dedup_by(|next, joined| {
            let touches = next.0 <= joined.1;
            joined.1 = if touches { joined.1.max(next.1) } else { joined.1 };
            touches
        });
    }

    /// Returns whether the byte at this position is in a range that is replaced by blanks. [`Edits::sort`] must have been called.
    pub fn is_blank(&self, at: usize) -> bool {
        let first_after = self.blanks.partition_point(|(from, _)| *from <= at);
        first_after.checked_sub(1).is_some_and(|index| at < self.blanks[index].1)
    }

    pub fn apply(mut self, source: &str) -> String {
        self.sort();
        let mut blanks = self.blanks.into_iter().peekable();
        let mut blank_until = 0;
        let mut edited = String::with_capacity(source.len());
        for (at, character) in source.char_indices() {
            while let Some((_, to)) = blanks.next_if(|(from, _)| *from <= at) {
                blank_until = blank_until.max(to);
            }
            edited.push(match self.replacements.get(&at) {
                Some(replacement) => *replacement,
                None if at < blank_until && !ends_line(character) => ' ',
                None => character,
            });
        }
        edited
    }
}

/// Returns whether JavaScript treats the character as the end of a line.
pub fn ends_line(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}
