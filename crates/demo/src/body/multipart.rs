//! `multipart/form-data` (RFC 7578): its parts, whole in memory.
//! Invariant: the bytes of a part are those between its blank line and the next delimiter, whatever they hold.

use axum::body::Bytes;
use axum::http::HeaderMap;

use super::{MULTIPART, attribute, content_type, parameter};
use crate::error::ApiError;

pub struct Part {
    pub name: String,
    /// Present when the part is a file.
    pub file_name: Option<String>,
    pub content_type: Option<String>,
    pub body: Bytes,
}

pub fn parts(headers: &HeaderMap, body: &Bytes) -> Result<Vec<Part>, ApiError> {
    if content_type(headers) != MULTIPART {
        return Err(ApiError::WrongBodyType { expected: MULTIPART });
    }
    let boundary = parameter(headers, "boundary").ok_or_else(|| bad("no boundary"))?;
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    // The first delimiter has no line before it.
    let mut at = find(body, &delimiter[2..], 0).ok_or_else(|| bad("no first delimiter"))? + delimiter.len() - 2;
    let mut parts = Vec::new();
    while !body[at..].starts_with(b"--") {
        let head = find(body, b"\r\n", at).ok_or_else(|| bad("a delimiter without an end"))? + 2;
        let blank = find(body, b"\r\n\r\n", head).ok_or_else(|| bad("a part without a blank line"))?;
        let end = find(body, &delimiter, blank + 2).ok_or_else(|| bad("no last delimiter"))?;
        parts.push(part(&body[head..blank], body.slice((blank + 4).min(end)..end))?);
        at = end + delimiter.len();
    }
    Ok(parts)
}

fn part(head: &[u8], body: Bytes) -> Result<Part, ApiError> {
    let head = std::str::from_utf8(head).map_err(|_| bad("a part's head is not UTF-8"))?;
    let header = |wanted: &str| {
        let mut lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim().to_owned())
    };
    let disposition = header("content-disposition").ok_or_else(|| bad("a part without a disposition"))?;
    let name = attribute(&disposition, "name").ok_or_else(|| bad("a part without a name"))?;
    Ok(Part { name, file_name: attribute(&disposition, "filename"), content_type: header("content-type"), body })
}

fn find(body: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    let found = body.get(from..)?.windows(wanted.len()).position(|window| window == wanted);
    found.map(|at| at + from)
}

fn bad(reason: &str) -> ApiError {
    ApiError::BadBody { reason: format!("the multipart body has {reason}") }
}

#[cfg(test)]
mod tests {
    use axum::http::header::CONTENT_TYPE;

    use super::*;

    fn read(body: &[u8]) -> Result<Vec<Part>, ApiError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, "multipart/form-data; boundary=\"x y\"".parse().unwrap());
        parts(&headers, &Bytes::copy_from_slice(body))
    }

    #[test]
    fn parts_keep_their_bytes() {
        let body = b"preamble\r\n--x y\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhi\r\n--\r\n\r\n\
            --x y\r\ncontent-disposition: form-data; name=file; filename=\"a.bin\"\r\nContent-Type: a/b\r\n\r\n\0\xFF\r\n--x y--\r\n";
        let read = read(body).unwrap();
        assert_eq!((read[0].name.as_str(), &read[0].body[..]), ("note", &b"hi\r\n--\r\n"[..]));
        assert_eq!((read[1].file_name.as_deref(), read[1].content_type.as_deref()), (Some("a.bin"), Some("a/b")));
        assert_eq!(&read[1].body[..], b"\0\xFF");
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        for body in [
            &b""[..],
            b"--x y",
            b"--x y\r\n",
            b"--x y\r\nContent-Disposition: form-data; name=a\r\n\r\nb",
            b"--x y\r\n\r\n\r\n--x y--",
        ] {
            assert!(read(body).is_err(), "{body:?}");
        }
        assert!(read(b"--x y--").unwrap().is_empty());
    }
}
