//! The type `Needles`: the texts that stand for a secret in a decoded body, and the search for all of them at once.
//! Invariant: base64 of a text that contains a secret contains one of the needles, whatever comes before the secret.

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// The total length of all needles up to which the faster automaton is built. It needs up to a kilobyte for each byte
/// of a needle.
const MAX_DFA_BYTES: usize = 4 * 1024;

pub struct Needles {
    /// Finds out whether a text contains a needle at all. Almost no text does, and this automaton is the fastest one.
    any: Option<AhoCorasick>,
    /// Finds all needles, also those that overlap.
    all: Option<AhoCorasick>,
    /// Whether each needle is a part of base64 text.
    is_base64: Vec<bool>,
}

impl Needles {
    pub fn new(values: &[&str]) -> Self {
        let mut needles: Vec<(Vec<u8>, bool)> = Vec::new();
        for value in values {
            needles.extend(forms(value));
        }
        needles.sort();
        // If a needle is in the list both as base64 and as another form, the entry for base64, which is replaced with
        // its neighbours, is the later one and is kept.
        needles.reverse();
        needles.dedup_by(|later, earlier| later.0 == earlier.0);
        let total: usize = needles.iter().map(|(bytes, _)| bytes.len()).sum();
        let kind = (total <= MAX_DFA_BYTES).then_some(AhoCorasickKind::DFA);
        // Building fails only for more than two gigabytes of needles, which the limits for secrets exclude.
        let build = |matches: MatchKind, kind| {
            let patterns = needles.iter().map(|(bytes, _)| bytes);
            AhoCorasickBuilder::new().match_kind(matches).kind(kind).build(patterns).ok()
        };
        Self {
            any: build(MatchKind::LeftmostFirst, None),
            all: build(MatchKind::Standard, kind),
            is_base64: needles.iter().map(|(_, is_base64)| *is_base64).collect(),
        }
    }

    /// Calls `found` with the range of each occurrence, including overlapping ones.
    pub fn find(&self, text: &[u8], mut found: impl FnMut(usize, usize)) {
        if self.any.as_ref().is_some_and(|any| !any.is_match(text)) {
            return;
        }
        let Some(all) = &self.all else { return };
        let mut last: Option<(usize, usize)> = None;
        for occurrence in all.find_overlapping_iter(text) {
            let (mut start, mut end) = (occurrence.start(), occurrence.end());
            if self.is_base64.get(occurrence.pattern().as_usize()) == Some(&true) {
                // The characters beside the needle contain some bits of the secret and some of its neighbours.
                let is_digit = |byte: Option<&u8>| {
                    byte.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_'))
                };
                start -= usize::from(start > 0 && is_digit(text.get(start - 1)));
                end += usize::from(is_digit(text.get(end)));
            }
            // Occurrences that overlap are joined here, because a text of one repeated character has one at each byte.
            last = Some(match last {
                Some((from, to)) if start < to => (from.min(start), to.max(end)),
                Some((from, to)) => {
                    found(from, to);
                    (start, end)
                }
                None => (start, end),
            });
        }
        if let Some((from, to)) = last {
            found(from, to);
        }
    }
}

/// Returns the needles of a value: the value, the value as a form writes it after percent decoding (a space is `+`), its
/// bytes in hexadecimal digits, and the inner part of its base64 text for each of the three offsets that it may have
/// in the encoded bytes. The flag says whether the needle is base64.
fn forms(value: &str) -> Vec<(Vec<u8>, bool)> {
    let bytes = value.as_bytes();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let plain = [value.to_owned(), value.replace(' ', "+"), hex.to_ascii_uppercase(), hex];
    let mut forms: Vec<(Vec<u8>, bool)> = plain.into_iter().map(|text| (text.into_bytes(), false)).collect();
    for offset in 0..3 {
        let padded = [&[0; 2][..offset], bytes].concat();
        // A character of base64 has six bits. The characters that have bits of other bytes too are left out.
        let first = (offset * 8).div_ceil(6);
        let last = padded.len() * 8 / 6;
        for text in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            forms.extend(text.get(first..last).map(|inner| (inner.as_bytes().to_vec(), true)));
        }
    }
    forms
}
