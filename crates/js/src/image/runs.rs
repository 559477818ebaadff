//! The differences of pages without what is the same, on their way into the compressor and out of it.
//! Invariant: what is read is within its page and in rising order, or it is refused.
//!
//! A step changes some forty pages in a few words each. Packed whole, with zeros where nothing changed, they cost the compressor
//! three times what their digests do, and whoever reads them as much again.
//!
//! For each page: how many runs (2 bytes); for each run where it begins and how long it is (2 and 2), counted in words of eight
//! bytes; then the words of all its runs, new XOR old. Numbers are big-endian.

use super::PAGE;

const WORD: usize = 8;
const WORDS: usize = PAGE / WORD;
/// A run goes on over so many words that are the same: they pack well, and a page of new objects stays in one piece.
const GAP: usize = 4;
/// Every run but the last one is a word and more than a gap.
const RUNS_MOST: usize = WORDS / (GAP + 2) + 1;

/// Appends what differs between two pages.
pub(super) fn add(packed: &mut Vec<u8>, old: &[u8], new: &[u8]) {
    let mut runs = [(0, 0); RUNS_MOST];
    let mut count = 0;
    for (at, (old, new)) in old.chunks_exact(WORD).zip(new.chunks_exact(WORD)).enumerate() {
        if old == new {
            continue;
        }
        match runs[..count].last_mut() {
            Some((_, end)) if at - *end <= GAP => *end = at + 1,
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
        let bytes = start * WORD..end * WORD;
        packed.extend(old[bytes.clone()].iter().zip(&new[bytes]).map(|(old, new)| old ^ new));
    }
}

/// Reads the difference of one page; `fill` gives the next bytes. `None`: these are no runs.
pub(super) fn read<E>(
    page: &mut [u8; PAGE],
    mut fill: impl FnMut(&mut [u8]) -> Result<(), E>,
) -> Result<Option<()>, E> {
    page.fill(0);
    let mut count = [0; 2];
    fill(&mut count)?;
    let mut table = [0; 4 * RUNS_MOST];
    let Some(table) = table.get_mut(..4 * usize::from(u16::from_be_bytes(count))) else { return Ok(None) };
    fill(table)?;
    let mut least = 0;
    for run in table.chunks_exact(4) {
        let start = usize::from(u16::from_be_bytes([run[0], run[1]]));
        let end = start + usize::from(u16::from_be_bytes([run[2], run[3]]));
        if start < least || end <= start || end > WORDS {
            return Ok(None);
        }
        fill(&mut page[start * WORD..end * WORD])?;
        least = end;
    }
    Ok(Some(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(packed: &[u8]) -> Option<[u8; PAGE]> {
        let (mut page, mut rest) = ([7; PAGE], packed);
        let read = read(&mut page, |into| {
            let (taken, after) = rest.split_at_checked(into.len()).ok_or(())?;
            into.copy_from_slice(taken);
            rest = after;
            Ok::<(), ()>(())
        });
        read.ok().flatten().filter(|()| rest.is_empty()).map(|()| page)
    }

    #[test]
    fn every_shape_of_a_page_comes_back() {
        let word = |at: usize| at % WORD == 3;
        let shapes: [&dyn Fn(usize) -> bool; 8] = [
            &|_| false,
            &|_| true,
            &|at| at == 0,
            &|at| at == PAGE - 1,
            // As many runs as there can be, and one word nearer, which is one run.
            &|at| word(at) && (at / WORD).is_multiple_of(GAP + 2),
            &|at| word(at) && (at / WORD).is_multiple_of(GAP + 1),
            &|at| at % 500 < 3,
            &|at| (1000..3000).contains(&at),
        ];
        for (number, shape) in shapes.into_iter().enumerate() {
            let old: Vec<u8> = (0..PAGE).map(|at| at as u8).collect();
            let new: Vec<u8> = (0..PAGE).map(|at| at as u8 ^ if shape(at) { 0x55 } else { 0 }).collect();
            let mut packed = Vec::new();
            add(&mut packed, &old, &new);
            let count = u16::from_be_bytes([packed[0], packed[1]]);
            assert_eq!(count, [0, 1, 1, 1, RUNS_MOST as u16, 1, 9, 1][number], "shape {number}");
            let page = back(&packed).unwrap_or_else(|| panic!("shape {number}"));
            assert!((0..PAGE).all(|at| page[at] == if shape(at) { 0x55 } else { 0 }), "shape {number}");
        }
    }

    #[test]
    fn runs_that_fall_or_leave_their_page_are_refused() {
        let page = |runs: &[(u16, u16)]| {
            let mut packed = (runs.len() as u16).to_be_bytes().to_vec();
            runs.iter().for_each(|(start, length)| {
                packed.extend_from_slice(&start.to_be_bytes());
                packed.extend_from_slice(&length.to_be_bytes());
            });
            packed.resize(packed.len() + runs.iter().map(|(_, length)| usize::from(*length) * WORD).sum::<usize>(), 1);
            back(&packed)
        };
        assert!(page(&[(0, 1), (1, 1), (511, 1)]).is_some());
        for wrong in
            [&[(511, 2)][..], &[(512, 1)], &[(3, 0)], &[(5, 1), (4, 1)], &[(5, 2), (6, 1)], &[(0xFFFF, 0xFFFF)]]
        {
            assert_eq!(page(wrong), None, "{wrong:?}");
        }
        let many: Vec<_> = (0..RUNS_MOST as u16 + 1).map(|at| (at, 1)).collect();
        assert_eq!(page(&many), None, "more runs than a page has");
        assert_eq!(back(&[0]), None, "half a number");
        assert_eq!(back(&[0, 1, 0, 0, 0, 1, 9]), None, "a word cut short");
    }
}
