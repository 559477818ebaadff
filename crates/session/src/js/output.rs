//! Console output in pieces.
//! Invariant: a piece that is full never changes; a page reads only the pieces it touches and never splits a character.

use base::{ExecutionId, TenantId};
use ports::store::{Expect, Write};

use crate::engine::rows::{Printed, output_key};
use crate::engine::view::{OutputPage, OutputRequest};
use crate::error::Error;
use crate::error::JsError;
use crate::service::Service;
use access::Caller;

/// Of one piece. The last one is written again as it grows.
const PIECE_BYTES: usize = 16 * 1024;
/// Of one page, unless its caller asks for more or for one longer line.
const PAGE_BYTES: u64 = 24 * 1024;
const PAGE_LINES: u64 = 1_000;

impl Printed {
    /// Adds what a step printed; `tail` is the last piece. The pieces that changed, by number.
    pub fn append(&mut self, tail: &mut String, text: &str) -> Vec<(usize, String)> {
        let (mut changed, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            if self.pieces.is_empty() || tail.len() >= PIECE_BYTES {
                self.pieces.push((self.bytes, self.ends));
                tail.clear();
            }
            let room = PIECE_BYTES.saturating_sub(tail.len()).max(4);
            let (now, later) = rest.split_at(floor(rest, room.min(rest.len())));
            tail.push_str(now);
            self.bytes += now.len() as u64;
            self.ends += now.bytes().filter(|byte| *byte == b'\n').count() as u64;
            self.open = !now.ends_with('\n');
            let number = self.pieces.len() - 1;
            changed.retain(|(known, _)| *known != number);
            changed.push((number, tail.clone()));
            rest = later;
        }
        changed
    }

    /// The piece that holds this byte, or the last one.
    fn piece_at(&self, byte: u64) -> usize {
        self.pieces.partition_point(|(start, _)| *start <= byte).saturating_sub(1)
    }

    /// The piece in which this line begins.
    fn piece_of_line(&self, line: u64) -> usize {
        self.pieces.partition_point(|(_, ends)| *ends < line).saturating_sub(1)
    }
}

/// The largest boundary of a character at or below this.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

pub(super) fn piece_writes(tenant: &TenantId, id: ExecutionId, changed: Vec<(usize, String)>) -> Vec<Write> {
    let put = |(number, text): (usize, String)| Write::Put {
        key: output_key(tenant, id, number),
        value: text.into_bytes(),
        expect: Expect::Any,
    };
    changed.into_iter().map(put).collect()
}

/// Text from the start of one piece.
struct Window {
    text: String,
    byte: u64,
    /// Line feeds before it.
    line: u64,
}

impl Service {
    pub async fn execution_output(
        &self,
        caller: &Caller,
        id: &str,
        asked: &OutputRequest,
    ) -> Result<OutputPage, Error> {
        if asked.line_offset.or(asked.line_limit).is_some() && asked.byte_offset.or(asked.byte_limit).is_some() {
            return Err(JsError::Either("line_offset", "byte_offset").into());
        }
        let (id, row) = self.execution_row(caller, id).await?;
        let printed = row.row.output;
        if asked.byte_offset.or(asked.byte_limit).is_some() {
            return self.by_bytes(caller, id, &printed, asked).await;
        }
        self.by_lines(caller, id, &printed, asked).await
    }

    async fn by_bytes(
        &self,
        caller: &Caller,
        id: ExecutionId,
        printed: &Printed,
        asked: &OutputRequest,
    ) -> Result<OutputPage, Error> {
        let from = asked.byte_offset.unwrap_or(0).min(printed.bytes);
        let limit = asked.byte_limit.unwrap_or(PAGE_BYTES).max(1);
        let to = from.saturating_add(limit).min(printed.bytes);
        let window = self.window(caller, id, printed, (printed.piece_at(from), to)).await?;
        let start = floor(&window.text, (from - window.byte) as usize);
        let mut end = floor(&window.text, (to - window.byte) as usize);
        if end <= start {
            // Less than one character was asked for: it is given whole, so that who pages goes on.
            end = window.text[start..].chars().next().map_or(start, |c| start + c.len_utf8());
        }
        Ok(page(printed, &window, start, end))
    }

