//! Which form of an answer a caller wants.
//! Invariant: JSON where it does not say, or takes anything; a form that nobody here speaks is refused before anything runs.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};

use crate::http::problem::Problem;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Json,
    /// One line for each row, and one at the end.
    Lines,
    /// What a model would read.
    Text,
}

impl<S: Send + Sync> FromRequestParts<S> for Form {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let given: Vec<&str> = parts.headers.get_all(header::ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
        form(&given.join(",")).ok_or_else(|| {
            let detail = "answers are application/json, application/x-ndjson or text/plain; say one of them in Accept";
            Problem::new(StatusCode::NOT_ACCEPTABLE, "not_acceptable", detail)
        })
    }
}

/// The first of the ranges with the highest weight that is spoken here.
fn form(accept: &str) -> Option<Form> {
    let mut best: Option<(f32, Form)> = None;
    let mut asked = false;
    for range in accept.split(',').map(str::trim).filter(|range| !range.is_empty()) {
        asked = true;
        let mut parts = range.split(';').map(str::trim);
        let form = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
            "application/json" | "application/*" | "*/*" => Form::Json,
            "application/x-ndjson" | "application/jsonl" | "application/x-jsonlines" => Form::Lines,
            "text/plain" | "text/markdown" | "text/*" => Form::Text,
            _ => continue,
        };
        let weight = parts.find_map(|p| p.strip_prefix("q=")).map_or(1.0, |q| q.parse::<f32>().unwrap_or(0.0));
        if weight > 0.0 && best.is_none_or(|(most, _)| weight > most) {
            best = Some((weight, form));
        }
    }
    if asked { best.map(|(_, form)| form) } else { Some(Form::Json) }
}

#[cfg(test)]
mod tests {
    use super::{Form, form};

    #[test]
    fn the_heaviest_form_that_is_spoken_wins() {
        for (accept, expected) in [
            ("", Some(Form::Json)),
            ("*/*", Some(Form::Json)),
            ("text/plain", Some(Form::Text)),
            ("text/html, application/xhtml+xml, */*;q=0.8", Some(Form::Json)),
            ("application/json;q=0.1, application/x-ndjson", Some(Form::Lines)),
            ("text/plain;q=0, application/json;q=0.2", Some(Form::Json)),
            ("image/png", None),
            ("text/plain;q=0", None),
        ] {
            assert_eq!(form(accept), expected, "{accept}");
        }
    }
}
