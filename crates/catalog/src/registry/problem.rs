//! Why something in a folder is not offered, for the operator.
//! Invariant: it names the place and what to do; what an author wrote comes back clipped.

use std::fmt;

use base::CatalogId;

use super::found::{Unlisted, Unusable};

/// Of the mistakes of one file.
const SHOWN_LINES: usize = 20;
const SHOWN_CHARS: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// A file or a folder.
    pub place: String,
    pub cause: Cause,
    /// What stays offered in its stead: a catalog, and its version.
    pub kept: Option<(CatalogId, u32)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// Not a catalog: `file:line:column: E0503 what is wrong; write: …`, one line for each mistake.
    Rejected(Vec<String>),
    Unusable(Unusable),
    Unlisted(Unlisted),
    /// Another has the name; `by` is its file, or none where it is shipped in the binary.
    Taken {
        name: CatalogId,
        by: Option<String>,
    },
}

impl Cause {
    pub(super) fn rejected(rejected: &crate::Rejected) -> Self {
        let lines = rejected.lines();
        let mut shown: Vec<String> = lines.lines().take(SHOWN_LINES).map(clipped).collect();
        match lines.lines().count().saturating_sub(SHOWN_LINES) {
            0 => {}
            more => shown.push(format!("{}: and {more} more lines of mistakes", rejected.file)),
        }
        Self::Rejected(shown)
    }
}

impl Problem {
    /// One line for each mistake, each with its place.
    pub fn lines(&self) -> Vec<String> {
        let place = &self.place;
        match &self.cause {
            Cause::Rejected(lines) => lines.clone(),
            Cause::Unusable(Unusable::NotText { line }) => {
                vec![format!("{place}:{line}: not UTF-8 text; save the file as UTF-8")]
            }
            Cause::Unusable(cause) => vec![format!("{place}: {cause}")],
            Cause::Unlisted(cause) => vec![format!("{place}: {cause}")],
            Cause::Taken { name, by } => {
                let by = by.as_deref().unwrap_or("a catalog shipped with tokamak");
                vec![format!("{place}: the name `{name}` belongs to {by}; change the id or alias in one of them")]
            }
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("\n"))?;
        match &self.kept {
            Some((id, version)) => write!(f, "\n{}: `{id}` version {version} stays offered", self.place),
            None => Ok(()),
        }
    }
}

fn clipped(line: &str) -> String {
    match line.char_indices().nth(SHOWN_CHARS) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}
