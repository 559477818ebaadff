//! The coverage of a row set: whether its rows are all requested data or a part.
//! Invariant: a result made from partial data is partial. Cutting rows for display does not change the coverage.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The share of the requested data that a row set contains.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coverage {
    /// The row set contains all requested data.
    #[default]
    Complete,
    /// The row set contains a part of the requested data, for these reasons.
    Partial(BTreeSet<PartialReason>),
    /// The API does not report whether there are more rows, or its answers contradict each other.
    Unknown,
}

/// The reason why a row set is partial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartialReason {
    /// The session's limit on rows was reached.
    RowBudget,
    /// The session's limit on pages was reached.
    PageBudget,
    /// The plan's own bound was reached.
    Bound,
    /// A row was deleted in the API before its remaining fields were read.
    Gone,
}

impl Coverage {
    /// Returns a partial coverage with one reason.
    pub fn partial(why: PartialReason) -> Self {
        Self::Partial(BTreeSet::from([why]))
    }

    /// Returns the coverage of a result that is made from two inputs with these coverages.
    pub fn and(self, other: Coverage) -> Coverage {
        match (self, other) {
            (Self::Partial(mut a), Self::Partial(b)) => {
                a.extend(b);
                Self::Partial(a)
            }
            (Self::Partial(why), _) | (_, Self::Partial(why)) => Self::Partial(why),
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Complete, Self::Complete) => Self::Complete,
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("complete"),
            Self::Unknown => f.write_str("unknown"),
            Self::Partial(why) => {
                let words: Vec<&str> = why
                    .iter()
                    .map(|why| match why {
                        PartialReason::RowBudget => "row budget",
                        PartialReason::PageBudget => "page budget",
                        PartialReason::Bound => "the plan's bound",
                        PartialReason::Gone => "rows vanished",
                    })
                    .collect();
                write!(f, "partial: {}", words.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_complete_only_if_both_inputs_are() {
        let all = [
            Coverage::Complete,
            Coverage::Unknown,
            Coverage::partial(PartialReason::RowBudget),
            Coverage::partial(PartialReason::PageBudget),
        ];
        for a in &all {
            for b in &all {
                let both = a.clone().and(b.clone());
                assert_eq!(both, b.clone().and(a.clone()), "order does not matter");
                let both_complete = *a == Coverage::Complete && *b == Coverage::Complete;
                assert_eq!(both == Coverage::Complete, both_complete);
            }
        }
        assert_eq!(Coverage::partial(PartialReason::RowBudget).to_string(), "partial: row budget");
    }
}
