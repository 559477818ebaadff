//! The result of reading the catalog folders, which is the input of a reload.
//! Invariant: a scan describes the folders at one moment and does not depend on an earlier scan.

/// The scan of one catalog folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderScan {
    /// The path of the folder as the operator wrote it.
    pub folder: String,
    pub files: Result<Vec<FileScan>, FolderError>,
}

/// The scan of one file that should contain a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileScan {
    /// The path of the file. Messages show this path, and the next reload recognises the file by it.
    pub file: String,
    pub text: Result<String, FileError>,
}

/// Why a folder could not be listed. The catalogs of such a folder stay as they were before the scan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FolderError {
    #[error("the folder does not exist; its catalogs stay as they were")]
    Missing,
    #[error("the folder has more than {most} catalogs; remove some; its catalogs stay as they were")]
    TooManyFiles { most: usize },
    #[error("the folder has more than {most_mib} MiB of catalogs; remove some; its catalogs stay as they were")]
    TooManyBytes { most_mib: usize },
    #[error("the folder cannot be listed ({0}); its catalogs stay as they were")]
    Unreadable(String),
}

/// Why the text of a file could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error("this is not a file; a catalog is a regular file, or a link to one")]
    NotAFile,
    #[error("the file is larger than {most_mib} MiB; split the catalog in two")]
    TooLarge { most_mib: usize },
    #[error("line {line} is not UTF-8 text; save the file as UTF-8")]
    NotText { line: usize },
    /// The file's name has a control character or is not UTF-8.
    #[error("the name of this file has characters that cannot be shown; rename the file")]
    Name,
    #[error("the file is still being written")]
    Changing,
    #[error("the file cannot be read ({0})")]
    Unreadable(String),
}
