//! A cheap mark of what folders hold: names, sizes and times, without reading a file.
//! Invariant: a change of a file, of what a link leads to, or of the folder itself changes the mark.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use catalog::FolderError;

use super::scan;

#[derive(Debug, PartialEq, Eq)]
pub struct Stamp(Vec<Folder>);

#[derive(Debug, PartialEq, Eq)]
struct Folder {
    itself: Option<(u64, u64)>,
    files: Result<Vec<(PathBuf, Option<File>)>, FolderError>,
}

/// Device, inode, size, and the times of content and status down to the nanosecond.
type File = (u64, u64, u64, (i64, i64), (i64, i64));

impl Stamp {
    pub fn of(folders: &[PathBuf]) -> Self {
        Self(folders.iter().map(|folder| folder_of(folder)).collect())
    }

    /// Whether these are the same folders, whatever is in them. A watch stays with a folder that was moved away.
    pub fn same_folders(&self, other: &Stamp) -> bool {
        self.0.iter().map(|folder| folder.itself).eq(other.0.iter().map(|folder| folder.itself))
    }
}

fn folder_of(folder: &Path) -> Folder {
    let itself = std::fs::metadata(folder).ok().map(|about| (about.dev(), about.ino()));
    let file = |name: PathBuf| {
        let about = std::fs::metadata(folder.join(&name)).ok();
        (name, about.as_ref().map(file_of))
    };
    Folder { itself, files: scan::names(folder).map(|names| names.into_iter().map(file).collect()) }
}

fn file_of(about: &Metadata) -> File {
    let (content, status) = ((about.mtime(), about.mtime_nsec()), (about.ctime(), about.ctime_nsec()));
    (about.dev(), about.ino(), about.len(), content, status)
}
