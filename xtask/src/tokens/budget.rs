//! Reads the budget file, which has lines of the form `name count  # why it is so large`.
//! Invariant: a name occurs once, and a count is a number.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

#[derive(Debug, Default)]
pub struct Budget(BTreeMap<String, usize>);

impl Budget {
    pub fn parse(text: &str) -> Result<Self> {
        let mut budget = BTreeMap::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (name, count) =
                line.rsplit_once(' ').with_context(|| format!("line {}: write `name count`", at + 1))?;
            let count = count.parse().with_context(|| format!("line {}: `{count}` is not a number", at + 1))?;
            let earlier = budget.insert(name.trim().to_owned(), count);
            ensure!(earlier.is_none(), "line {}: `{name}` occurs twice", at + 1);
        }
        Ok(Self(budget))
    }

    pub fn get(&self, name: &str) -> Option<usize> {
        self.0.get(name).copied()
    }

    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::Budget;

    #[test]
    fn names_counts_and_reasons() {
        let budget = Budget::parse("# all\n\ntable demo 12  # two more rows\ncontract 7\n").unwrap();
        assert_eq!((budget.get("table demo"), budget.get("contract"), budget.get("x")), (Some(12), Some(7), None));
        assert!(Budget::parse("contract\n").is_err());
        assert!(Budget::parse("contract many\n").is_err());
        assert!(Budget::parse("a 1\na 2\n").is_err());
    }
}
