//! Takes credentials out of answers: an API that echoes what it was sent must not carry them further.
//! Invariant: no value that a call was signed with leaves this crate in a header or body of its answer.

use base::{Response, Secret};
use memchr::memmem;

/// Shorter values would be found everywhere, and guard nothing.
const SHORTEST: usize = 6;
const MARK: &[u8] = b"[secret]";

pub(crate) fn redact(answer: &mut Response, values: &[Secret]) {
    for value in values.iter().map(Secret::expose).filter(|value| value.len() >= SHORTEST) {
        for form in forms(value) {
            replace(&mut answer.body, form.as_bytes());
            for (_, text) in answer.headers.iter_mut().filter(|(_, text)| text.contains(&form)) {
                *text = text.replace(&form, "[secret]");
            }
        }
    }
}

/// As it is; inside a JSON string, with slashes escaped or not; in a URL or a form, in digits of either case. Each where it is
/// another one.
fn forms(value: &str) -> Vec<String> {
    let json = serde_json::Value::from(value).to_string();
    let json = json.trim_matches('"').to_owned();
    let slashed = json.replace('/', "\\/");
    let form: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
    let percent = form.replace('+', "%20");
    let lower = |text: &str| {
        let mut parts = text.split('%');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |all, part| {
            let (digits, rest) = part.split_at_checked(2).unwrap_or((part, ""));
            all + "%" + &digits.to_ascii_lowercase() + rest
        })
    };
    let mut forms = vec![value.to_owned(), json, slashed, lower(&form), lower(&percent), form, percent];
    // The longest first, or what is left of one would not be found.
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.dedup();
    forms
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

    #[test]
    fn an_echo_in_a_url_or_with_escaped_slashes_is_taken_out() {
        let secret = "ab/cd+ef== gh";
        let link = "https://a.example/?key=ab%2Fcd%2Bef%3D%3D+gh&next=ab%2fcd%2bef%3d%3d%20gh";
        let headers = vec![("link".to_owned(), link.to_owned())];
        let body = format!(r#"{{"self": "{link}", "key": "ab\/cd+ef== gh", "raw": "{secret}"}}"#).into_bytes();
        let mut answer = Response { status: 200, headers, body };
        redact(&mut answer, &[Secret::new(secret)]);
        let clean = "https://a.example/?key=[secret]&next=[secret]";
        assert_eq!(answer.headers[0].1, clean);
        let body = String::from_utf8(answer.body).unwrap();
        assert_eq!(body, format!(r#"{{"self": "{clean}", "key": "[secret]", "raw": "[secret]"}}"#));
    }
}
