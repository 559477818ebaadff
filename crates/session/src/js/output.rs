//! Console output, stored in pieces.
//! Invariant: a full piece never changes; reading a page reads only the pieces it touches, and never splits a
//! character.

use access::Caller;
use base::{ExecutionId, TenantId};
use ports::store::{Expect, Write};

use crate::engine::rows::{OutputIndex, output_key};
use crate::engine::view::{OutputPage, OutputRequest};
use crate::error::Error;
use crate::error::JsError;
use crate::service::Service;

/// The size of a piece. The last piece is rewritten as it grows.
const PIECE_BYTES: usize = 16 * 1024;
/// The size of a page, unless its caller requests more or a single line is longer.
const PAGE_BYTES: u64 = 24 * 1024;
const PAGE_LINES: u64 = 1_000;

impl OutputIndex {
    /// Adds the output of a step. `tail` is the last piece. Returns the pieces that changed, by number.
    pub fn append(&mut self, tail: &mut String, text: &str) -> Vec<(usize, String)> {
        let mut changed = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if self.pieces.is_empty() || tail.len() >= PIECE_BYTES {
                self.pieces.push((self.bytes, self.ends));
                tail.clear();
            }
            // At least four bytes, so that one character always fits and the loop makes progress.
            let room = PIECE_BYTES.saturating_sub(tail.len()).max(4);
            let (fitting, later) = rest.split_at(char_boundary_at_or_below(rest, room.min(rest.len())));
            tail.push_str(fitting);
            self.bytes += fitting.len() as u64;
            self.ends += line_feeds(fitting);
            self.open = !fitting.ends_with('\n');
            let number = self.pieces.len() - 1;
            changed.retain(|(known, _)| *known != number);
            changed.push((number, tail.clone()));
            rest = later;
        }
        changed
    }

    /// Returns the piece that holds this byte, or the last piece.
    fn piece_at(&self, byte: u64) -> usize {
        self.pieces.partition_point(|(start, _)| *start <= byte).saturating_sub(1)
    }

    /// Returns the piece in which this line begins.
    fn piece_of_line(&self, line: u64) -> usize {
        self.pieces.partition_point(|(_, ends)| *ends < line).saturating_sub(1)
    }
}

