//! Encodes the difference of two pages before compression, and decodes it after decompression. The difference is a list
//! of runs. A run is a range of words of eight bytes that differ.
//! Invariant: a run that ends outside the page, or that begins before the end of the previous run, is refused.
//!
//! Equal words are left out before compression. A step changes about forty pages, and a few words in each page.
//! Compressing whole pages with zeros for the equal words would take three times as long as hashing the pages, and
//! reading them would take as long again.
//!
//! The difference of a page has these bytes: the number of runs (2 bytes); for each run the number of its first word
//! and its length in words (2 and 2 bytes); then the words of all runs, new XOR old. Numbers are big-endian.

use super::PAGE_BYTES;

pub(super) type PageBytes = [u8; PAGE_BYTES];

const WORD_BYTES: usize = 8;
const WORDS_PER_PAGE: usize = PAGE_BYTES / WORD_BYTES;
/// A run includes gaps of up to this number of equal words. Equal words compress well, and a page full of new script
/// objects stays one run.
const MAX_GAP_WORDS: usize = 4;
/// The largest number of runs in a page: every run except the last run needs one word and a gap that is longer than
/// [`MAX_GAP_WORDS`].
const MAX_RUNS: usize = WORDS_PER_PAGE / (MAX_GAP_WORDS + 2) + 1;

/// Appends the encoded difference of two pages to `packed`.
pub(super) fn append_difference(packed: &mut Vec<u8>, old: &[u8], new: &[u8]) {
    let mut runs = [(0, 0); MAX_RUNS];
    let mut count = 0;
    for (at, (old, new)) in old.chunks_exact(WORD_BYTES).zip(new.chunks_exact(WORD_BYTES)).enumerate() {
        if old == new {
            continue;
        }
        match runs[..count].last_mut() {
            Some((_, end)) if at - *end <= MAX_GAP_WORDS => *end = at + 1,
            _ => {
                runs[count] = (at, at + 1);
                count += 1;
            }
        }
    }
    let runs = &runs[..count];
    packed.extend_from_slice(&(count as u16).to_be_bytes());
    for (start, end) in runs {
        packed.extend_from_slice(&(*start as u16).to_be_bytes());
        packed.extend_from_slice(&((end - start) as u16).to_be_bytes());
    }
    for (start, end) in runs {
        let bytes = start * WORD_BYTES..end * WORD_BYTES;
        packed.extend(old[bytes.clone()].iter().zip(&new[bytes]).map(|(old, new)| old ^ new));
    }
}

/// Decodes the difference of one page into `page`. `fill` copies the next encoded bytes into its argument. Returns
/// `None` if the bytes are not valid runs.
pub(super) fn read_difference<E>(
    page: &mut PageBytes,
    mut fill: impl FnMut(&mut [u8]) -> Result<(), E>,
) -> Result<Option<()>, E> {
    page.fill(0);
    let mut count = [0; 2];
    fill(&mut count)?;
    let mut table = [0; 4 * MAX_RUNS];
    let Some(table) = table.get_mut(..4 * usize::from(u16::from_be_bytes(count))) else { return Ok(None) };
    fill(table)?;
    let mut lowest_allowed = 0;
    for run in table.chunks_exact(4) {
        let start = usize::from(u16::from_be_bytes([run[0], run[1]]));
        let end = start + usize::from(u16::from_be_bytes([run[2], run[3]]));
        if start < lowest_allowed || end <= start || end > WORDS_PER_PAGE {
            return Ok(None);
        }
        fill(&mut page[start * WORD_BYTES..end * WORD_BYTES])?;
        lowest_allowed = end;
    }
    Ok(Some(()))
}

/// Replaces `page` by `page` XOR `other`. The old page XOR the difference is the new page.
pub(super) fn xor(page: &mut [u8], other: &[u8]) {
    page.iter_mut().zip(other).for_each(|(byte, other)| *byte ^= other);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(packed: &[u8]) -> Option<PageBytes> {
        let mut page = [7; PAGE_BYTES];
        let mut rest = packed;
        let read = read_difference(&mut page, |target| {
            let (taken, after) = rest.split_at_checked(target.len()).ok_or(())?;
            target.copy_from_slice(taken);
            rest = after;
            Ok::<(), ()>(())
        });
        read.ok().flatten().filter(|()| rest.is_empty()).map(|()| page)
    }

    #[test]
    fn every_pattern_of_changes_is_read_back() {
        let in_word = |at: usize| at % WORD_BYTES == 3;
        let patterns: [&dyn Fn(usize) -> bool; 8] = [
            &|_| false,
            &|_| true,
            &|at| at == 0,
            &|at| at == PAGE_BYTES - 1,
            // The largest number of runs; with the words one nearer to each other, they are one run.
            &|at| in_word(at) && (at / WORD_BYTES).is_multiple_of(MAX_GAP_WORDS + 2),
            &|at| in_word(at) && (at / WORD_BYTES).is_multiple_of(MAX_GAP_WORDS + 1),
            &|at| at % 500 < 3,
            &|at| (1000..3000).contains(&at),
        ];
        for (number, changes) in patterns.into_iter().enumerate() {
            let old: Vec<u8> = (0..PAGE_BYTES).map(|at| at as u8).collect();
            let new: Vec<u8> = (0..PAGE_BYTES).map(|at| at as u8 ^ if changes(at) { 0x55 } else { 0 }).collect();
            let mut packed = Vec::new();
            append_difference(&mut packed, &old, &new);
            let count = u16::from_be_bytes([packed[0], packed[1]]);
            assert_eq!(count, [0, 1, 1, 1, MAX_RUNS as u16, 1, 9, 1][number], "pattern {number}");
            let page = unpacked(&packed).unwrap_or_else(|| panic!("pattern {number}"));
            assert!((0..PAGE_BYTES).all(|at| page[at] == if changes(at) { 0x55 } else { 0 }), "pattern {number}");
        }
    }

    #[test]
    fn runs_out_of_order_or_outside_their_page_are_refused() {
        let page = |runs: &[(u16, u16)]| {
            let mut packed = (runs.len() as u16).to_be_bytes().to_vec();
            runs.iter().for_each(|(start, length)| {
                packed.extend_from_slice(&start.to_be_bytes());
                packed.extend_from_slice(&length.to_be_bytes());
            });
            let word_bytes: usize = runs.iter().map(|(_, length)| usize::from(*length) * WORD_BYTES).sum();
            packed.resize(packed.len() + word_bytes, 1);
            unpacked(&packed)
        };
        assert!(page(&[(0, 1), (1, 1), (511, 1)]).is_some());
        for wrong in
            [&[(511, 2)][..], &[(512, 1)], &[(3, 0)], &[(5, 1), (4, 1)], &[(5, 2), (6, 1)], &[(0xFFFF, 0xFFFF)]]
        {
            assert_eq!(page(wrong), None, "{wrong:?}");
        }
        let too_many: Vec<_> = (0..MAX_RUNS as u16 + 1).map(|at| (at, 1)).collect();
        assert_eq!(page(&too_many), None, "more runs than a page can have");
        assert_eq!(unpacked(&[0]), None, "half a number");
        assert_eq!(unpacked(&[0, 1, 0, 0, 0, 1, 9]), None, "a word that is cut off");
    }
}
