//! What becomes of a source: ranges that turn into spaces, and single characters put in their place.
//! Invariant: line ends stay, and every other character is one character afterwards; so places stay.

use std::collections::BTreeMap;

#[derive(Default)]
pub struct Edits {
    blanks: Vec<(usize, usize)>,
    puts: BTreeMap<usize, char>,
}

impl Edits {
    pub fn blank(&mut self, from: u32, to: u32) {
        if from < to {
            self.blanks.push((from as usize, to as usize));
        }
    }

    /// Instead of the character that begins here.
    pub fn put(&mut self, at: usize, character: char) {
        self.puts.entry(at).or_insert(character);
    }

    /// Puts the ranges in order and joins those that meet.
    pub fn sort(&mut self) {
        self.blanks.sort_unstable();
        self.blanks.dedup_by(|next, joined| {
            let meet = next.0 <= joined.1;
            joined.1 = if meet { joined.1.max(next.1) } else { joined.1 };
            meet
        });
    }

    /// Of ranges that are sorted.
    pub fn is_blank(&self, at: usize) -> bool {
        let after = self.blanks.partition_point(|(from, _)| *from <= at);
        after.checked_sub(1).is_some_and(|last| at < self.blanks[last].1)
    }

    pub fn apply(mut self, source: &str) -> String {
        self.sort();
        let mut blanks = self.blanks.into_iter().peekable();
        let mut until = 0;
        let mut out = String::with_capacity(source.len());
        for (at, character) in source.char_indices() {
            while let Some((_, to)) = blanks.next_if(|(from, _)| *from <= at) {
                until = until.max(to);
            }
            out.push(match self.puts.get(&at) {
                Some(put) => *put,
                None if at < until && !ends_line(character) => ' ',
                None => character,
            });
        }
        out
    }
}

pub fn ends_line(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}
