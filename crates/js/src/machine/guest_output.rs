//! Decodes the output that a guest writes into its memory for the host: results, errors and pending calls.
//! Invariant: the output of a guest is not trusted. Every length is checked, and texts that are stored or shown are cut
//! at a limit.

use ports::scripts::{Call, Completion, HostCall, Thrown};
use serde_json::Value;

use super::host::GuestError;

/// The largest result of a script in bytes. A result is stored, sent and read by a model, so a longer result is cut and
/// ends with a note about the missing bytes.
pub const MAX_RESULT_BYTES: usize = 1 << 20;
/// The largest name, message or stack of a thrown error, in bytes.
const MAX_THROWN_BYTES: usize = 16 << 10;

const TRUNCATED_OUTPUT: GuestError = GuestError::Invalid("the output of the guest ends too early");

/// A pending call of a script, as the guest describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct GuestCall {
    pub id: u64,
    /// The number of the call's kind, as defined in `guest/state.h`.
    kind: u32,
    /// The argument of the call: JSON, or the bare text of a program.
    argument: String,
}

/// Reads values from the beginning of a guest's output. Numbers are little-endian. A text is its length in bytes and
/// then its bytes.
pub struct OutputReader<'a>(pub &'a [u8]);

impl OutputReader<'_> {
    pub fn u32(&mut self) -> Result<u32, GuestError> {
        let (head, rest) = self.0.split_first_chunk().ok_or(TRUNCATED_OUTPUT)?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*head))
    }

    pub fn u64(&mut self) -> Result<u64, GuestError> {
        let (head, rest) = self.0.split_first_chunk().ok_or(TRUNCATED_OUTPUT)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*head))
    }

    /// Reads a text. Half of a surrogate pair, which a JavaScript string may contain, becomes a replacement character.
    pub fn text(&mut self) -> Result<String, GuestError> {
        let length = self.u32()? as usize;
        let (head, rest) = self.0.split_at_checked(length).ok_or(TRUNCATED_OUTPUT)?;
        self.0 = rest;
        Ok(String::from_utf8_lossy(head).into_owned())
    }

    /// Reads a text. A text that is longer than `limit` bytes is cut and ends with a note about the number of missing
    /// bytes.
    pub fn bounded_text(&mut self, limit: usize) -> Result<String, GuestError> {
        let length = self.u32()? as usize;
        let (head, rest) = self.0.split_at_checked(length).ok_or(TRUNCATED_OUTPUT)?;
        self.0 = rest;
        if length <= limit {
            return Ok(String::from_utf8_lossy(head).into_owned());
        }
        // The limit may cut a character in two. The first part then decodes to a replacement character, which is
        // removed.
        let kept = String::from_utf8_lossy(&head[..limit]);
        let kept = kept.trim_end_matches('\u{fffd}');
        Ok(format!("{kept}… [{} bytes more; at most {limit} are kept]", length - kept.len()))
    }

    /// Reads a result in JSON. A result above [`MAX_RESULT_BYTES`] is returned as text, because JSON that was cut is
    /// invalid.
    pub fn completion(&mut self) -> Result<Completion, GuestError> {
        let is_complete = OutputReader(self.0).u32()? as usize <= MAX_RESULT_BYTES;
        let text = self.bounded_text(MAX_RESULT_BYTES)?;
        let value = if is_complete { parse_json(&text) } else { None };
        Ok(value.map_or(Completion::Inspected(text), Completion::Json))
    }

    pub fn thrown(&mut self) -> Result<Thrown, GuestError> {
        let name = self.bounded_text(MAX_THROWN_BYTES)?;
        let message = self.bounded_text(MAX_THROWN_BYTES)?;
        let stack = self.bounded_text(MAX_THROWN_BYTES)?;
        Ok(Thrown { name, message, stack: stack.trim_end().to_owned() })
    }

    pub fn call(&mut self) -> Result<GuestCall, GuestError> {
        Ok(GuestCall { id: self.u64()?, kind: self.u32()?, argument: self.text()? })
    }
}

impl GuestCall {
    #[cfg(test)]
    pub fn sample(id: u64, program: &str) -> Self {
        Self { id, kind: 1, argument: program.to_owned() }
    }

