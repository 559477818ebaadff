//! The cache of compiled code: files and folders that others could have written are not used, because cached code runs
//! with all rights of the process.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use js::{Engine, Settings};
use ports::Scripts;

use crate::support::engine;

fn start_engine(folder: &Path) {
    let settings = Settings { code_cache: Some(folder.to_owned()), threads: 1, ..Settings::default() };
    assert_eq!(Engine::start(&settings).unwrap().engine(), engine().engine());
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Returns the only file of the folder.
fn only_file(folder: &Path) -> PathBuf {
    let files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

/// Returns the inode and the modification time of a file. Both change if the file is written again.
fn identity(file: &Path) -> (u64, i64) {
    let metadata = fs::symlink_metadata(file).unwrap();
    (metadata.ino(), metadata.mtime_nsec())
}

#[test]
fn the_folder_and_its_files_are_private_and_reused() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("deep/code");
    start_engine(&folder);
    let file = only_file(&folder);
    assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
    let first = identity(&file);
    start_engine(&folder);
    assert_eq!(identity(&file), first, "the guest is compiled once");
    // The engine makes a folder private if other users may enter it.
    for open_mode in [0o777, 0o770, 0o755] {
        set_mode(&folder, open_mode);
        start_engine(&folder);
        assert_eq!(mode(&folder), 0o700, "{open_mode:o}");
    }
    assert_eq!(identity(&only_file(&folder)), first);
}

#[test]
fn a_file_that_others_could_have_written_is_compiled_again() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("code");
    start_engine(&folder);
    let file = only_file(&folder);
    let valid_code = fs::read(&file).unwrap();
    let elsewhere = home.path().join("elsewhere");
    fs::write(&elsewhere, &valid_code).unwrap();
    for case in ["others may write it", "the group may write it", "a link", "another user's", "a folder"] {
        // The code is valid each time. Only its owner or its mode is wrong.
        fs::remove_file(&file).unwrap();
        match case {
            "a link" => symlink(&elsewhere, &file).unwrap(),
            "a folder" => fs::create_dir(&file).unwrap(),
            _ => fs::write(&file, &valid_code).unwrap(),
        }
        match case {
            "others may write it" => set_mode(&file, 0o602),
            "the group may write it" => set_mode(&file, 0o620),
            // Only root can change the owner of a file.
            "another user's" if chown(&file, Some(65_534), None).is_err() => continue,
            _ => {}
        }
        let planted = identity(&file);
        start_engine(&folder);
        if case == "a folder" {
            assert!(file.is_dir(), "a folder cannot be replaced, so the code is not cached");
            continue;
        }
        assert_ne!(identity(&file), planted, "{case}");
        assert_eq!((mode(&file), mode(&folder)), (0o600, 0o700), "{case}");
    }
    assert!(fs::read(&elsewhere).unwrap() == valid_code);
}

#[test]
fn nothing_is_written_through_a_link_of_others() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("code");
    let precious = home.path().join("precious");
    fs::write(&precious, "mine").unwrap();
    start_engine(&folder);
    let file = only_file(&folder);
    fs::remove_file(&file).unwrap();
    symlink(&precious, file.with_extension(format!("{}.new", std::process::id()))).unwrap();
    start_engine(&folder);
    assert!(fs::read(&precious).unwrap() == b"mine");
    assert_eq!((only_file(&folder), mode(&file)), (file.clone(), 0o600));
}

#[test]
fn a_folder_of_another_user_is_not_used() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("code");
    let link = home.path().join("link");
    fs::create_dir(&folder).unwrap();
    symlink(&folder, &link).unwrap();
    start_engine(&link);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "a link");
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    start_engine(&file);
    // Only root can change the owner of a folder.
    if chown(&folder, Some(65_534), None).is_ok() {
        start_engine(&folder);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "another user's");
    }
}
