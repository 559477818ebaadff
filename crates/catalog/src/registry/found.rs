//! What a look at the folders found, as data.
//! Invariant: it says what was there, and nothing about what was there before.

/// One folder of catalogs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderFound {
    /// Its path, as the operator wrote it.
    pub folder: String,
    pub files: Result<Vec<FileFound>, Unlisted>,
}

/// One file that should be a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFound {
    /// Its path: what it is called in messages, and what makes it the same file at the next look.
    pub file: String,
    pub text: Result<String, Unusable>,
}

/// Why nothing is known of a folder's files. It says nothing about them, so what they gave stays.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unlisted {
    #[error("the folder does not exist; its catalogs stay as they were")]
    Missing,
    #[error("more than {most} catalogs; until there are fewer, what this folder gave stays as it was")]
    TooManyFiles { most: usize },
    #[error("more than {most_mib} MiB of catalogs; until there is less, what this folder gave stays as it was")]
    TooManyBytes { most_mib: usize },
    #[error("cannot be listed ({0}); its catalogs stay as they were")]
    Unreadable(String),
}

/// Why a file has no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("not a file; a catalog is a regular file, or a link to one")]
    NotAFile,
    #[error("larger than {most_mib} MiB; split the catalog in two")]
    TooLarge { most_mib: usize },
    #[error("line {line} is not UTF-8 text; save the file as UTF-8")]
    NotText { line: usize },
    #[error("a name that cannot be shown; rename the file")]
    Name,
    #[error("still being written")]
    Changing,
    #[error("cannot be read ({0})")]
    Unreadable(String),
}
