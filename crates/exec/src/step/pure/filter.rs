//! The filter step: it returns the rows that pass every test, in the same order.
//! Invariant: a `null` passes only `= null` and `!=` with another value. The value of each test is prepared once for all rows.

use catalog::{Row, Type};
use lang::plan::{ComparisonOp, FilterTest};
use serde_json::Value;

use crate::data::equality::is_equal;
use crate::data::order::{SortKey, compare, sort_key};
use crate::outcome::Rowset;
use crate::value::view::{RowsView, Walk};

/// Returns the rows that pass all tests. `values` has the compared value of each test, in the same order.
pub fn apply(view: &RowsView<'_>, tests: &[FilterTest], values: &[Value]) -> Rowset {
    let tests: Vec<PreparedTest<'_>> =
        tests.iter().zip(values).map(|(test, value)| PreparedTest::new(view, test, value)).collect();
    let passes = |row: &Row| tests.iter().all(|test| test.passes(row));
    view.rows.with_rows(view.rows.rows.iter().filter(|row| passes(row)).cloned().collect())
}

/// Returns whether two values of a type are equal. Dates are compared by instant, references by key, and all other values as
/// data.
pub fn is_equal_as(kind: &Type, a: &Value, b: &Value) -> bool {
    match kind {
        Type::Date(_) => match (sort_key(kind, a), sort_key(kind, b)) {
            (Some(a), Some(b)) => compare(&a, &b).is_eq(),
            _ => false,
        },
        Type::Ref(_) => is_same_reference(a, b),
        _ => is_equal(a, b),
    }
}

/// A test whose value is prepared once for all rows.
struct PreparedTest<'a> {
    walk: Walk<'a>,
    op: ComparisonOp,
    /// The type of the compared values. For a list, the type of its items.
    kind: &'a Type,
    /// The value with which each row's value is compared.
    value: &'a Value,
    /// The sort key of `value`, for `<`, `<=`, `>` and `>=`.
    key: Option<SortKey<'a>>,
    /// The lower-case text to search for, for `~`.
    text: String,
}

impl<'a> PreparedTest<'a> {
    fn new(view: &RowsView<'a>, test: &'a FilterTest, value: &'a Value) -> Self {
        let kind = match &test.kind {
            Type::Array(of) => of.as_ref(),
            kind => kind,
        };
        let text = if test.op == ComparisonOp::Like { text_of(value).to_lowercase() } else { String::new() };
        Self { walk: view.walk(&test.path), op: test.op, kind, value, key: sort_key(kind, value), text }
    }

    fn passes(&self, row: &Row) -> bool {
        match (self.op, self.walk.find(row)) {
            (ComparisonOp::Eq, None) => self.value.is_null(),
            (ComparisonOp::Ne, None) => !self.value.is_null(),
            (_, None) => false,
            (ComparisonOp::Eq, Some(value)) => self.equals(value),
            (ComparisonOp::Ne, Some(value)) => !self.equals(value),
            (ComparisonOp::Like, Some(Value::Array(items))) => items.iter().any(|item| self.contains_text(item)),
            (ComparisonOp::Like, Some(value)) => self.contains_text(value),
            (op, Some(value)) => self.is_ordered(op, value),
        }
    }

    /// Returns whether a row's value passes `=`. A list passes if it contains every wanted value. A single value passes if it
    /// equals one of the wanted values.
    fn equals(&self, value: &Value) -> bool {
        match (value, self.value) {
            (_, Value::Null) => false,
            (Value::Array(items), Value::Array(wanted)) => {
                wanted.iter().all(|wanted| items.iter().any(|item| is_equal_as(self.kind, item, wanted)))
            }
            (Value::Array(items), wanted) => items.iter().any(|item| is_equal_as(self.kind, item, wanted)),
            (value, Value::Array(wanted)) => wanted.iter().any(|wanted| is_equal_as(self.kind, value, wanted)),
            (value, wanted) => is_equal_as(self.kind, value, wanted),
        }
    }

    /// Returns whether a row's value passes `<`, `<=`, `>` or `>=`. Values of different kinds, such as a number and a text,
    /// never pass.
    fn is_ordered(&self, op: ComparisonOp, value: &Value) -> bool {
        let (Some(key), Some(wanted)) = (sort_key(self.kind, value), self.key.as_ref()) else { return false };
        let is_comparable = match (&key, wanted) {
            (SortKey::Other(_), _) | (_, SortKey::Other(_)) => false,
            (SortKey::Int(_) | SortKey::Number(_), SortKey::Int(_) | SortKey::Number(_)) => true,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        };
        let order = compare(&key, wanted);
        is_comparable
            && match op {
                ComparisonOp::Lt => order.is_lt(),
                ComparisonOp::Le => order.is_le(),
                ComparisonOp::Gt => order.is_gt(),
                ComparisonOp::Ge => order.is_ge(),
                ComparisonOp::Eq | ComparisonOp::Ne | ComparisonOp::Like => false,
            }
    }

    fn contains_text(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => contains(text, &self.text),
            other => contains(&text_of(other), &self.text),
        }
    }
}

/// Returns whether `text` contains `part`, ignoring case. `part` must be in lower case.
fn contains(text: &str, part: &str) -> bool {
    if !text.is_ascii() || !part.is_ascii() {
        return text.to_lowercase().contains(part);
    }
    // ASCII text is searched without allocating a lower-case copy of each row's value.
    let text = text.as_bytes();
    let part = part.as_bytes();
    let Some(first) = part.first() else { return true };
    let is_match = |window: &[u8]| window[0].to_ascii_lowercase() == *first && window.eq_ignore_ascii_case(part);
    text.windows(part.len()).any(is_match)
}

/// Returns whether two references have the same key. A scalar equals an object whose only key part is that scalar.
fn is_same_reference(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(parts), scalar) | (scalar, Value::Object(parts)) if !scalar.is_object() => {
            parts.len() == 1 && parts.values().all(|part| is_same_reference(part, scalar))
        }
        (Value::String(text), Value::Number(number)) | (Value::Number(number), Value::String(text)) => {
            *text == number.to_string()
        }
        (a, b) => is_equal(a, b),
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
