//! How much of what was asked for a rowset holds.
//! Invariant: whatever is made from something partial is partial; a display cut changes nothing here.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coverage {
    #[default]
    Complete,
    Partial(BTreeSet<Why>),
    /// The API itself does not say, or contradicts itself.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    RowBudget,
    PageBudget,
    /// The plan's own bound.
    Bound,
    /// A row was gone when the rest of it was asked for.
    Gone,
}

impl Coverage {
    pub fn partial(why: Why) -> Self {
        Self::Partial(BTreeSet::from([why]))
    }

    /// Of something made from both.
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
                        Why::RowBudget => "row budget",
                        Why::PageBudget => "page budget",
                        Why::Bound => "the plan's bound",
                        Why::Gone => "rows vanished",
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
    fn nothing_made_from_partial_is_complete() {
        let all = [
            Coverage::Complete,
            Coverage::Unknown,
            Coverage::partial(Why::RowBudget),
            Coverage::partial(Why::PageBudget),
        ];
        for a in &all {
            for b in &all {
                let both = a.clone().and(b.clone());
                assert_eq!(both, b.clone().and(a.clone()), "order does not matter");
                let whole = *a == Coverage::Complete && *b == Coverage::Complete;
                assert_eq!(both == Coverage::Complete, whole);
            }
        }
        assert_eq!(Coverage::partial(Why::RowBudget).to_string(), "partial: row budget");
    }
}
