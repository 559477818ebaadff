//! `application/x-www-form-urlencoded`: pairs, in their order.
//! Invariant: text that is not UTF-8 once decoded is refused, never replaced.

use percent_encoding::percent_decode;

use crate::error::ApiError;

pub fn pairs(body: &[u8]) -> Result<Vec<(String, String)>, ApiError> {
    let parts = body.split(|byte| *byte == b'&').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let cut = part.iter().position(|byte| *byte == b'=').unwrap_or(part.len());
            Ok((decoded(&part[..cut])?, decoded(part.get(cut + 1..).unwrap_or_default())?))
        })
        .collect()
}

fn decoded(part: &[u8]) -> Result<String, ApiError> {
    let spaced: Vec<u8> = part.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    let text = percent_decode(&spaced).decode_utf8();
    text.map(|text| text.into_owned()).map_err(|_| ApiError::BadBody { reason: "the form is not UTF-8".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_pairs() {
        let read = pairs(b"a=1+2&b=%C3%A9%2B&c&d==&&a=2").unwrap();
        let expected = [("a", "1 2"), ("b", "é+"), ("c", ""), ("d", "="), ("a", "2")];
        assert!(read.iter().map(|(name, value)| (name.as_str(), value.as_str())).eq(expected));
        assert!(pairs(b"a=%FF").is_err());
    }
}
