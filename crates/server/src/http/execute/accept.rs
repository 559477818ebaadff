//! The format of an answer, from the `Accept` header.
//! Invariant: the format is JSON if the header is missing or accepts anything. A request that accepts only unknown formats is
//! refused before anything runs.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};

use crate::http::problem::Problem;

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerFormat {
    Json,
    /// One JSON line for each row, and one for the rest.
    Lines,
    /// The text that a model would read.
    Text,
}

impl<S: Send + Sync> FromRequestParts<S> for AnswerFormat {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let values = parts.headers.get_all(header::ACCEPT).iter();
        let accepted: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
        preferred_format(&accepted.join(",")).ok_or_else(|| {
            let detail = "answers are application/json, application/x-ndjson or text/plain; say one of them in Accept";
            Problem::new(StatusCode::NOT_ACCEPTABLE, "not_acceptable", detail)
        })
    }
}

/// Returns the known format with the highest weight (RFC 9110 section 12.5.1). Of several with that weight the first is returned.
fn preferred_format(accept: &str) -> Option<AnswerFormat> {
    let mut best: Option<(f32, AnswerFormat)> = None;
    let mut has_ranges = false;
    for range in accept.split(',').map(str::trim).filter(|range| !range.is_empty()) {
        has_ranges = true;
        let mut parts = range.split(';').map(str::trim);
        let format = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
            "application/json" | "application/*" | "*/*" => AnswerFormat::Json,
            "application/x-ndjson" | "application/jsonl" | "application/x-jsonlines" => AnswerFormat::Lines,
            "text/plain" | "text/markdown" | "text/*" => AnswerFormat::Text,
            _ => continue,
        };
        let weight =
            parts.find_map(|part| part.strip_prefix("q=")).map_or(1.0, |weight| weight.parse::<f32>().unwrap_or(0.0));
        if weight > 0.0 && best.is_none_or(|(best_weight, _)| weight > best_weight) {
            best = Some((weight, format));
        }
    }
    if has_ranges { best.map(|(_, format)| format) } else { Some(AnswerFormat::Json) }
}

#[cfg(test)]
mod tests {
    use super::{AnswerFormat, preferred_format};

    #[test]
    fn the_known_format_with_the_highest_weight_wins() {
        for (accept, expected) in [
            ("", Some(AnswerFormat::Json)),
            ("*/*", Some(AnswerFormat::Json)),
            ("text/plain", Some(AnswerFormat::Text)),
            ("text/html, application/xhtml+xml, */*;q=0.8", Some(AnswerFormat::Json)),
            ("application/json;q=0.1, application/x-ndjson", Some(AnswerFormat::Lines)),
            ("text/plain;q=0, application/json;q=0.2", Some(AnswerFormat::Json)),
            ("image/png", None),
            ("text/plain;q=0", None),
        ] {
            assert_eq!(preferred_format(accept), expected, "{accept}");
        }
    }
}
