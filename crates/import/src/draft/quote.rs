//! Scalars and flow values in YAML: plain where that is safe, else quoted.
//! Invariant: what is written reads back as the same text, in a block and inside `{}` or `[]`.

use serde_json::Value;

/// Words that YAML, or some reader of it, takes for something else.
const WORDS: [&str; 12] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "~", "nan", "inf"];

pub fn text(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

/// A sentence: spaces and most punctuation stay plain.
pub fn sentence(line: &str) -> String {
    let odd = |c: char| c.is_control() || ":#\"'{}[],&*!|>%@`\\".contains(c);
    let starts = line.starts_with(|c: char| c.is_alphabetic());
    let word = WORDS.contains(&line.to_ascii_lowercase().as_str());
    if starts && !word && !line.contains(odd) && line.trim() == line { line.to_owned() } else { quoted(line) }
}

fn quoted(text: &str) -> String {
    // A JSON string is a double-quoted YAML one, once what YAML does not print is escaped.
    let json = Value::String(text.to_owned()).to_string();
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out
}

fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
        && !text.ends_with('.')
}

/// `{a: b, c: [d]}` of a JSON value.
pub fn flow(value: &Value) -> String {
    match value {
        Value::String(line) => text(line),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let pairs = map.iter().map(|(key, value)| format!("{}: {}", text(key), flow(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let odd = [
            "a",
            "true",
            "No",
            "1",
            "1e3",
            "",
            " x",
            "a: b",
            "a #b",
            "{a}",
            "[x]",
            "é\u{85}",
            "\u{7f}",
            "a\nb",
            "-",
            "- a",
            "~",
            "null",
            "0x1",
            "x,y",
            "'",
            "\"",
            "@a",
            "*a",
            "&a",
            "!a",
            "%a",
            "a\\b",
            "?",
            "a?b",
            "2026-01-01",
            "\u{2028}",
        ];
        for line in odd {
            for written in [text(line), sentence(line)] {
                let back: Vec<String> = serde_saphyr::from_str(&format!("[{written}]")).unwrap();
                assert_eq!(back, [line], "{written}");
                let block: std::collections::BTreeMap<String, String> =
                    serde_saphyr::from_str(&format!("k: {written}\n")).unwrap();
                assert_eq!(block["k"], line, "{written}");
            }
        }
    }
}
