//! One value in one cell of a TSV table.
//! Invariant: a cell holds no tab and no line break, so that a row stays a row.

use serde_json::Value;

pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => escape(text),
        other => escape(&other.to_string()),
    }
}

fn escape(text: &str) -> String {
    if !text.contains(['\t', '\n', '\r']) {
        return text.to_owned();
    }
    text.replace('\t', "\\t").replace("\r\n", "\\n").replace(['\n', '\r'], "\\n")
}

#[cfg(test)]
mod tests {
    use super::cell;
    use serde_json::json;

    #[test]
    fn a_row_stays_a_row() {
        assert_eq!(cell(&json!("a\tb\r\nc\n")), "a\\tb\\nc\\n");
        assert_eq!(cell(&json!(null)), "");
        assert_eq!(cell(&json!(["x", 1])), "[\"x\",1]");
        assert_eq!(cell(&json!("a\\nb")), "a\\nb");
    }
}
