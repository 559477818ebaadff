//! The indexes of the store: sorted entries by which rows are found in another order than that of their ids.
//!
//! A put names the entries of its row (`Batch::put_indexed`), and the store changes row and entries in one
//! transaction. `Store::scan_index` reads them. A list that a person or the collector asks for is a range of an index, so the store reads no more rows
//! than it returns.
//!
//! Invariants:
//! - The entries of a row are exactly the index keys of its last put. A put without keys and a delete remove them.
//! - Entries are in the order of their sort texts; equal sort texts are in the order of table name and id. All three
//!   are compared as bytes.

use base::Timestamp;
use serde::{Deserialize, Serialize};

/// The largest length of a sort text, in bytes.
pub const MAX_SORT_BYTES: usize = 1024;

/// The indexes of the store. The comment of each index has the form `sort text -> rows`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Index {
    /// `{state}/{time of the last change}` -> sessions and runs, for lists such as "failed, newest first".
    State,
    /// The time at which a lease ends -> runs that another process may then take over.
    LeaseEnd,
    /// The time at which a retention period ends -> rows that the collector may then delete.
    RetentionEnd,
    /// The time at which a blob was touched for the last time -> the rows of blobs.
    BlobTouched,
}

impl Index {
    pub const ALL: [Index; 4] = [Index::State, Index::LeaseEnd, Index::RetentionEnd, Index::BlobTouched];

    /// Returns the index's name in storage. A name never changes, because stored entries are found by it.
    pub fn name(self) -> &'static str {
        match self {
            Index::State => "state",
            Index::LeaseEnd => "lease_end",
            Index::RetentionEnd => "retention_end",
            Index::BlobTouched => "blob_touched",
        }
    }
}

/// One index entry that a row asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexKey {
    index: Index,
    /// At most [`MAX_SORT_BYTES`] long, so that one row cannot fill pages of the index.
    sort: String,
}

impl IndexKey {
    /// Makes an index key. Of a longer sort text only the first [`MAX_SORT_BYTES`] bytes are kept, up to the end of a
    /// character; entries that are equal up to there are in the order of their ids.
    pub fn new(index: Index, sort: impl Into<String>) -> Self {
        let mut sort = sort.into();
        sort.truncate(sort.floor_char_boundary(MAX_SORT_BYTES));
        Self { index, sort }
    }

    pub fn index(&self) -> Index {
        self.index
    }

    pub fn sort(&self) -> &str {
        &self.sort
    }
}

/// Returns the sort text of a time. Texts of earlier times sort before texts of later times, also before 1970.
pub fn sort_time(at: Timestamp) -> String {
    // The inverted sign bit makes negative numbers the smaller ones.
    format!("{:016x}", at.0.cast_unsigned() ^ (1 << 63))
}

/// The direction in which a range is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    Ascending,
    /// From the largest sort text to the smallest, such as the newest rows first.
    Descending,
}

/// Returns the smallest text that is greater than every text with this prefix, or `None` if there is no such text.
pub(crate) fn prefix_end(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // A range of characters leaves out the surrogates, which no text contains.
        if let Some(next) = (last..=char::MAX).nth(1) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sort_texts_of_times_have_the_order_of_the_times() {
        let times = [i64::MIN, -1_000_000, -1, 0, 1, 9, 10, 1_767_225_600_000, i64::MAX];
        let texts: Vec<String> = times.into_iter().map(|at| sort_time(Timestamp(at))).collect();
        assert!(texts.is_sorted() && texts.iter().all(|text| text.len() == 16), "{texts:?}");
    }

    #[test]
    fn a_prefix_ends_before_the_next_text_without_it() {
        for (prefix, end) in [
            ("", None),
            ("a", Some("b")),
            ("a/", Some("a0")),
            ("a\u{d7ff}", Some("a\u{e000}")),
            ("a\u{10ffff}", Some("b")),
            ("a\u{10ffff}\u{10ffff}", Some("b")),
            ("\u{10ffff}", None),
            ("z\0", Some("z\u{1}")),
        ] {
            assert_eq!(prefix_end(prefix).as_deref(), end, "{prefix:?}");
        }
    }

    #[test]
    fn a_long_sort_text_is_cut_at_the_end_of_a_character() {
        let key = IndexKey::new(Index::State, "é".repeat(1000));
        assert_eq!(key.sort().len(), MAX_SORT_BYTES);
        let key = IndexKey::new(Index::State, format!("x{}", "é".repeat(1000)));
        assert_eq!(key.sort().len(), MAX_SORT_BYTES - 1);
    }

    #[test]
    fn index_names_are_unique_and_equal_their_serialized_form() {
        let mut names: Vec<_> = Index::ALL.into_iter().map(Index::name).collect();
        for index in Index::ALL {
            assert_eq!(serde_json::to_string(&index).unwrap(), format!("\"{}\"", index.name()));
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Index::ALL.len());
    }
}