/// Returns the last character boundary at or below `at`.
fn char_boundary_at_or_below(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Returns the writes of changed pieces. They expect no version, because the run's row in the same transaction is
/// written by the run's owner alone.
pub(super) fn piece_writes(tenant: &TenantId, id: ExecutionId, changed: Vec<(usize, String)>) -> Vec<Write> {
    let mut writes = Vec::new();
    for (number, text) in changed {
        let key = output_key(tenant, id, number);
        writes.push(Write::Put { key, value: text.into_bytes(), expect: Expect::Any });
    }
    writes
}

/// Text from the beginning of a piece.
struct Window {
    text: String,
    /// The position of the text in the whole output.
    byte: u64,
    /// The number of line feeds before the text.
    line: u64,
}

impl Service {
    /// Reads a page of a run's output, by lines or by bytes.
    pub async fn execution_output(
        &self,
        caller: &Caller,
        id: &str,
        request: &OutputRequest,
    ) -> Result<OutputPage, Error> {
        if request.line_offset.or(request.line_limit).is_some() && request.byte_offset.or(request.byte_limit).is_some()
        {
            return Err(JsError::Either("line_offset", "byte_offset").into());
        }
        let (id, row) = self.execution_row(caller, id).await?;
        let index = row.row.output;
        if request.byte_offset.or(request.byte_limit).is_some() {
            return self.page_by_bytes(caller, id, &index, request).await;
        }
        self.page_by_lines(caller, id, &index, request).await
    }

    async fn page_by_bytes(
        &self,
        caller: &Caller,
        id: ExecutionId,
        index: &OutputIndex,
        request: &OutputRequest,
    ) -> Result<OutputPage, Error> {
        let from = request.byte_offset.unwrap_or(0).min(index.bytes);
        let limit = request.byte_limit.unwrap_or(PAGE_BYTES).clamp(1, self.limits.list_bytes as u64);
        let to = from.saturating_add(limit).min(index.bytes);
        let window = self.window(caller, id, index, index.piece_at(from), to).await?;
        let start = char_boundary_at_or_below(&window.text, (from - window.byte) as usize);
        let mut end = char_boundary_at_or_below(&window.text, (to - window.byte) as usize);
        if end <= start {
            // A limit below one character returns that character, so that paging always makes progress.
            end = window.text[start..].chars().next().map_or(start, |character| start + character.len_utf8());
        }
        Ok(page(index, &window, start, end))
    }

    async fn page_by_lines(
        &self,
        caller: &Caller,
        id: ExecutionId,
        index: &OutputIndex,
        request: &OutputRequest,
    ) -> Result<OutputPage, Error> {
        let from = request.line_offset.unwrap_or(0).min(index.lines());
        let max_lines = request.line_limit.unwrap_or(PAGE_LINES).max(1);
        let first = index.piece_of_line(from);
        let start_byte = index.pieces.get(first).map_or(0, |(byte, _)| *byte);
        // Line ends are found only by reading, so a window of two pages is tried first and grows until it holds the
        // first line of the page.
        let mut reach = start_byte + 2 * PAGE_BYTES;
        loop {
            let window = self.window(caller, id, index, first, reach.min(index.bytes)).await?;
            let is_last_window = window.byte + window.text.len() as u64 >= index.bytes;
            let Some(start) = line_start(&window.text, from - window.line) else {
                if is_last_window {
                    return Ok(page(index, &window, window.text.len(), window.text.len()));
                }
                reach += 4 * PAGE_BYTES;
                continue;
            };
            match lines_end(&window.text[start..], max_lines, is_last_window) {
                Some(length) => return Ok(page(index, &window, start, start + length)),
                // A line is longer than the window.
                None => reach += 4 * PAGE_BYTES,
            }
        }
    }

    /// Returns the text from a piece's beginning up to a byte.
    async fn window(
        &self,
        caller: &Caller,
        id: ExecutionId,
        index: &OutputIndex,
        first: usize,
        to: u64,
    ) -> Result<Window, Error> {
        let (byte, line) = index.pieces.get(first).copied().unwrap_or_default();
        let mut text = String::new();
        for number in first..index.pieces.len() {
            if byte + text.len() as u64 > to || (number > first && byte + text.len() as u64 == to) {
                break;
            }
            let key = output_key(&caller.tenant, id, number);
            let found = self.ports.store.get(&key).await?.ok_or_else(|| Error::Damaged(key.id.clone()))?;
            text.push_str(std::str::from_utf8(&found.value).map_err(|_| Error::Damaged(key.id.clone()))?);
        }
        Ok(Window { text, byte, line })
    }

    /// Returns the last piece, from which a resumed run continues.
    pub(super) async fn output_tail(
        &self,
        tenant: &TenantId,
        id: ExecutionId,
        index: &OutputIndex,
    ) -> Result<String, Error> {
        let Some(last) = index.pieces.len().checked_sub(1) else { return Ok(String::new()) };
        let key = output_key(tenant, id, last);
        let found = self.ports.store.get(&key).await?.ok_or_else(|| Error::Damaged(key.id.clone()))?;
        String::from_utf8(found.value).map_err(|_| Error::Damaged(key.id))
    }
}

/// Returns the part of a window between two of its positions, with the offsets of the next page.
fn page(index: &OutputIndex, window: &Window, start: usize, end: usize) -> OutputPage {
    let next_byte_offset = window.byte + end as u64;
    // Paging by lines reads a cut line again from its start. The last line, which may lack a line feed, counts as
    // complete at the end of the output.
    let ended = next_byte_offset >= index.bytes;
    OutputPage {
        data: window.text[start..end].to_owned(),
        next_line_offset: if ended { index.lines() } else { window.line + line_feeds(&window.text[..end]) },
        next_byte_offset,
        total_lines: index.lines(),
        total_bytes: index.bytes,
        dropped_bytes: index.dropped,
        has_more: !ended,
    }
}

/// Counts the line feeds in a text.
fn line_feeds(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

/// Returns the position after this many line feeds.
fn line_start(text: &str, skip: u64) -> Option<usize> {
    if skip == 0 {
        return Some(0);
    }
    let nth = usize::try_from(skip - 1).ok()?;
    text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').nth(nth).map(|(at, _)| at + 1)
}

/// Returns the length of the next lines: at least one line, at most `max_lines` lines and about a page of bytes. `None` if
/// the first line has no end yet.
fn lines_end(text: &str, max_lines: u64, is_last_window: bool) -> Option<usize> {
    let mut end = 0;
    let mut lines = 0;
    for (at, _) in text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n') {
        if lines == max_lines || (lines > 0 && at as u64 >= PAGE_BYTES) {
            return Some(end);
        }
        end = at + 1;
        lines += 1;
    }
    if is_last_window && lines < max_lines && (lines == 0 || (text.len() as u64) < PAGE_BYTES) {
        end = text.len();
    } else if lines == 0 {
        return None;
    }
    Some(end)
}
