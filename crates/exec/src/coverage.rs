//! How much of the requested data a row set holds.
//! Invariant: anything made from partial data is partial; cutting rows for display does not change coverage.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// How much of the requested data a row set holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coverage {
    #[default]
    Complete,
    Partial(BTreeSet<PartialReason>),
    /// The API does not say whether there is more, or contradicts itself.
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
    /// A row was gone by the time its remaining fields were requested.
    Gone,
}

impl Coverage {
    pub fn partial(why: PartialReason) -> Self {
        Self::Partial(BTreeSet::from([why]))
    }

    /// Returns the coverage of something made from both.
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
    fn coverage_of_a_partial_input_is_never_complete() {
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
                let whole = *a == Coverage::Complete && *b == Coverage::Complete;
                assert_eq!(both == Coverage::Complete, whole);
            }
        }
        assert_eq!(Coverage::partial(PartialReason::RowBudget).to_string(), "partial: row budget");
    }
}
