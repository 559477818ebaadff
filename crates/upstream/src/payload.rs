//! Encodes the body of a request as JSON, a form, bytes or multipart, and selects its content type.
//! Invariant: no value can end its part of a multipart body or start another part, because the boundary occurs in no
//! value and names are escaped.

use base::{Digest, FormPart, Payload};
use reqwest::header::HeaderValue;

use crate::address::encode_pairs;

pub(crate) const JSON_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) const FORM_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// The error for a content type that is not a valid header value.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a valid content type for a request's body")]
pub(crate) struct NotAContentType(String);

/// The bytes of a request's body and its content type.
pub(crate) struct EncodedBody {
    pub bytes: Vec<u8>,
    pub content_type: HeaderValue,
}

/// Encodes a body.
pub(crate) fn encode(payload: &Payload) -> Result<EncodedBody, NotAContentType> {
    let (bytes, content_type) = match payload {
        Payload::Json { value, content_type: None } => (value.to_string().into_bytes(), JSON_CONTENT_TYPE),
        Payload::Json { value, content_type: Some(kind) } => {
            (value.to_string().into_bytes(), content_type_header(kind)?)
        }
        Payload::Form(pairs) => (encode_pairs(pairs).into_bytes(), FORM_CONTENT_TYPE),
        Payload::Bytes { content_type, bytes } => (bytes.clone(), content_type_header(content_type)?),
        Payload::Multipart(parts) => {
            let boundary = choose_boundary(parts);
            let kind = content_type_header(&format!("multipart/form-data; boundary={boundary}"))?;
            (encode_multipart(parts, &boundary)?, kind)
        }
    };
    Ok(EncodedBody { bytes, content_type })
}

fn content_type_header(text: &str) -> Result<HeaderValue, NotAContentType> {
    HeaderValue::from_str(text).map_err(|_| NotAContentType(text.escape_debug().to_string()))
}

fn encode_multipart(parts: &[FormPart], boundary: &str) -> Result<Vec<u8>, NotAContentType> {
    let mut out = Vec::new();
    for part in parts {
        let file =
            part.file_name.as_ref().map(|name| format!("; filename=\"{}\"", escape_quoted(name))).unwrap_or_default();
        let head =
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"{file}\r\n", escape_quoted(&part.name));
        out.extend_from_slice(head.as_bytes());
        if let Some(kind) = &part.content_type {
            out.extend_from_slice(b"Content-Type: ");
            out.extend_from_slice(content_type_header(kind)?.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&part.bytes);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok(out)
}

/// Escapes a name for quotes as browsers do: quotes and line breaks, which would end the name, are percent-encoded.
fn escape_quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

/// Returns a boundary that no part contains. The boundary is computed from the parts and is not random, so that a
/// request has the same bytes at each try.
fn choose_boundary(parts: &[FormPart]) -> String {
    let contents: Vec<u8> = parts.iter().flat_map(|part| part.bytes.iter().copied()).collect();
    let mut seed = Digest::of(&contents).to_string();
    loop {
        let boundary = Digest::of(seed.as_bytes()).to_string()[..32].to_owned();
        if memchr::memmem::find(&contents, boundary.as_bytes()).is_none() {
            return boundary;
        }
        seed = boundary;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_kind_of_body_has_its_content_type_and_bytes() {
        let form = Payload::Form(vec![("a".into(), "1&b=2".into()), ("c d".into(), "é".into())]);
        let encoded = encode(&form).unwrap();
        assert_eq!(String::from_utf8(encoded.bytes).unwrap(), "a=1%26b%3D2&c%20d=%C3%A9");
        assert_eq!(encoded.content_type, "application/x-www-form-urlencoded");
        let json = Payload::Json { value: json!({"a": 1}), content_type: Some("application/merge-patch+json".into()) };
        assert_eq!(encode(&json).unwrap().content_type, "application/merge-patch+json");
        let bad = Payload::Bytes { content_type: "text/plain\r\nX: y".into(), bytes: vec![] };
        assert!(encode(&bad).is_err());
    }

    #[test]
    fn no_value_can_end_its_part() {
        let part = |name: &str, bytes: &str, file: Option<&str>| FormPart {
            name: name.into(),
            file_name: file.map(str::to_owned),
            content_type: file.map(|_| "text/plain".to_owned()),
            bytes: bytes.as_bytes().to_vec(),
        };
        let parts = vec![part("a\"; x=\"\r\n", "--\r\n", None), part("f", "hello", Some("b\".txt"))];
        let encoded = encode(&Payload::Multipart(parts.clone())).unwrap();
        let text = String::from_utf8(encoded.bytes).unwrap();
        let boundary = choose_boundary(&parts);
        assert_eq!(text.matches(&boundary).count(), 3);
        assert!(text.contains("name=\"a%22; x=%22%0D%0A\"\r\n\r\n--\r\n\r\n"), "{text}");
        assert!(
            text.contains("name=\"f\"; filename=\"b%22.txt\"\r\nContent-Type: text/plain\r\n\r\nhello\r\n"),
            "{text}"
        );
    }
}
