//! The result of reading the catalog folders, as data for a reload.
//! Invariant: it describes the folders at one moment and does not depend on what was there before.

/// One folder of catalogs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderScan {
    /// The path of the folder as the operator wrote it.
    pub folder: String,
    pub files: Result<Vec<FileScan>, FolderError>,
}

/// One file that should be a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileScan {
    /// The path of the file. Messages name the file by it, and the next scan recognises the file by it.
    pub file: String,
    pub text: Result<String, FileError>,
}

/// Why a folder could not be listed. Nothing is known about its files then, so its catalogs stay as they were.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FolderError {
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
pub enum FileError {
    #[error("not a file; a catalog is a regular file, or a link to one")]
    NotAFile,
    #[error("larger than {most_mib} MiB; split the catalog in two")]
    TooLarge { most_mib: usize },
    #[error("line {line} is not UTF-8 text; save the file as UTF-8")]
    NotText { line: usize },
    /// The file's name has a control character or is not UTF-8.
    #[error("a name that cannot be shown; rename the file")]
    Name,
    #[error("still being written")]
    Changing,
    #[error("cannot be read ({0})")]
    Unreadable(String),
}
