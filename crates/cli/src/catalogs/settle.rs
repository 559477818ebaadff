//! Scans folders until two scans in a row agree, because an editor may be in the middle of writing a file.
//! Invariant: the number of scans is limited. A file that still changes at the limit is reported as changing, so that its last valid
//! version stays offered.

use std::collections::BTreeMap;

use catalog::{FileError, FileScan, FolderScan};

/// The number of scans in a row that may differ from the previous scan. After that the result is used, because a file that changes all
/// the time, such as a log file, must not delay the other files.
const MAX_ROUNDS: usize = 10;

/// Calls `scan` until two results in a row agree, and returns that result. `pause` is called between two scans.
pub fn scan_until_settled(mut scan: impl FnMut() -> Vec<FolderScan>, mut pause: impl FnMut()) -> Vec<FolderScan> {
    let mut last = scan();
    for round in 1.. {
        pause();
        let next = scan();
        if next == last {
            return next;
        }
        if round == MAX_ROUNDS {
            return mark_changing(&last, next);
        }
        last = next;
    }
    last
}

/// Returns the scan `next` with an error `Changing` in place of each text that differs from the scan `last`.
fn mark_changing(last: &[FolderScan], next: Vec<FolderScan>) -> Vec<FolderScan> {
    let files = last.iter().flat_map(|folder| folder.files.iter().flatten());
    let before: BTreeMap<&String, &FileScan> = files.map(|file| (&file.file, file)).collect();
    let mark_file = |file: FileScan| match before.get(&file.file) {
        Some(unchanged) if **unchanged == file => file,
        _ => FileScan { text: Err(FileError::Changing), ..file },
    };
    let mark_folder = |folder: FolderScan| FolderScan {
        files: folder.files.map(|files| files.into_iter().map(mark_file).collect()),
        ..folder
    };
    next.into_iter().map(mark_folder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(texts: &[(&str, &str)]) -> Vec<FolderScan> {
        let file = |(name, text): &(&str, &str)| FileScan { file: (*name).to_owned(), text: Ok((*text).to_owned()) };
        vec![FolderScan { folder: "dir".to_owned(), files: Ok(texts.iter().map(file).collect()) }]
    }

    #[test]
    fn a_file_that_is_being_written_is_waited_for() {
        let mut scans = [
            folder_with(&[]),
            folder_with(&[("a", "ha")]),
            folder_with(&[("a", "half")]),
            folder_with(&[("a", "half")]),
        ]
        .into_iter();
        let settled = scan_until_settled(|| scans.next().unwrap_or_default(), || {});
        assert_eq!((settled, scans.len()), (folder_with(&[("a", "half")]), 0));
    }

    #[test]
    fn a_file_that_keeps_changing_does_not_delay_the_others() {
        let mut scans = 0;
        let settled = scan_until_settled(
            || {
                scans += 1;
                folder_with(&[("a", "unchanged"), ("log", &scans.to_string())])
            },
            || {},
        );
        let mut expected = folder_with(&[("a", "unchanged"), ("log", "")]);
        if let Ok(files) = &mut expected[0].files {
            files[1].text = Err(FileError::Changing);
        }
        assert_eq!((settled, scans), (expected, MAX_ROUNDS + 1));
    }
}
