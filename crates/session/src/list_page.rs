//! Pages of lists: bounded in rows and bytes, with the place where the next page begins.
//! Invariant: a page that is not the last has at least one row, however large, so that paging always makes progress.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use base::{Limits, Timestamp};

/// A request for a page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// The `next` of the page before. `None` asks for the first page.
    pub after: Option<String>,
    /// The number of rows that the caller wants. The limits of the server may allow less.
    pub limit: Option<usize>,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage<T> {
    pub rows: Vec<T>,
    /// The number of rows of the whole list.
    pub total: u64,
    /// The `after` of a request for the next page. `None` on the last page.
    pub next: Option<String>,
}

impl<T> ListPage<T> {
    /// Returns the page with each row converted.
    pub fn map<U>(self, convert: impl FnMut(T) -> U) -> ListPage<U> {
        ListPage { rows: self.rows.into_iter().map(convert).collect(), total: self.total, next: self.next }
    }
}

/// Collects the rows of a page until it is full.
pub(crate) struct PageBuilder<T> {
    rows: Vec<T>,
    /// The name of the last row, which the next page begins after.
    last: Option<String>,
    /// The bytes of the rows so far.
    bytes: usize,
    max_rows: usize,
    max_bytes: usize,
    /// A row did not fit, so there is another page.
    full: bool,
}

impl<T> PageBuilder<T> {
    pub fn new(limits: &Limits, request: &ListRequest) -> Self {
        let max_rows = request.limit.unwrap_or(limits.list_rows).clamp(1, limits.list_rows);
        Self { rows: Vec::new(), last: None, bytes: 0, max_rows, max_bytes: limits.list_bytes, full: false }
    }

    /// Adds a row under its name in the list, or closes the page if the row does not fit.
    pub fn push(&mut self, name: &str, bytes: usize, row: T) {
        if self.full {
            return;
        }
        let too_many = self.rows.len() >= self.max_rows;
        let too_large = !self.rows.is_empty() && self.bytes.saturating_add(bytes) > self.max_bytes;
        if too_many || too_large {
            self.full = true;
            return;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.last = Some(name.to_owned());
        self.rows.push(row);
    }

    /// Returns whether the page has room for a row of this size, which then counts as added.
    pub fn takes(&mut self, bytes: usize) -> bool
    where
        T: Default,
    {
        self.push("", bytes, T::default());
        !self.full
    }

    /// Returns whether the page takes no more rows.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Returns the page. `total` counts the rows of the whole list.
    pub fn finish(self, total: u64) -> ListPage<T> {
        ListPage { next: self.last.filter(|_| self.full), rows: self.rows, total }
    }
}

/// Keeps the newest rows of a list that is stored in another order, and counts the others.
pub(crate) struct NewestFirst<T> {
    /// The rows so far by time. The number tells rows of the same time apart, the earlier one first.
    rows: BTreeMap<(Reverse<Timestamp>, u64), T>,
    most: usize,
    seen: u64,
}

impl<T> NewestFirst<T> {
    pub fn new(most: usize) -> Self {
        Self { rows: BTreeMap::new(), most, seen: 0 }
    }

    pub fn push(&mut self, time: Timestamp, row: T) {
        self.rows.insert((Reverse(time), self.seen), row);
        self.seen += 1;
        if self.rows.len() > self.most {
            self.rows.pop_last();
        }
    }

    /// Returns the newest rows, the newest first, and the number of the others.
    pub fn finish(self) -> (Vec<T>, u64) {
        let omitted = self.seen - self.rows.len() as u64;
        (self.rows.into_values().collect(), omitted)
    }
}

/// Returns the length of a text as JSON, with its quotation marks.
pub(crate) fn json_length(text: &str) -> usize {
    let escaped = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..=31 => 6,
        _ => 1,
    });
    2 + escaped.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(limits: &Limits, limit: Option<usize>, sizes: &[usize]) -> ListPage<usize> {
        let mut builder = PageBuilder::new(limits, &ListRequest { after: None, limit });
        for (at, size) in sizes.iter().enumerate() {
            builder.push(&at.to_string(), *size, at);
        }
        builder.finish(sizes.len() as u64)
    }

    #[test]
    fn a_page_ends_before_the_row_that_does_not_fit_and_names_the_row_before_it() {
        let limits = Limits { list_rows: 3, list_bytes: 100, ..Limits::default() };
        assert_eq!(page(&limits, None, &[1, 1, 1]), ListPage { rows: vec![0, 1, 2], total: 3, next: None });
        assert_eq!(page(&limits, None, &[1; 4]), ListPage { rows: vec![0, 1, 2], total: 4, next: Some("2".into()) });
        assert_eq!(page(&limits, Some(9), &[1; 4]).rows.len(), 3, "the server's limit holds");
        assert_eq!(page(&limits, Some(1), &[1; 4]).next.as_deref(), Some("0"));
        assert_eq!(page(&limits, None, &[60, 41, 1]), ListPage { rows: vec![0], total: 3, next: Some("0".into()) });
        // A row that is too large for any page has a page of its own, and a small row after it does not jump the line.
        assert_eq!(page(&limits, None, &[500, 1]), ListPage { rows: vec![0], total: 2, next: Some("0".into()) });
        assert_eq!(page(&limits, None, &[]), ListPage { rows: vec![], total: 0, next: None });
    }

    #[test]
    fn the_newest_rows_are_kept_in_order_and_the_others_are_counted() {
        let mut newest = NewestFirst::new(2);
        for (time, row) in [(5, "a"), (9, "b"), (5, "c"), (1, "d"), (9, "e")] {
            newest.push(Timestamp(time), row);
        }
        assert_eq!(newest.finish(), (vec!["b", "e"], 3));
    }

    #[test]
    fn the_length_of_a_text_as_json_is_that_of_the_serializer() {
        for text in ["", "a\"b", "\u{0}\u{7f}\n\t\u{8}\u{c}\r\\", "žluť\u{1f600}"] {
            assert_eq!(json_length(text), serde_json::to_string(text).unwrap().len(), "{text:?}");
        }
    }
}
