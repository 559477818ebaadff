//! The exact comparison of JSON numbers.
//! Invariant: an integer equals a float only if the float represents exactly this integer.

use std::cmp::Ordering;

use serde_json::Number;

/// Compares two numbers without rounding, also a large integer with a float.
pub fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (whole_number(a), whole_number(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => compare_with_float(a, b.as_f64().unwrap_or_default()),
        (None, Some(b)) => compare_with_float(b, a.as_f64().unwrap_or_default()).reverse(),
        (None, None) => {
            let a = a.as_f64().unwrap_or_default();
            let b = b.as_f64().unwrap_or_default();
            a.partial_cmp(&b).unwrap_or(Ordering::Equal)
        }
    }
}

/// Returns the integer value of a number; `None` if the JSON text has a fraction or an exponent.
pub fn whole_number(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn compare_with_float(whole: i128, float: f64) -> Ordering {
    // The cast saturates, which is correct: every whole number of JSON lies within i128.
    let floor = float.floor();
    whole.cmp(&(floor as i128)).then(if float > floor { Ordering::Less } else { Ordering::Equal })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(a: impl Into<Number>, b: f64) -> Ordering {
        compare_numbers(&a.into(), &Number::from_f64(b).unwrap())
    }

    #[test]
    fn numbers_compare_exactly() {
        assert_eq!(compare(9_007_199_254_740_993_i64, 9_007_199_254_740_992.0), Ordering::Greater);
        assert_eq!(compare(2, 2.5), Ordering::Less);
        assert_eq!(compare(-2, -2.5), Ordering::Greater);
        assert_eq!(compare(u64::MAX, 1e30), Ordering::Less);
        assert_eq!(compare(1, 1.0), Ordering::Equal);
    }
}
