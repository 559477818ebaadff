//! What a guest leaves for us to read, read with doubt.

use ports::scripts::{Call, Completion, HostCall, Thrown};
use serde_json::Value;

use super::host::Cut;

/// Bytes of a result, and of each part of an error. What is longer is cut, and says so: a run may hold as much as its memory
/// takes, but what it comes to is stored, sent and read by a model.
pub const RESULT_MOST: usize = 1 << 20;
const THROWN_MOST: usize = 16 << 10;

const ENDS: Cut = Cut::Lied("what it says ends too early");

/// A call that a guest says we owe it an answer to.
#[derive(Debug, Clone, PartialEq)]
pub struct Owed {
    pub id: u64,
    kind: u32,
    argument: String,
}

/// Bytes left to read.
pub struct Said<'a>(pub &'a [u8]);

impl Said<'_> {
    pub fn u32(&mut self) -> Result<u32, Cut> {
        let (head, rest) = self.0.split_first_chunk().ok_or(ENDS)?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*head))
    }

    pub fn u64(&mut self) -> Result<u64, Cut> {
        let (head, rest) = self.0.split_first_chunk().ok_or(ENDS)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*head))
    }

    /// JavaScript's strings may hold halves of characters; they are replaced.
    pub fn text(&mut self) -> Result<String, Cut> {
        let length = self.u32()? as usize;
        let (head, rest) = self.0.split_at_checked(length).ok_or(ENDS)?;
        self.0 = rest;
        Ok(String::from_utf8_lossy(head).into_owned())
    }

    /// At most so many bytes of a text, and how many there are beyond.
    pub fn bounded(&mut self, most: usize) -> Result<String, Cut> {
        let length = self.u32()? as usize;
        let (head, rest) = self.0.split_at_checked(length).ok_or(ENDS)?;
        self.0 = rest;
        if length <= most {
            return Ok(String::from_utf8_lossy(head).into_owned());
        }
        // A character that is cut in two at the end is no character.
        let kept = String::from_utf8_lossy(&head[..most]);
        let kept = kept.trim_end_matches('\u{fffd}');
        Ok(format!("{kept}… [{} bytes more; at most {most} are kept]", length - kept.len()))
    }

    /// A result in JSON, unless it is too long to be one.
    pub fn result(&mut self) -> Result<Completion, Cut> {
        let whole = Said(self.0).u32()? as usize <= RESULT_MOST;
        let text = self.bounded(RESULT_MOST)?;
        let value = if whole { json(&text) } else { None };
        Ok(value.map_or(Completion::Inspected(text), Completion::Json))
    }

    pub fn thrown(&mut self) -> Result<Thrown, Cut> {
        let (name, message, stack) =
            (self.bounded(THROWN_MOST)?, self.bounded(THROWN_MOST)?, self.bounded(THROWN_MOST)?);
        Ok(Thrown { name, message, stack: stack.trim_end().to_owned() })
    }

    pub fn owed(&mut self) -> Result<Owed, Cut> {
        Ok(Owed { id: self.u64()?, kind: self.u32()?, argument: self.text()? })
    }
}

impl Owed {
    #[cfg(test)]
    pub fn sample(id: u64, program: &str) -> Self {
        Self { id, kind: 1, argument: program.to_owned() }
    }

    pub fn call(&self) -> Result<HostCall, Cut> {
        let argument = serde_json::from_str(&self.argument).unwrap_or_else(|_| Value::String(self.argument.clone()));
        let call = match self.kind {
            0 => Call::Timer { ms: milliseconds(argument.get("ms").unwrap_or(&argument)) },
            1 => Call::Plasm { program: program(argument)? },
            2 => Call::Plan { program: program(argument)? },
            3 => Call::Fetch { request: request(argument) },
            _ => return Err(Cut::Lied("an unknown kind of call")),
        };
        Ok(HostCall { id: self.id, call })
    }
}

/// As browsers have it: what is no number or negative is 0.
fn milliseconds(value: &Value) -> u64 {
    value.as_f64().filter(|ms| *ms > 0.0).map_or(0, |ms| ms.ceil() as u64)
}

fn request(argument: Value) -> Value {
    match argument {
        Value::Object(mut fields) if fields.contains_key("request") => fields.remove("request").unwrap_or_default(),
        other => other,
    }
}

fn program(argument: Value) -> Result<String, Cut> {
    match argument {
        Value::String(program) => Ok(program),
        Value::Object(mut fields) => match fields.remove("program") {
            Some(Value::String(program)) => Ok(program),
            _ => Err(Cut::Lied("a call without a program")),
        },
        _ => Err(Cut::Lied("a call without a program")),
    }
}

/// JSON as JavaScript writes it: halves of characters are escapes there, which our reader refuses.
fn json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| serde_json::from_str(&without_halves(text)).ok())
}

fn without_halves(text: &str) -> String {
    let mut rest = text;
    let mut whole = String::with_capacity(text.len());
    while let Some(at) = rest.find('\\') {
        whole.push_str(&rest[..at]);
        let escape = &rest[at..];
        let code = |from: usize| escape.get(from..from + 4).and_then(|hex| u16::from_str_radix(hex, 16).ok());
        let length = match escape.as_bytes().get(1) {
            Some(b'u') => match code(2) {
                Some(0xd800..=0xdbff)
                    if escape.get(6..8) == Some("\\u") && matches!(code(8), Some(0xdc00..=0xdfff)) =>
                {
                    12
                }
                Some(0xd800..=0xdfff) => {
                    whole.push('\u{fffd}');
                    rest = &escape[6..];
                    continue;
                }
                _ => 6,
            },
            _ => 2,
        };
        let end = escape.ceil_char_boundary(length.min(escape.len()));
        whole.push_str(&escape[..end]);
        rest = &escape[end..];
    }
    whole + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_characters_are_replaced() {
        let said = r#"["\ud83d\ude00","\ud83d","a\\ud83d","\udc00b"]"#;
        assert_eq!(json(said), Some(serde_json::json!(["\u{1f600}", "\u{fffd}", "a\\ud83d", "\u{fffd}b"])));
        assert_eq!(json("{"), None);
    }

    #[test]
    fn a_text_is_cut_between_two_characters() {
        let said = |text: &str| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
        assert_eq!(Said(&said("äöü")).bounded(6).unwrap(), "äöü");
        assert_eq!(Said(&said("äöü")).bounded(5).unwrap(), "äö… [2 bytes more; at most 5 are kept]");
        let long = format!("\"{}\"", "x".repeat(RESULT_MOST));
        assert!(matches!(Said(&said(&long)).result(), Ok(Completion::Inspected(text)) if text.ends_with(" are kept]")));
        assert!(matches!(Said(&said("[1]")).result(), Ok(Completion::Json(_))));
    }

    #[test]
    fn what_ends_early_is_a_lie() {
        for bytes in [&[][..], &[1, 0, 0], &[5, 0, 0, 0, b'a'], &[255, 255, 255, 255]] {
            assert!(Said(bytes).text().is_err(), "{bytes:?}");
        }
        assert!(Said(&[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]).owed().unwrap().call().is_err());
    }
}
