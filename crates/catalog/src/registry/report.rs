//! The report of a reload for the operator: the changes of the registry, and the problems of catalog files and
//! folders.
//! Invariants: the report of an unchanged folder is empty. The text of a problem names the file or folder and the
//! action to take. Text of the author inside a problem is shortened.

use std::fmt;
use std::sync::Arc;

use base::CatalogId;

use super::Registry;
use super::scan::{FileError, FolderError};
use crate::model::Catalog;

/// The maximum number of lines that a problem shows for the mistakes of one file.
const MAX_MISTAKE_LINES: usize = 20;
/// The maximum number of characters in one of these lines.
const MAX_MISTAKE_LINE_CHARS: usize = 500;

/// The difference between the registries before and after a reload.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReloadReport {
    pub changes: Vec<CatalogChange>,
    /// The problems that are new since the previous registry.
    pub problems: Vec<CatalogProblem>,
    /// The paths of files and folders whose problems are solved since the previous registry.
    pub repaired: Vec<String>,
}

/// A change of the offered catalogs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CatalogChange {
    Added {
        id: CatalogId,
        version: u32,
    },
    Replaced {
        id: CatalogId,
        from: u32,
        to: u32,
    },
    /// The catalog is no longer offered. Existing sessions continue to use the stored catalog.
    Withdrawn {
        id: CatalogId,
    },
    /// A file has the id of a shipped catalog, and the file's catalog is offered instead of the shipped one.
    InsteadOfShipped {
        id: CatalogId,
        file: String,
    },
}

/// A problem with a catalog file, a folder or a shipped catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogProblem {
    /// The path of the file or the folder, or the description of a shipped catalog.
    pub subject: String,
    pub cause: ProblemCause,
    /// The id and version of the earlier catalog of this file, if it is still offered.
    pub kept: Option<(CatalogId, u32)>,
}

/// The cause of a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProblemCause {
    /// The text is not a valid catalog. Each mistake is one line: `file:line:column: E0503 what is wrong; write: …`.
    Rejected(Vec<String>),
    /// The file could not be read.
    File(FileError),
    /// The folder could not be listed.
    Folder(FolderError),
    /// The name belongs to another catalog. `by` is the path of the other catalog's file, or `None` for a shipped
    /// catalog.
    Taken { name: CatalogId, by: Option<String> },
}

impl ReloadReport {
    pub(super) fn between(before: &Registry, after: &Registry) -> Self {
        let change_of = |new: &Arc<Catalog>| match before.by_id.get(&new.id) {
            None => Some(CatalogChange::Added { id: new.id.clone(), version: new.version }),
            Some(old) if old.digest() != new.digest() => {
                Some(CatalogChange::Replaced { id: new.id.clone(), from: old.version, to: new.version })
            }
            Some(_) => None,
        };
        let removed = before.by_id.keys().filter(|id| !after.by_id.contains_key(*id));
        let withdrawn = removed.map(|id| CatalogChange::Withdrawn { id: id.clone() });
        let has_problem_now = |subject: &str| after.problems.iter().any(|problem| problem.subject == subject);
        let repaired = before.problems.iter().filter(|old| !has_problem_now(&old.subject));
        Self {
            changes: after.by_id.values().filter_map(change_of).chain(withdrawn).collect(),
            problems: after.problems.iter().filter(|new| !before.problems.contains(new)).cloned().collect(),
            repaired: repaired.map(|old| old.subject.clone()).collect(),
        }
    }

    /// Returns whether there is nothing to report.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.problems.is_empty() && self.repaired.is_empty()
    }
}

impl fmt::Display for CatalogChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CatalogChange::Added { id, version } => write!(f, "catalog `{id}` version {version} is offered"),
            CatalogChange::Replaced { id, from, to } => {
                write!(f, "catalog `{id}` version {to} is offered to new sessions in place of version {from}")
            }
            CatalogChange::Withdrawn { id } => {
                write!(f, "catalog `{id}` is no longer offered; existing sessions continue to use it")
            }
            CatalogChange::InsteadOfShipped { id, file } => {
                write!(f, "catalog `{id}` is read from {file}, which replaces the shipped catalog")
            }
        }
    }
}

impl ProblemCause {
    pub(super) fn rejected(rejected: &crate::Rejected) -> Self {
        let lines = rejected.lines();
        let mut shown: Vec<String> = lines.lines().take(MAX_MISTAKE_LINES).map(shortened).collect();
        match lines.lines().count().saturating_sub(MAX_MISTAKE_LINES) {
            0 => {}
            more => shown.push(format!("{}: and {more} more lines of mistakes", rejected.file)),
        }
        Self::Rejected(shown)
    }
}

impl CatalogProblem {
    /// Returns one line for each mistake. Each line begins with the path of the file or folder.
    pub fn lines(&self) -> Vec<String> {
        let subject = &self.subject;
        match &self.cause {
            ProblemCause::Rejected(lines) => lines.clone(),
            ProblemCause::File(FileError::NotText { line }) => {
                vec![format!("{subject}:{line}: the line is not UTF-8 text; save the file as UTF-8")]
            }
            ProblemCause::File(error) => vec![format!("{subject}: {error}")],
            ProblemCause::Folder(error) => vec![format!("{subject}: {error}")],
            ProblemCause::Taken { name, by } => {
                let by = by.as_deref().unwrap_or("a catalog shipped with tokamak");
                vec![format!("{subject}: the name `{name}` belongs to {by}; change the id or alias in one of them")]
            }
        }
    }
}

impl fmt::Display for CatalogProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("\n"))?;
        match &self.kept {
            Some((id, version)) => write!(f, "\n{}: `{id}` version {version} stays offered", self.subject),
            None => Ok(()),
        }
    }
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(MAX_MISTAKE_LINE_CHARS) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}
