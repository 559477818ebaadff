//! The rows that pass every test.
//! Invariant: a `null` passes only `= null` and `!=`; each test's own value is read once; the order stays.

use catalog::{Row, Type};
use lang::plan::{ComparisonOp, FilterTest};
use serde_json::Value;

use crate::data::hash::same;
use crate::data::order::{Key, compare, key};
use crate::outcome::Rowset;
use crate::value::view::{View, Walk};

/// Applies the tests. `values` holds the value of each test, in the same order.
pub fn apply(view: &View<'_>, tests: &[FilterTest], values: &[Value]) -> Rowset {
    let tests: Vec<PreparedTest<'_>> =
        tests.iter().zip(values).map(|(test, value)| PreparedTest::new(view, test, value)).collect();
    let fits = |row: &Row| tests.iter().all(|test| test.fits(row));
    view.rows.with_rows(view.rows.rows.iter().filter(|row| fits(row)).cloned().collect())
}

/// Compares by type: dates by instant, references by key, everything else as data.
pub fn equal(kind: &Type, a: &Value, b: &Value) -> bool {
    match kind {
        Type::Date(_) => match (key(kind, a), key(kind, b)) {
            (Some(a), Some(b)) => compare(&a, &b).is_eq(),
            _ => false,
        },
        Type::Ref(_) => same_reference(a, b),
        _ => same(a, b),
    }
}

/// A test with its value parsed once for all rows.
struct PreparedTest<'a> {
    walk: Walk<'a>,
    op: ComparisonOp,
    kind: &'a Type,
    value: &'a Value,
    key: Option<Key<'a>>,
    /// The lower-case text to look for with `~`.
    text: String,
}

impl<'a> PreparedTest<'a> {
    fn new(view: &View<'a>, test: &'a FilterTest, value: &'a Value) -> Self {
        let kind = match &test.kind {
            Type::Array(of) => of.as_ref(),
            kind => kind,
        };
        let text = if test.op == ComparisonOp::Like { plain(value).to_lowercase() } else { String::new() };
        Self { walk: view.walk(&test.path), op: test.op, kind, value, key: key(kind, value), text }
    }

    fn fits(&self, row: &Row) -> bool {
        let found = self.walk.find(row);
        match (self.op, found) {
            (ComparisonOp::Eq, None) => self.value.is_null(),
            (ComparisonOp::Ne, None) => !self.value.is_null(),
            (_, None) => false,
            (ComparisonOp::Eq, Some(found)) => self.equals(found),
            (ComparisonOp::Ne, Some(found)) => !self.equals(found),
            (ComparisonOp::Like, Some(Value::Array(items))) => items.iter().any(|item| self.like(item)),
            (ComparisonOp::Like, Some(found)) => self.like(found),
            (op, Some(found)) => self.ordered(op, found),
        }
    }

    /// A list matches a value that it contains, and several values if it contains all of them. A single value matches
    /// if it is one of several.
    fn equals(&self, found: &Value) -> bool {
        match (found, self.value) {
            (_, Value::Null) => false,
            (Value::Array(items), Value::Array(wanted)) => {
                wanted.iter().all(|want| items.iter().any(|item| self.same(item, want)))
            }
            (Value::Array(items), want) => items.iter().any(|item| self.same(item, want)),
            (found, Value::Array(any)) => any.iter().any(|want| self.same(found, want)),
            (found, want) => self.same(found, want),
        }
    }

    fn same(&self, found: &Value, want: &Value) -> bool {
        equal(self.kind, found, want)
    }

    fn ordered(&self, op: ComparisonOp, found: &Value) -> bool {
        let (Some(found), Some(want)) = (key(self.kind, found), self.key.as_ref()) else { return false };
        let comparable = match (&found, want) {
            (Key::Other(_), _) | (_, Key::Other(_)) => false,
            (Key::Int(_) | Key::Number(_), Key::Int(_) | Key::Number(_)) => true,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        };
        let order = compare(&found, want);
        comparable
            && match op {
                ComparisonOp::Lt => order.is_lt(),
                ComparisonOp::Le => order.is_le(),
                ComparisonOp::Gt => order.is_gt(),
                ComparisonOp::Ge => order.is_ge(),
                ComparisonOp::Eq | ComparisonOp::Ne | ComparisonOp::Like => false,
            }
    }

    fn like(&self, found: &Value) -> bool {
        match found {
            Value::String(text) => contains(text, &self.text),
            other => contains(&plain(other), &self.text),
        }
    }
}

/// Whether `text` contains `part`, ignoring case. `part` must be in lower case.
fn contains(text: &str, part: &str) -> bool {
    if !text.is_ascii() || !part.is_ascii() {
        return text.to_lowercase().contains(part);
    }
    let (text, part) = (text.as_bytes(), part.as_bytes());
    let Some(first) = part.first() else { return true };
    let starts = |window: &[u8]| window[0].to_ascii_lowercase() == *first && window.eq_ignore_ascii_case(part);
    text.windows(part.len()).any(starts)
}

/// Compares references by key: a scalar equals an object whose only part is that scalar.
fn same_reference(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(parts), scalar) | (scalar, Value::Object(parts)) if !scalar.is_object() => {
            parts.len() == 1 && parts.values().all(|part| same_reference(part, scalar))
        }
        (Value::String(text), Value::Number(number)) | (Value::Number(number), Value::String(text)) => {
            *text == number.to_string()
        }
        (a, b) => same(a, b),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
