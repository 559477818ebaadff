//! One byte string per JSON value, for digests; and a bound on nesting.
//! Invariant: equal values (whatever the order of their keys) have equal canonical bytes; nothing here recurses.

use serde_json::Value;

/// Compact JSON with object keys sorted.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    let mut work = vec![Work::Value(value)];
    while let Some(item) = work.pop() {
        match item {
            Work::Text(text) => out.push_str(text),
            Work::Key(key) => {
                push_string(&mut out, key);
                out.push(':');
            }
            Work::Value(Value::Array(items)) => {
                work.push(Work::Text("]"));
                for (at, item) in items.iter().enumerate().rev() {
                    work.push(Work::Value(item));
                    work.push(Work::Text(if at == 0 { "[" } else { "," }));
                }
                if items.is_empty() {
                    work.push(Work::Text("["));
                }
            }
            Work::Value(Value::Object(map)) => {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_unstable_by(|a, b| a.0.cmp(b.0));
                work.push(Work::Text("}"));
                for (at, (key, value)) in entries.iter().enumerate().rev() {
                    work.push(Work::Value(value));
                    work.push(Work::Key(key));
                    work.push(Work::Text(if at == 0 { "{" } else { "," }));
                }
                if entries.is_empty() {
                    work.push(Work::Text("{"));
                }
            }
            Work::Value(Value::String(text)) => push_string(&mut out, text),
            Work::Value(scalar) => out.push_str(&scalar.to_string()),
        }
    }
    out
}

enum Work<'a> {
    Text(&'static str),
    Key(&'a str),
    Value(&'a Value),
}

fn push_string(out: &mut String, text: &str) {
    out.push_str(&Value::String(text.to_owned()).to_string());
}

/// Whether a JSON text opens more brackets inside each other than `limit`, found without parsing it.
pub fn depth_exceeds(text: &[u8], limit: usize) -> bool {
    let (mut depth, mut at) = (0usize, 0usize);
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => at = after_string(text, at),
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

/// Behind the quote that ends the string which begins at `at`. Most of an answer is strings, so they are skipped, not read.
fn after_string(text: &[u8], mut at: usize) -> usize {
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found + 1;
        if text[at - 1] == b'"' {
            return at;
        }
        // Whatever is escaped is part of the string.
        at += 1;
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
        // Strings that end with an escape, are not ended, or hold nothing.
        assert!(depth_exceeds(br#"["\\",[["""#, 2));
        assert!(!depth_exceeds(br#"["\\\"[["#, 1));
        for cut in [&b"\"\\"[..], b"\"", b"\"[[[", b""] {
            assert!(!depth_exceeds(cut, 0));
        }
        assert!(depth_exceeds(br#""",["#, 0));
    }
}
