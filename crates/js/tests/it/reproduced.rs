//! The guest is what its sources say: made again elsewhere, it has the same bytes, and so the same name.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base::Digest;
use ports::Scripts;

use crate::guest_build::{OURS, Places, make};
use crate::support::engine;

/// A folder somewhere else with the same files in it, which are all from today.
fn copied(from: &Path, to: PathBuf) -> PathBuf {
    fs::create_dir_all(&to).unwrap();
    for file in fs::read_dir(from).unwrap().map(Result::unwrap).filter(|file| file.path().is_file()) {
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
        let copy = fs::File::options().write(true).open(to.join(file.file_name())).unwrap();
        copy.set_modified(SystemTime::now()).unwrap();
    }
    to
}

#[test]
fn the_guest_made_again_in_another_folder_is_the_same_to_the_byte() {
    let elsewhere = tempfile::Builder::new().prefix("a much longer name than the other one, ").tempdir().unwrap();
    let there = |name: &str| elsewhere.path().join(name);
    let built = Places::of(Path::new(env!("CARGO_MANIFEST_DIR")), there("work")).unwrap();
    let places = Places {
        shim: copied(&built.shim, there("shim")),
        prelude: copied(&built.prelude, there("texts")),
        quickjs: copied(&built.quickjs, there("engine")),
        work: built.work,
    };
    let again = make(&places, &OURS).unwrap();
    let guest = engine().guest().to_vec();
    assert_eq!(Digest::of(&again), Digest::of(&guest), "{} bytes and {}", again.len(), guest.len());
    let path = elsewhere.path().to_str().unwrap().as_bytes();
    assert!(!guest.windows(8).any(|bytes| bytes == b"/crates/"), "a path of the machine that built it");
    assert!(!again.windows(path.len()).any(|bytes| bytes == path), "a path of this machine");
}
