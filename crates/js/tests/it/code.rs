//! The folder of compiled code. What is in it runs with all our rights: it is nobody else's, and what others could have
//! written there is not run.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use js::{Engine, Settings};
use ports::Scripts;

use crate::support::engine;

fn start(folder: &Path) {
    let settings = Settings { code: Some(folder.to_owned()), threads: 1, ..Settings::default() };
    assert_eq!(Engine::start(&settings).unwrap().engine(), engine().engine());
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The one file that is there.
fn only(folder: &Path) -> PathBuf {
    let files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

/// Who made it, and when: another file has another one.
fn made(file: &Path) -> (u64, i64) {
    let about = fs::symlink_metadata(file).unwrap();
    (about.ino(), about.mtime_nsec())
}

#[test]
fn the_folder_and_its_files_are_private_and_are_used_again() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("deep/code");
    start(&folder);
    let file = only(&folder);
    assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
    let first = made(&file);
    start(&folder);
    assert_eq!(made(&file), first, "it is compiled once");
    // A folder that was opened to others is closed again.
    for open in [0o777, 0o770, 0o755] {
        allow(&folder, open);
        start(&folder);
        assert_eq!(mode(&folder), 0o700, "{open:o}");
    }
    assert_eq!(made(&only(&folder)), first);
}

#[test]
fn a_file_that_others_could_have_written_is_not_run_but_made_again() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("code");
    start(&folder);
    let file = only(&folder);
    let (sound, elsewhere) = (fs::read(&file).unwrap(), home.path().join("elsewhere"));
    fs::write(&elsewhere, &sound).unwrap();
    for how in
        ["others may write it", "the group may write it", "it leads elsewhere", "it is another user's", "a folder"]
    {
        // Sound code each time: only whose it is tells against it.
        fs::remove_file(&file).unwrap();
        match how {
            "it leads elsewhere" => symlink(&elsewhere, &file).unwrap(),
            "a folder" => fs::create_dir(&file).unwrap(),
            _ => fs::write(&file, &sound).unwrap(),
        }
        match how {
            "others may write it" => allow(&file, 0o602),
            "the group may write it" => allow(&file, 0o620),
            // Only root can give a file away.
            "it is another user's" if chown(&file, Some(65_534), None).is_err() => continue,
            _ => {}
        }
        let planted = made(&file);
        start(&folder);
        if how == "a folder" {
            assert!(file.is_dir(), "it cannot be replaced, and is not what is run");
            continue;
        }
        assert_ne!(made(&file), planted, "{how}");
        assert_eq!((mode(&file), mode(&folder)), (0o600, 0o700), "{how}");
    }
    assert!(fs::read(&elsewhere).unwrap() == sound);
}

#[test]
fn nothing_is_written_through_what_others_have_put_there() {
    let home = tempfile::tempdir().unwrap();
    let (folder, precious) = (home.path().join("code"), home.path().join("precious"));
    fs::write(&precious, "mine").unwrap();
    start(&folder);
    let file = only(&folder);
    fs::remove_file(&file).unwrap();
    symlink(&precious, file.with_extension(format!("{}.new", std::process::id()))).unwrap();
    start(&folder);
    assert!(fs::read(&precious).unwrap() == b"mine");
    assert_eq!((only(&folder), mode(&file)), (file.clone(), 0o600));
}

#[test]
fn a_folder_that_is_not_ours_is_not_used() {
    let home = tempfile::tempdir().unwrap();
    let (folder, link) = (home.path().join("code"), home.path().join("link"));
    fs::create_dir(&folder).unwrap();
    symlink(&folder, &link).unwrap();
    start(&link);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "a name that leads elsewhere");
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    start(&file);
    // Only root can give a folder away.
    if chown(&folder, Some(65_534), None).is_ok() {
        start(&folder);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "another user's");
    }
}
