//! Takes credentials out of answers: an API that echoes what it was sent must not carry them further.
//! Invariant: no value that a call was signed with leaves this crate in a header or body of its answer.

use base::{Response, Secret};
use memchr::memmem;

/// Shorter values would be found everywhere, and guard nothing.
const SHORTEST: usize = 6;
const MARK: &[u8] = b"[secret]";

pub(crate) fn redact(answer: &mut Response, values: &[Secret]) {
    for value in values.iter().map(Secret::expose).filter(|value| value.len() >= SHORTEST) {
        replace(&mut answer.body, value.as_bytes());
        // As it stands inside a JSON string, where that is another form.
        let escaped = serde_json::Value::from(value).to_string();
        let escaped = escaped.trim_matches('"');
        if escaped != value {
            replace(&mut answer.body, escaped.as_bytes());
        }
        for (_, text) in answer.headers.iter_mut().filter(|(_, text)| text.contains(value)) {
            *text = text.replace(value, "[secret]");
        }
    }
}

fn replace(body: &mut Vec<u8>, value: &[u8]) {
    let found: Vec<usize> = memmem::find_iter(body, value).collect();
    if found.is_empty() {
        return;
    }
    let mut out = Vec::with_capacity(body.len());
    let mut from = 0;
    for at in found {
        out.extend_from_slice(&body[from..at]);
        out.extend_from_slice(MARK);
        from = at + value.len();
    }
    out.extend_from_slice(&body[from..]);
    *body = out;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_echo_is_taken_out() {
        let body = br#"{"a": "bad Bearer sk-12345678", "b": "sk-12345678sk-12345678", "c": "q\"uote1"}"#.to_vec();
        let headers = vec![("x-echo".to_owned(), "Bearer sk-12345678".to_owned())];
        let mut answer = Response { status: 500, headers, body };
        redact(
            &mut answer,
            &[Secret::new("sk-12345678"), Secret::new("q\"uote1"), Secret::new("abc"), Secret::new("")],
        );
        let body = String::from_utf8(answer.body).unwrap();
        assert_eq!(body, r#"{"a": "bad Bearer [secret]", "b": "[secret][secret]", "c": "[secret]"}"#);
        assert_eq!(answer.headers[0].1, "Bearer [secret]");
    }
}
