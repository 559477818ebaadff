//! Tests that the build of the guest is reproducible: a build in another folder has the same bytes, and so the engine
//! has the same name.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base::Digest;
use ports::Scripts;

use crate::guest_build::{BuildPaths, RELEASE_BUILD, build_guest};
use crate::support::engine;

/// Copies the files of a folder. The copies have the current time.
fn copy_folder(from: &Path, to: PathBuf) -> PathBuf {
    fs::create_dir_all(&to).unwrap();
    for file in fs::read_dir(from).unwrap().map(Result::unwrap).filter(|file| file.path().is_file()) {
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
        let copy = fs::File::options().write(true).open(to.join(file.file_name())).unwrap();
        copy.set_modified(SystemTime::now()).unwrap();
    }
    to
}

#[test]
fn a_guest_that_is_built_in_another_folder_has_the_same_bytes() {
    let elsewhere = tempfile::Builder::new().prefix("a much longer name than the other one, ").tempdir().unwrap();
    let folder = |name: &str| elsewhere.path().join(name);
    let original = BuildPaths::for_crate(Path::new(env!("CARGO_MANIFEST_DIR")), folder("work")).unwrap();
    let paths = BuildPaths {
        shim: copy_folder(&original.shim, folder("shim")),
        prelude: copy_folder(&original.prelude, folder("texts")),
        quickjs: copy_folder(&original.quickjs, folder("engine")),
        work: original.work,
    };
    let rebuilt = build_guest(&paths, &RELEASE_BUILD).unwrap();
    let guest = engine().guest().to_vec();
    assert_eq!(Digest::of(&rebuilt), Digest::of(&guest), "{} bytes and {}", rebuilt.len(), guest.len());
    let path = elsewhere.path().to_str().unwrap().as_bytes();
    assert!(!guest.windows(8).any(|bytes| bytes == b"/crates/"), "a path of the machine that built it");
    assert!(!rebuilt.windows(path.len()).any(|bytes| bytes == path), "a path of this machine");
}
