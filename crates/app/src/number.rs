//! Numbers in requests that clients write in more than one way.
//! Invariant: a number that JSON Schema calls an integer is accepted in every way of writing it.

use serde::{Deserialize, Deserializer};

/// Reads a number of rows: `5`, `5.0` and `5e0` are the same to JSON Schema. A number that is too large to count with becomes
/// the largest one, because both ask for all rows.
pub fn row_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    match Option::<f64>::deserialize(deserializer)? {
        None => Ok(None),
        Some(number) if number >= 0.0 && number.fract() == 0.0 => Ok(Some(number as usize)),
        Some(_) => Err(serde::de::Error::custom("it takes a whole number from 0")),
    }
}
