//! Tests of the catalog watch on real folders: every way in which a file can change, with and without the system's file watch.

// why: in a test, a panic is the way to fail.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use catalog::{CatalogSet, Registry};
use tempfile::TempDir;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::watch;

/// A change is offered within about a second, but the machine that runs this test may be busy.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A temporary catalog folder with a running watch.
struct WatchedFolder {
    folder: PathBuf,
    /// The registries that the watch has offered so far.
    offers: Arc<Mutex<Vec<Arc<Registry>>>>,
    _parent: TempDir,
    _stop: DropGuard,
}

fn text(id: &str, version: u32) -> String {
    format!(
        "catalog: {id}\nversion: {version}\ntitle: T\norigin: http://x.localhost\nentities:\n  \
         A: {{about: a, key: [id], fields: {{id: string}}}}\ncapabilities:\n  a_list: {{query: A, http: GET /a, rows: data}}\n"
    )
}

impl WatchedFolder {
    fn new(polled: bool) -> Self {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("catalogs");
        fs::create_dir(&folder).unwrap();
        let stop = CancellationToken::new();
        let watch_stop = stop.clone();
        let offers = Arc::new(Mutex::new(Vec::new()));
        let watch_offers = offers.clone();
        let offer = move |registry| watch_offers.lock().unwrap().push(registry);
        let folders = vec![folder.clone()];
        if polled {
            std::thread::spawn(move || watch::run(folders, CatalogSet::default(), |_| None, &watch_stop, &offer));
        } else {
            watch::start(folders, CatalogSet::default(), watch_stop, offer);
        }
        Self { folder, offers, _parent: parent, _stop: stop.drop_guard() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the offered catalogs with their versions, such as `one@2, two@1`, and the number of problems in the registry.
    fn offered(&self) -> (String, usize) {
        let offers = self.offers.lock().unwrap();
        let Some(last) = offers.last() else { return Default::default() };
        let all: Vec<String> = last.iter().map(|c| format!("{}@{}", c.id, c.version)).collect();
        (all.join(", "), last.problems().len())
    }

    #[track_caller]
    fn wait_for(&self, offered: &str, problems: usize) {
        let deadline = Instant::now() + TIMEOUT;
        while self.offered() != (offered.to_owned(), problems) {
            assert!(Instant::now() < deadline, "not {offered:?} with {problems} problems but {:?}", self.offered());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Replaces a file as editors do: a new file is written, and then renamed over the old one.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("tmp");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

fn follow_all_changes(polled: bool) {
    let watched = WatchedFolder::new(polled);
    let one = watched.path("one.yaml");
    fs::write(&one, text("one", 1)).unwrap();
    watched.wait_for("one@1", 0);
    replace(&one, &text("one", 2));
    watched.wait_for("one@2", 0);
    fs::write(&one, "catalog: [\n").unwrap();
    watched.wait_for("one@2", 1);
    fs::write(watched.path("two.yml"), text("two", 1)).unwrap();
    watched.wait_for("one@2, two@1", 1);
    fs::write(&one, text("one", 3)).unwrap();
    watched.wait_for("one@3, two@1", 0);
    fs::rename(watched.path("two.yml"), watched.path("renamed.yaml")).unwrap();
    fs::write(watched.path("rival.yaml"), text("two", 9)).unwrap();
    watched.wait_for("one@3, two@1", 1);
    fs::remove_file(watched.path("rival.yaml")).unwrap();
    fs::remove_file(&one).unwrap();
    watched.wait_for("two@1", 0);
}

#[test]
fn every_kind_of_change_is_offered() {
    follow_all_changes(false);
}

#[test]
fn every_kind_of_change_is_offered_by_polling_alone() {
    follow_all_changes(true);
}

#[test]
fn a_kubernetes_config_map_is_replaced_as_a_whole() {
    let watched = WatchedFolder::new(false);
    for version in [1, 2] {
        let data = watched.path(&format!("..2024_{version}"));
        fs::create_dir(&data).unwrap();
        fs::write(data.join("one.yaml"), text("one", version)).unwrap();
        fs::write(data.join("two.yaml"), text("two", version)).unwrap();
    }
    symlink("..2024_1", watched.path("..data")).unwrap();
    symlink("..data/one.yaml", watched.path("one.yaml")).unwrap();
    symlink("..data/two.yaml", watched.path("two.yaml")).unwrap();
    watched.wait_for("one@1, two@1", 0);
    symlink("..2024_2", watched.path("..data_tmp")).unwrap();
    fs::rename(watched.path("..data_tmp"), watched.path("..data")).unwrap();
    watched.wait_for("one@2, two@2", 0);
    let mixed = |r: &Arc<Registry>| r.iter().map(|c| c.version).collect::<std::collections::BTreeSet<_>>().len() > 1;
    assert!(!watched.offers.lock().unwrap().iter().any(mixed), "a registry has files of both versions of the map");
}

#[test]
fn changes_of_the_target_of_a_link_are_offered() {
    let watched = WatchedFolder::new(false);
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("one.yaml");
    fs::write(&target, text("one", 1)).unwrap();
    symlink(&target, watched.path("one.yaml")).unwrap();
    watched.wait_for("one@1", 0);
    fs::write(&target, text("one", 2)).unwrap();
    watched.wait_for("one@2", 0);
    fs::remove_file(&target).unwrap();
    watched.wait_for("one@2", 1);
}

#[test]
fn a_folder_that_is_removed_keeps_its_catalogs_and_may_come_back() {
    let watched = WatchedFolder::new(false);
    fs::write(watched.path("one.yaml"), text("one", 1)).unwrap();
    watched.wait_for("one@1", 0);
    fs::rename(&watched.folder, watched.folder.with_extension("old")).unwrap();
    watched.wait_for("one@1", 1);
    fs::create_dir(&watched.folder).unwrap();
    fs::write(watched.path("one.yaml"), text("one", 2)).unwrap();
    watched.wait_for("one@2", 0);
    fs::write(watched.path("one.yaml"), text("one", 3)).unwrap();
    watched.wait_for("one@3", 0);
}

#[test]
fn a_pipe_or_a_folder_does_not_block_the_watch() {
    let watched = WatchedFolder::new(false);
    assert!(std::process::Command::new("mkfifo").arg(watched.path("pipe.yaml")).status().unwrap().success());
    fs::create_dir(watched.path("folder.yaml")).unwrap();
    fs::write(watched.path("one.yaml"), text("one", 1)).unwrap();
    watched.wait_for("one@1", 2);
}

#[test]
fn a_file_that_is_written_slowly_keeps_its_last_valid_version() {
    let watched = WatchedFolder::new(false);
    fs::write(watched.path("one.yaml"), text("one", 1)).unwrap();
    watched.wait_for("one@1", 0);
    let whole = text("one", 2);
    for end in (0..whole.len()).step_by(40) {
        fs::write(watched.path("one.yaml"), &whole[..end]).unwrap();
        std::thread::sleep(Duration::from_millis(60));
    }
    fs::write(watched.path("one.yaml"), &whole).unwrap();
    watched.wait_for("one@2", 0);
    let versions: Vec<u32> = watched.offers.lock().unwrap().iter().map(|r| r.get("one").unwrap().version).collect();
    assert!(versions.is_sorted() && versions.iter().all(|v| [1, 2].contains(v)), "{versions:?}");
}

#[test]
fn an_unchanged_catalog_is_not_offered_again() {
    let watched = WatchedFolder::new(false);
    fs::write(watched.path("one.yaml"), text("one", 1)).unwrap();
    watched.wait_for("one@1", 0);
    // The file is read, touched and written with the same text, so the catalog stays the same.
    fs::read(watched.path("one.yaml")).unwrap();
    fs::write(watched.path("one.yaml"), text("one", 1)).unwrap();
    fs::write(watched.path("notes.txt"), "x").unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(watched.offers.lock().unwrap().len(), 1);
}
