//! Removes credentials from answers, because an API may echo the credential of the request.
//! Invariant: no header and no body of an answer contains a secret value of its request. Values that are shorter than
//! `MIN_SECRET_LENGTH` bytes are not removed.

use base::{Response, Secret};
use memchr::memmem;

/// The length in bytes from which a secret value is replaced. Shorter values occur in ordinary text, so replacing them
/// would damage most answers.
const MIN_SECRET_LENGTH: usize = 6;
const REPLACEMENT: &str = "[secret]";

/// Replaces every occurrence of the values in the headers and the body, in each encoding that `echoed_forms` lists.
pub(crate) fn redact(answer: &mut Response, values: &[Secret]) {
    for value in values.iter().map(Secret::expose).filter(|value| value.len() >= MIN_SECRET_LENGTH) {
        for form in echoed_forms(value) {
            replace_in_body(&mut answer.body, form.as_bytes());
            for (_, text) in answer.headers.iter_mut().filter(|(_, text)| text.contains(&form)) {
                *text = text.replace(&form, REPLACEMENT);
            }
        }
    }
}

/// Returns the encodings in which an API could echo a value: plain; as the text of a JSON string, with slashes escaped
/// or not; and percent-encoded as in a URL or a form, with hex digits in upper or lower case.
fn echoed_forms(value: &str) -> Vec<String> {
    let json = serde_json::Value::from(value).to_string();
    let json = json.trim_matches('"').to_owned();
    let json_with_escaped_slashes = json.replace('/', "\\/");
    let form: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
    let percent = form.replace('+', "%20");
    let form_lower = with_lower_case_hex(&form);
    let percent_lower = with_lower_case_hex(&percent);
    let mut forms = vec![value.to_owned(), json, json_with_escaped_slashes, form_lower, percent_lower, form, percent];
    // The longest form is replaced first. A shorter form may be a part of a longer form. If the shorter form were
    // replaced first, the other part of the longer form would stay in the answer.
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.dedup();
    forms
}

/// Returns the text with the hex digits of percent-encoded bytes, such as `%2F`, in lower case. Other letters keep
/// their case.
fn with_lower_case_hex(text: &str) -> String {
    let mut parts = text.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |result, part| {
        let (digits, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        result + "%" + &digits.to_ascii_lowercase() + rest
    })
}

fn replace_in_body(body: &mut Vec<u8>, value: &[u8]) {
    let occurrences: Vec<usize> = memmem::find_iter(body, value).collect();
    // Most answers contain no credential. They are not copied.
    if occurrences.is_empty() {
        return;
    }
    let mut redacted = Vec::with_capacity(body.len());
    let mut copied_to = 0;
    for offset in occurrences {
        redacted.extend_from_slice(&body[copied_to..offset]);
        redacted.extend_from_slice(REPLACEMENT.as_bytes());
        copied_to = offset + value.len();
    }
    redacted.extend_from_slice(&body[copied_to..]);
    *body = redacted;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_echo_in_headers_and_body_is_replaced() {
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
    fn an_echo_in_a_url_or_with_escaped_slashes_is_replaced() {
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
