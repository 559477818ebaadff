//! Forms: `application/x-www-form-urlencoded`, `multipart/form-data` (RFC 7578), and the route that opens a ticket from either.
//! Invariants: a form opens the same ticket as the JSON route with the same fields. Text that is not UTF-8 is refused. The content of a
//! part is exactly the bytes between its blank line and the next delimiter.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use demo::{ApiError, Fields, UncheckedQuery, WriteRequest, content_type, open_ticket};
use percent_encoding::percent_decode;
use serde_json::{Map, Value};

use crate::error::HandlerResult;
use crate::state::{ApiState, TestApi};

pub const FORM: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";

pub fn routes() -> Router<Arc<TestApi>> {
    Router::new().route("/forms/tickets", post(create_ticket))
}

async fn create_ticket(State(api): ApiState, query: UncheckedQuery, request: WriteRequest) -> HandlerResult {
    query.none()?;
    let pairs = match content_type(&request.headers).as_str() {
        FORM => parse_form(&request.body)?,
        MULTIPART => text_parts(&request.headers, &request.body)?,
        _ => return Err(ApiError::WrongBodyType { expected: FORM }.into()),
    };
    let mut fields = Fields::new(json_fields(pairs));
    let answer = request.apply_once(&api.tracker, |data| {
        let key = fields.required_text("project", usize::MAX);
        match key.filter(|key| data.world.project(key).is_some()) {
            Some(key) => open_ticket(data, &key, fields),
            None => {
                // In a form the project is one of the fields, so an unknown project is the mistake of a field and not a 404.
                if !fields.is_refused("project") {
                    fields.refuse::<()>("project", "must be the key of a project");
                }
                Err(fields.into_error())
            }
        }
    })?;
    Ok(answer)
}

/// Converts the pairs of a form to the JSON fields of a ticket. A form has only text: a number is written in digits, and a list repeats
/// its field. If another field is repeated, its last value is used.
fn json_fields(pairs: Vec<(String, String)>) -> Map<String, Value> {
    let mut fields = Map::new();
    for (name, value) in pairs {
        if name == "labels" {
            let labels = fields.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(labels) = labels {
                labels.push(value.into());
            }
            continue;
        }
        let number = if name == "priority" { value.parse::<u64>().ok() } else { None };
        fields.insert(name, number.map_or_else(|| value.into(), Value::from));
    }
    fields
}

/// Parses a urlencoded form to pairs of name and value, in their order.
pub fn parse_form(body: &[u8]) -> Result<Vec<(String, String)>, ApiError> {
    let pairs = body.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let name_end = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
            let value = pair.get(name_end + 1..).unwrap_or_default();
            Ok((decode_text(&pair[..name_end])?, decode_text(value)?))
        })
        .collect()
}

fn decode_text(encoded: &[u8]) -> Result<String, ApiError> {
    let with_spaces: Vec<u8> = encoded.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    let text = percent_decode(&with_spaces).decode_utf8();
    text.map(|text| text.into_owned()).map_err(|_| ApiError::BadBody { reason: "the form is not UTF-8".to_owned() })
}

/// A part of a multipart body.
pub struct Part {
    pub name: String,
    /// The file name, which only a part with a file has.
    pub file_name: Option<String>,
    pub content_type: Option<String>,
    pub body: Bytes,
}

/// Parses a multipart body to its parts.
pub fn parse_multipart(headers: &HeaderMap, body: &Bytes) -> Result<Vec<Part>, ApiError> {
    if content_type(headers) != MULTIPART {
        return Err(ApiError::WrongBodyType { expected: MULTIPART });
    }
    let boundary = boundary(headers).ok_or_else(|| bad_multipart("no boundary"))?;
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    // The first delimiter has no line break before it.
    let first = find(body, &delimiter[2..], 0).ok_or_else(|| bad_multipart("no first delimiter"))?;
    let mut position = first + delimiter.len() - 2;
    let mut parts = Vec::new();
    // The last delimiter ends with two hyphens.
    while !body[position..].starts_with(b"--") {
        let head = find(body, b"\r\n", position).ok_or_else(|| bad_multipart("a delimiter without an end"))? + 2;
        let blank = find(body, b"\r\n\r\n", head).ok_or_else(|| bad_multipart("a part without a blank line"))?;
        let end = find(body, &delimiter, blank + 2).ok_or_else(|| bad_multipart("no last delimiter"))?;
        // The delimiter of an empty body begins inside of the blank line.
        let content = body.slice((blank + 4).min(end)..end);
        parts.push(parse_part(&body[head..blank], content)?);
        position = end + delimiter.len();
    }
    Ok(parts)
}

