//! Canonical JSON for digests, and a check of how deeply a JSON text is nested.
//! Invariant: equal values have equal canonical bytes, whatever the order of their keys; no function here recurses.

use serde_json::Value;

/// Writes compact JSON with sorted object keys. The function uses a loop instead of recursion, because a deeply
/// nested value would overflow the call stack.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    // This vector is used as a stack. Each branch pushes its parts in reverse order, so that the first part is on
    // top.
    let mut pending = vec![PendingPart::Value(value)];
    while let Some(item) = pending.pop() {
        match item {
            PendingPart::Text(text) => out.push_str(text),
            PendingPart::Key(key) => {
                push_json_string(&mut out, key);
                out.push(':');
            }
            PendingPart::Value(Value::Array(items)) => {
                pending.push(PendingPart::Text("]"));
                for (index, item) in items.iter().enumerate().rev() {
                    pending.push(PendingPart::Value(item));
                    pending.push(PendingPart::Text(if index == 0 { "[" } else { "," }));
                }
                if items.is_empty() {
                    pending.push(PendingPart::Text("["));
                }
            }
            PendingPart::Value(Value::Object(map)) => {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_unstable_by(|a, b| a.0.cmp(b.0));
                pending.push(PendingPart::Text("}"));
                for (index, (key, value)) in entries.iter().enumerate().rev() {
                    pending.push(PendingPart::Value(value));
                    pending.push(PendingPart::Key(key));
                    pending.push(PendingPart::Text(if index == 0 { "{" } else { "," }));
                }
                if entries.is_empty() {
                    pending.push(PendingPart::Text("{"));
                }
            }
            PendingPart::Value(Value::String(text)) => push_json_string(&mut out, text),
            PendingPart::Value(scalar) => out.push_str(&scalar.to_string()),
        }
    }
    out
}

/// A part of the JSON text that is not written yet.
enum PendingPart<'a> {
    /// A bracket or comma.
    Text(&'static str),
    /// The key of an object member. The colon is written after the key.
    Key(&'a str),
    Value(&'a Value),
}

fn push_json_string(out: &mut String, text: &str) {
    out.push_str(&Value::String(text.to_owned()).to_string());
}

/// Returns whether a JSON text nests brackets deeper than `limit`. The text is scanned, not parsed, so that a hostile
/// answer is refused before it costs memory.
pub fn depth_exceeds(text: &[u8], limit: usize) -> bool {
    let mut depth = 0usize;
    let mut offset = 0usize;
    while let Some(byte) = text.get(offset) {
        offset += 1;
        match byte {
            b'"' => offset = after_string(text, offset),
            b'[' | b'{' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Returns the offset after the quote that ends the string which starts at `offset`. Strings make up most of an
/// answer, so `memchr` searches for the end of a string instead of a loop over bytes.
fn after_string(text: &[u8], mut offset: usize) -> usize {
    while let Some(distance) = text.get(offset..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        offset += distance + 1;
        if text[offset - 1] == b'"' {
            return offset;
        }
        // The escaped character belongs to the string, even if it is a quote.
        offset += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn key_order_does_not_matter() {
        let a: Value = serde_json::from_str(r#"{"b":[1,{}, []],"a":{"z":null,"y":"q\"\n"}}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"a":{"y":"q\"\n","z":null},"b":[1,{},[]]}"#).unwrap();
        assert_eq!(canonical(&a), canonical(&b));
        assert_eq!(canonical(&a), r#"{"a":{"y":"q\"\n","z":null},"b":[1,{},[]]}"#);
        assert_eq!(canonical(&json!([])), "[]");
    }

    #[test]
    fn nesting_is_counted_outside_strings() {
        assert!(depth_exceeds(b"[[[]]]", 2));
        assert!(!depth_exceeds(br#"["[[[[\"[["]"#, 1));
        assert!(!depth_exceeds(b"[][][]", 1));
        // These strings end with an escape, are not closed, or are empty.
        assert!(depth_exceeds(br#"["\\",[["""#, 2));
        assert!(!depth_exceeds(br#"["\\\"[["#, 1));
        for cut in [&b"\"\\"[..], b"\"", b"\"[[[", b""] {
            assert!(!depth_exceeds(cut, 0));
        }
        assert!(depth_exceeds(br#""",["#, 0));
    }
}