    pub fn to_host_call(&self) -> Result<HostCall, GuestError> {
        let argument = serde_json::from_str(&self.argument).unwrap_or_else(|_| Value::String(self.argument.clone()));
        let call = match self.kind {
            0 => Call::Timer { ms: milliseconds(argument.get("ms").unwrap_or(&argument)) },
            1 => Call::Plasm { program: program(argument)? },
            2 => Call::Plan { program: program(argument)? },
            3 => Call::Fetch { request: request(argument) },
            _ => return Err(GuestError::Invalid("the script made a call of an unknown kind")),
        };
        Ok(HostCall { id: self.id, call })
    }
}

/// Returns the delay of a timer in milliseconds. As in browsers, a value that is negative or not a number counts as 0.
fn milliseconds(value: &Value) -> u64 {
    value.as_f64().filter(|ms| *ms > 0.0).map_or(0, |ms| ms.ceil() as u64)
}

fn request(argument: Value) -> Value {
    match argument {
        Value::Object(mut fields) if fields.contains_key("request") => fields.remove("request").unwrap_or_default(),
        other => other,
    }
}

fn program(argument: Value) -> Result<String, GuestError> {
    match argument {
        Value::String(program) => Ok(program),
        Value::Object(mut fields) => match fields.remove("program") {
            Some(Value::String(program)) => Ok(program),
            _ => Err(GuestError::Invalid("the script made a call without a program")),
        },
        _ => Err(GuestError::Invalid("the script made a call without a program")),
    }
}

/// Parses JSON that JavaScript wrote. JavaScript writes half of a surrogate pair as an escape, which `serde_json`
/// refuses, so such escapes are replaced.
fn parse_json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| serde_json::from_str(&replace_lone_surrogates(text)).ok())
}

/// Replaces each escape of half a surrogate pair in JSON by the replacement character. All other escapes stay.
fn replace_lone_surrogates(text: &str) -> String {
    let mut rest = text;
    let mut replaced = String::with_capacity(text.len());
    while let Some(at) = rest.find('\\') {
        replaced.push_str(&rest[..at]);
        let escape = &rest[at..];
        let code_unit = |from: usize| escape.get(from..from + 4).and_then(|hex| u16::from_str_radix(hex, 16).ok());
        let length = match escape.as_bytes().get(1) {
            Some(b'u') => match code_unit(2) {
                Some(0xd800..=0xdbff)
                    if escape.get(6..8) == Some("\\u") && matches!(code_unit(8), Some(0xdc00..=0xdfff)) =>
                {
                    12
                }
                Some(0xd800..=0xdfff) => {
                    replaced.push('\u{fffd}');
                    rest = &escape[6..];
                    continue;
                }
                _ => 6,
            },
            _ => 2,
        };
        let end = escape.ceil_char_boundary(length.min(escape.len()));
        replaced.push_str(&escape[..end]);
        rest = &escape[end..];
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced() {
        let text = r#"["\ud83d\ude00","\ud83d","a\\ud83d","\udc00b"]"#;
        assert_eq!(parse_json(text), Some(serde_json::json!(["\u{1f600}", "\u{fffd}", "a\\ud83d", "\u{fffd}b"])));
        assert_eq!(parse_json("{"), None);
    }

    #[test]
    fn a_text_is_cut_between_two_characters() {
        let output = |text: &str| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
        assert_eq!(OutputReader(&output("äöü")).bounded_text(6).unwrap(), "äöü");
        assert_eq!(OutputReader(&output("äöü")).bounded_text(5).unwrap(), "äö… [2 bytes more; at most 5 are kept]");
        let long = format!("\"{}\"", "x".repeat(MAX_RESULT_BYTES));
        assert!(matches!(
            OutputReader(&output(&long)).completion(),
            Ok(Completion::Inspected(text)) if text.ends_with(" are kept]")
        ));
        assert!(matches!(OutputReader(&output("[1]")).completion(), Ok(Completion::Json(_))));
    }

    #[test]
    fn output_that_ends_early_is_refused() {
        for bytes in [&[][..], &[1, 0, 0], &[5, 0, 0, 0, b'a'], &[255, 255, 255, 255]] {
            assert!(OutputReader(bytes).text().is_err(), "{bytes:?}");
        }
        let unknown_kind = [1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0];
        assert!(OutputReader(&unknown_kind).call().unwrap().to_host_call().is_err());
    }
}
