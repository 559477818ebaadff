//! The type `Redactor`: removes credentials from answers, because an API may echo a credential that it received.
//!
//! An echo is found after decoding, so each character of the credential may be written in its own way: as it is, with a
//! JSON escape, percent-encoded, or as an HTML entity. An echo in base64 or hexadecimal digits is found at any offset.
//! Encodings may be nested as `views` lists them.
//!
//! Invariants:
//! - No header and no body of an answer contains a credential in one of these forms.
//! - The work is linear in the size of the answer, whatever the answer contains.

mod escapes;
mod needles;
mod sent;
#[cfg(test)]
mod tests;

use base::Response;

use escapes::{Escapes, View};
use needles::Needles;
pub(crate) use sent::SentSecrets;

/// The smallest number of characters of a secret that signs requests. A shorter value occurs in ordinary text, so it
/// could not be removed from answers without damage.
pub(crate) const MIN_SECRET_CHARS: usize = 6;
const REPLACEMENT: &[u8] = b"[secret]";

/// Finds and removes the values of some secrets.
pub struct Redactor {
    needles: Needles,
    /// The values in lower case, for names of headers, which HTTP changes to lower case.
    lower_case_values: Vec<String>,
}

impl Redactor {
    /// Returns a redactor for these values. A value that is shorter than six characters is not removed.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let values: Vec<&str> = values.into_iter().filter(|value| value.chars().count() >= MIN_SECRET_CHARS).collect();
        let lower_case_values = values.iter().map(|value| value.to_ascii_lowercase()).collect();
        Self { needles: Needles::new(&values), lower_case_values }
    }

    /// Removes the values from the headers and the body of an answer. A header whose name contains a value is removed.
    pub(crate) fn redact(&self, answer: &mut Response) {
        self.redact_bytes(&mut answer.body);
        answer.headers.retain(|(name, _)| !self.lower_case_values.iter().any(|value| name.contains(value.as_str())));
        for (_, value) in &mut answer.headers {
            self.redact_text(value);
        }
    }

    /// Replaces each occurrence of a value in a text.
    pub fn redact_text(&self, text: &mut String) {
        let mut bytes = std::mem::take(text).into_bytes();
        self.redact_bytes(&mut bytes);
        // An occurrence consists of whole characters, so the rest is still UTF-8.
        *text = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    }

    /// Returns whether a text contains a value.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        let mut redacted = text.to_owned();
        self.redact_text(&mut redacted);
        redacted != text
    }

    /// Replaces each occurrence of a value in bytes.
    pub fn redact_bytes(&self, bytes: &mut Vec<u8>) {
        let mut found = Vec::new();
        self.search(View { text: bytes, layers: &[] }, Budget::START, &mut found);
        // Most answers contain no credential. They are not copied.
        if !found.is_empty() {
            *bytes = replace(bytes, merge(found));
        }
    }

    /// Searches one view of a body and all views that are decoded from it.
    fn search(&self, view: View<'_>, budget: Budget, found: &mut Vec<Occurrence>) {
        self.needles.find(view.text, |start, end| found.push(view.raw_range(start, end)));
        for (decode, rest) in budget.steps() {
            let Some((text, escapes)) = decode(view.text) else { continue };
            let layers: Vec<&Escapes> = view.layers.iter().copied().chain([&escapes]).collect();
            self.search(View { text: &text, layers: &layers }, rest, found);
        }
    }
}

/// A range of the raw bytes that must be replaced.
type Occurrence = std::ops::Range<usize>;

/// The decodings that may still be applied to a view.
#[derive(Debug, Clone, Copy)]
struct Budget {
    /// Whether JSON escapes may be decoded in addition to `any`. A body is often JSON, and its strings often contain
    /// text in two further encodings.
    json: bool,
    /// The number of further decodings of any kind.
    any: u8,
}

/// A function that decodes one kind of escape. It returns `None` if the text has no such escape.
type Decode = fn(&[u8]) -> Option<(Vec<u8>, Escapes)>;

impl Budget {
    const START: Self = Self { json: true, any: 2 };
    const END: Self = Self { json: false, any: 0 };

    /// Returns each decoding that may follow, with the budget after it.
    fn steps(self) -> Vec<(Decode, Self)> {
        let mut steps: Vec<(Decode, Self)> = Vec::new();
        if self.json {
            steps.push((escapes::json, Self { json: false, ..self }));
        } else if self.any > 0 {
            steps.push((escapes::json, Self { json: false, any: self.any - 1 }));
        }
        if self.any > 0 {
            let rest = Self { json: false, any: self.any - 1 };
            steps.push((escapes::percent, rest));
            steps.push((escapes::html, rest));
            // Line breaks inside of base64 text are removed last, because no other escape contains one.
            steps.push((escapes::line_breaks, Self::END));
        }
        steps
    }
}

/// Returns the ranges in ascending order, with overlapping ranges joined.
fn merge(mut found: Vec<Occurrence>) -> Vec<Occurrence> {
    found.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Occurrence> = Vec::with_capacity(found.len());
    for range in found {
        match merged.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

fn replace(bytes: &[u8], ranges: Vec<Occurrence>) -> Vec<u8> {
    let mut redacted = Vec::with_capacity(bytes.len());
    let mut copied_to = 0;
    for range in ranges {
        redacted.extend_from_slice(bytes.get(copied_to..range.start).unwrap_or_default());
        redacted.extend_from_slice(REPLACEMENT);
        copied_to = range.end;
    }
    redacted.extend_from_slice(bytes.get(copied_to..).unwrap_or_default());
    redacted
}
