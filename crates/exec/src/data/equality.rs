//! Equality and hashing of JSON values as data: `1` equals `1.0`, and the order of object keys is ignored.
//! Invariant: equal values have equal hashes. Neither function allocates text.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Number, Value};

use super::number::compare_numbers;

/// A borrowed JSON value that is compared and hashed as data, for use as the key of a hash map.
#[derive(Debug, Clone, Copy)]
pub struct ByValue<'v>(pub &'v Value);

impl PartialEq for ByValue<'_> {
    fn eq(&self, other: &Self) -> bool {
        is_equal(self.0, other.0)
    }
}

impl Eq for ByValue<'_> {}

impl Hash for ByValue<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_value(self.0, state);
    }
}

/// Returns the hash of a value. Values that are equal by `is_equal` have the same hash.
pub fn hash_of(value: &Value) -> u64 {
    let mut state = DefaultHasher::new();
    hash_value(value, &mut state);
    state.finish()
}

/// Returns whether two values are equal as data, so that `1` equals `1.0` and the order of object keys is ignored.
pub fn is_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| is_equal(value, other)))
        }
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        _ => false,
    }
}

fn hash_value<H: Hasher>(value: &Value, state: &mut H) {
    match value {
        Value::Null => state.write_u8(0),
        Value::Bool(flag) => state.write_u8(1 + u8::from(*flag)),
        Value::Number(number) => hash_number(number, state),
        Value::String(text) => text.hash(state),
        Value::Array(items) => {
            state.write_usize(items.len());
            items.iter().for_each(|item| hash_value(item, state));
        }
        Value::Object(map) => {
            // The hashes of the entries are added, so that the order of keys does not change the sum.
            let sum = map.iter().fold(0u64, |sum, (key, value)| {
                let mut inner = DefaultHasher::new();
                key.hash(&mut inner);
                hash_value(value, &mut inner);
                sum.wrapping_add(inner.finish())
            });
            state.write_u64(sum);
        }
    }
}

/// Hashes a number so that an integer and an equal float have the same hash.
fn hash_number<H: Hasher>(number: &Number, state: &mut H) {
    if let Some(whole) = number.as_i64() {
        return state.write_i64(whole);
    }
    if let Some(whole) = number.as_u64() {
        return state.write_u64(whole);
    }
    let float = number.as_f64().unwrap_or_default();
    if float.fract() == 0.0 && float.abs() < 1.8e19 {
        // Within this range a whole float equals an i64 or a u64, so both must have the same hash.
        return if float < 9_223_372_036_854_775_808.0 {
            state.write_i64(float as i64)
        } else {
            state.write_u64(float as u64)
        };
    }
    state.write_u64(float.to_bits());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_data_has_equal_hashes() {
        for (a, b) in [
            (json!(1), json!(1.0)),
            (json!({"a": 1, "b": 2}), json!({"b": 2.0, "a": 1})),
            (json!([1, null]), json!([1.0, null])),
            (json!(u64::MAX), json!(u64::MAX)),
            (json!(9_223_372_036_854_775_808_u64), json!(9_223_372_036_854_775_808.0)),
            (json!(-0.0), json!(0)),
        ] {
            assert!(is_equal(&a, &b) && hash_of(&a) == hash_of(&b), "{a} {b}");
        }
        for (a, b) in [(json!(1), json!("1")), (json!(1), json!(true)), (json!({"a": 1}), json!({"a": null}))] {
            assert!(!is_equal(&a, &b), "{a} {b}");
        }
    }
}