    async fn by_lines(
        &self,
        caller: &Caller,
        id: ExecutionId,
        printed: &Printed,
        asked: &OutputRequest,
    ) -> Result<OutputPage, Error> {
        let from = asked.line_offset.unwrap_or(0).min(printed.lines());
        let most = asked.line_limit.unwrap_or(PAGE_LINES).max(1);
        let first = printed.piece_of_line(from);
        let start_byte = printed.pieces.get(first).map_or(0, |(byte, _)| *byte);
        let mut reach = start_byte + 2 * PAGE_BYTES;
        loop {
            let window = self.window(caller, id, printed, (first, reach.min(printed.bytes))).await?;
            let whole = window.byte + window.text.len() as u64 >= printed.bytes;
            let Some(start) = line_start(&window.text, from - window.line) else {
                if whole {
                    return Ok(page(printed, &window, window.text.len(), window.text.len()));
                }
                reach += 4 * PAGE_BYTES;
                continue;
            };
            match lines_end(&window.text[start..], most, whole) {
                Some(length) => return Ok(page(printed, &window, start, start + length)),
                // One line that is longer than a page.
                None => reach += 4 * PAGE_BYTES,
            }
        }
    }

    /// The pieces from this one on, as far as this byte.
    async fn window(
        &self,
        caller: &Caller,
        id: ExecutionId,
        printed: &Printed,
        (first, to): (usize, u64),
    ) -> Result<Window, Error> {
        let (byte, line) = printed.pieces.get(first).copied().unwrap_or_default();
        let mut text = String::new();
        for number in first..printed.pieces.len() {
            if byte + text.len() as u64 > to || (number > first && byte + text.len() as u64 == to) {
                break;
            }
            let key = output_key(&caller.tenant, id, number);
            let found = self.ports.store.get(&key).await?.ok_or_else(|| Error::Damaged(key.id.clone()))?;
            text.push_str(std::str::from_utf8(&found.value).map_err(|_| Error::Damaged(key.id.clone()))?);
        }
        Ok(Window { text, byte, line })
    }

    /// The last piece, for a run that is taken up again.
    pub(super) async fn output_tail(
        &self,
        tenant: &TenantId,
        id: ExecutionId,
        printed: &Printed,
    ) -> Result<String, Error> {
        let Some(last) = printed.pieces.len().checked_sub(1) else { return Ok(String::new()) };
        let key = output_key(tenant, id, last);
        let found = self.ports.store.get(&key).await?.ok_or_else(|| Error::Damaged(key.id.clone()))?;
        String::from_utf8(found.value).map_err(|_| Error::Damaged(key.id))
    }
}

fn page(printed: &Printed, window: &Window, start: usize, end: usize) -> OutputPage {
    let before = |at: usize| window.text[..at].bytes().filter(|byte| *byte == b'\n').count() as u64;
    let next_byte_offset = window.byte + end as u64;
    // A line that was cut is read again by whoever pages by lines; one without its end is over when the output is.
    let ended = next_byte_offset >= printed.bytes;
    OutputPage {
        data: window.text[start..end].to_owned(),
        next_line_offset: if ended { printed.lines() } else { window.line + before(end) },
        next_byte_offset,
        total_lines: printed.lines(),
        total_bytes: printed.bytes,
        dropped_bytes: printed.dropped,
        has_more: !ended,
    }
}

/// Where the line after so many line feeds begins.
fn line_start(text: &str, skip: u64) -> Option<usize> {
    if skip == 0 {
        return Some(0);
    }
    let nth = usize::try_from(skip - 1).ok()?;
    text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').nth(nth).map(|(at, _)| at + 1)
}

/// How many bytes the next lines take: as many as a page holds, at least one.
fn lines_end(text: &str, most: u64, whole: bool) -> Option<usize> {
    let (mut end, mut lines) = (0, 0);
    for (at, _) in text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n') {
        if lines == most || (lines > 0 && at as u64 >= PAGE_BYTES) {
            return Some(end);
        }
        (end, lines) = (at + 1, lines + 1);
    }
    if whole && lines < most && (lines == 0 || (text.len() as u64) < PAGE_BYTES) {
        end = text.len();
    } else if lines == 0 {
        return None;
    }
    Some(end)
}
