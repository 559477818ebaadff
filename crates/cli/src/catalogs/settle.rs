//! Looks until what is there stands still: an editor or a copy may be in the middle of writing.
//! Invariant: it ends, and what still changes then is passed on as changing, so that its last good version stays.

use std::collections::BTreeMap;

use catalog::{FileError, FileScan, FolderScan};

/// Of looks that differ from the one before. A file that changes for longer, a log perhaps, must not hold up the others.
const ROUNDS: usize = 10;

/// What two looks in a row found, with a `pause` between them.
pub fn settled(mut look: impl FnMut() -> Vec<FolderScan>, mut pause: impl FnMut()) -> Vec<FolderScan> {
    let mut last = look();
    for round in 1.. {
        pause();
        let next = look();
        if next == last {
            return next;
        }
        if round == ROUNDS {
            return without_moving(&last, next);
        }
        last = next;
    }
    last
}

fn without_moving(last: &[FolderScan], next: Vec<FolderScan>) -> Vec<FolderScan> {
    let files = last.iter().flat_map(|folder| folder.files.iter().flatten());
    let seen: BTreeMap<&String, &FileScan> = files.map(|file| (&file.file, file)).collect();
    let still = |file: FileScan| match seen.get(&file.file) {
        Some(same) if **same == file => file,
        _ => FileScan { text: Err(FileError::Changing), ..file },
    };
    let folder = |folder: FolderScan| FolderScan {
        files: folder.files.map(|files| files.into_iter().map(still).collect()),
        ..folder
    };
    next.into_iter().map(folder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[(&str, &str)]) -> Vec<FolderScan> {
        let file = |(name, text): &(&str, &str)| FileScan { file: (*name).to_owned(), text: Ok((*text).to_owned()) };
        vec![FolderScan { folder: "dir".to_owned(), files: Ok(texts.iter().map(file).collect()) }]
    }

    #[test]
    fn a_file_that_is_being_written_is_waited_for() {
        let mut looks =
            [found(&[]), found(&[("a", "ha")]), found(&[("a", "half")]), found(&[("a", "half")])].into_iter();
        let settled = settled(|| looks.next().unwrap_or_default(), || {});
        assert_eq!((settled, looks.len()), (found(&[("a", "half")]), 0));
    }

    #[test]
    fn one_that_never_stands_still_does_not_hold_up_the_others() {
        let mut n = 0;
        let settled = settled(
            || {
                n += 1;
                found(&[("a", "still"), ("log", &n.to_string())])
            },
            || {},
        );
        let mut expected = found(&[("a", "still"), ("log", "")]);
        if let Ok(files) = &mut expected[0].files {
            files[1].text = Err(FileError::Changing);
        }
        assert_eq!((settled, n), (expected, ROUNDS + 1));
    }
}