fn parse_part(head: &[u8], body: Bytes) -> Result<Part, ApiError> {
    let head = std::str::from_utf8(head).map_err(|_| bad_multipart("a part's head is not UTF-8"))?;
    let header = |wanted: &str| {
        let mut lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim().to_owned())
    };
    let disposition = header("content-disposition").ok_or_else(|| bad_multipart("a part without a disposition"))?;
    let name = attribute(&disposition, "name").ok_or_else(|| bad_multipart("a part without a name"))?;
    Ok(Part { name, file_name: attribute(&disposition, "filename"), content_type: header("content-type"), body })
}

/// Parses a multipart body in which every part is text, to pairs of name and text.
fn text_parts(headers: &HeaderMap, body: &Bytes) -> Result<Vec<(String, String)>, ApiError> {
    let not_text = |_| ApiError::BadBody { reason: "a part is not UTF-8".to_owned() };
    let pair = |part: Part| Ok((part.name, String::from_utf8(part.body.to_vec()).map_err(not_text)?));
    parse_multipart(headers, body)?.into_iter().map(pair).collect()
}

fn boundary(headers: &HeaderMap) -> Option<String> {
    attribute(headers.get(CONTENT_TYPE)?.to_str().ok()?, "boundary")
}

/// Returns the attribute `name` of a header such as `kind; name=value; other="quoted value"`.
fn attribute(header: &str, name: &str) -> Option<String> {
    let mut rest = header.split_once(';')?.1;
    loop {
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let (value, remaining) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => {
                after.split_once(';').map_or((after.trim_end(), ""), |(value, remaining)| (value.trim_end(), remaining))
            }
        };
        if key.trim_matches([';', ' ', '\t']).eq_ignore_ascii_case(name) {
            return Some(value.to_owned());
        }
        rest = remaining;
    }
}

/// Returns the first position of `wanted` that is not before `from`.
fn find(body: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    let position = body.get(from..)?.windows(wanted.len()).position(|window| window == wanted);
    position.map(|position| position + from)
}

fn bad_multipart(reason: &str) -> ApiError {
    ApiError::BadBody { reason: format!("the multipart body has {reason}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_decoded_to_pairs_in_order() {
        let pairs = parse_form(b"a=1+2&b=%C3%A9%2B&c&d==&&a=2").unwrap();
        let expected = [("a", "1 2"), ("b", "é+"), ("c", ""), ("d", "="), ("a", "2")];
        assert!(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).eq(expected));
        assert!(parse_form(b"a=%FF").is_err());
    }

    #[test]
    fn attributes_may_be_quoted() {
        let header = "form-data; name=\"a;b\"; filename=\"c=d.txt\"; x = y ";
        assert_eq!(attribute(header, "name").as_deref(), Some("a;b"));
        assert_eq!(attribute(header, "filename").as_deref(), Some("c=d.txt"));
        assert_eq!(attribute(header, "X").as_deref(), Some("y"));
        assert_eq!(attribute(header, "nope"), None);
        assert_eq!(attribute("form-data", "name"), None);
    }

    fn parse(body: &[u8]) -> Result<Vec<Part>, ApiError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, "multipart/form-data; boundary=\"x y\"".parse().unwrap());
        parse_multipart(&headers, &Bytes::copy_from_slice(body))
    }

    #[test]
    fn parts_keep_their_bytes() {
        let body = b"preamble\r\n--x y\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhi\r\n--\r\n\r\n\
            --x y\r\ncontent-disposition: form-data; name=file; filename=\"a.bin\"\r\nContent-Type: a/b\r\n\r\n\0\xFF\r\n--x y--\r\n";
        let parts = parse(body).unwrap();
        assert_eq!((parts[0].name.as_str(), &parts[0].body[..]), ("note", &b"hi\r\n--\r\n"[..]));
        assert_eq!((parts[1].file_name.as_deref(), parts[1].content_type.as_deref()), (Some("a.bin"), Some("a/b")));
        assert_eq!(&parts[1].body[..], b"\0\xFF");
    }

    #[test]
    fn a_multipart_body_that_is_cut_off_is_refused() {
        for body in [
            &b""[..],
            b"--x y",
            b"--x y\r\n",
            b"--x y\r\nContent-Disposition: form-data; name=a\r\n\r\nb",
            b"--x y\r\n\r\n\r\n--x y--",
        ] {
            assert!(parse(body).is_err(), "{body:?}");
        }
        assert!(parse(b"--x y--").unwrap().is_empty());
    }
}
