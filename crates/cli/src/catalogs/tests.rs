//! The watch on real folders: every way in which a file comes to change, with the system's watch and without it.

// why: a failed expectation is the test's own failure.
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

/// About a second is promised; the machine that runs this may be busy.
const PATIENCE: Duration = Duration::from_secs(10);

struct Watched {
    folder: PathBuf,
    offers: Arc<Mutex<Vec<Arc<Registry>>>>,
    _place: TempDir,
    _stop: DropGuard,
}

fn text(id: &str, version: u32) -> String {
    format!(
        "catalog: {id}\nversion: {version}\ntitle: T\norigin: http://x.localhost\nentities:\n  \
         A: {{about: a, key: [id], fields: {{id: string}}}}\ncapabilities:\n  a_list: {{query: A, http: GET /a, rows: data}}\n"
    )
}

impl Watched {
    fn new(polled: bool) -> Self {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("catalogs");
        fs::create_dir(&folder).unwrap();
        let (stop, offers) = (CancellationToken::new(), Arc::new(Mutex::new(Vec::new())));
        let (token, sink, folders) = (stop.clone(), offers.clone(), vec![folder.clone()]);
        let offer = move |registry| sink.lock().unwrap().push(registry);
        if polled {
            std::thread::spawn(move || watch::run(folders, CatalogSet::default(), |_| None, &token, &offer));
        } else {
            watch::start(folders, CatalogSet::default(), token, offer);
        }
        Self { folder, offers, _place: place, _stop: stop.drop_guard() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// `one@2, two@1`, and how many problems.
    fn now(&self) -> (String, usize) {
        let offers = self.offers.lock().unwrap();
        let Some(last) = offers.last() else { return Default::default() };
        let all: Vec<String> = last.iter().map(|c| format!("{}@{}", c.id, c.version)).collect();
        (all.join(", "), last.problems().len())
    }

    #[track_caller]
    fn becomes(&self, offered: &str, problems: usize) {
        let until = Instant::now() + PATIENCE;
        while self.now() != (offered.to_owned(), problems) {
            assert!(Instant::now() < until, "not {offered:?} with {problems} problems but {:?}", self.now());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// As careful editors do: beside it, then over it.
fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("tmp");
    fs::write(&beside, text).unwrap();
    fs::rename(beside, path).unwrap();
}

fn a_life(polled: bool) {
    let watched = Watched::new(polled);
    let one = watched.at("one.yaml");
    fs::write(&one, text("one", 1)).unwrap();
    watched.becomes("one@1", 0);
    replace(&one, &text("one", 2));
    watched.becomes("one@2", 0);
    fs::write(&one, "catalog: [\n").unwrap();
    watched.becomes("one@2", 1);
    fs::write(watched.at("two.yml"), text("two", 1)).unwrap();
    watched.becomes("one@2, two@1", 1);
    fs::write(&one, text("one", 3)).unwrap();
    watched.becomes("one@3, two@1", 0);
    fs::rename(watched.at("two.yml"), watched.at("renamed.yaml")).unwrap();
    fs::write(watched.at("rival.yaml"), text("two", 9)).unwrap();
    watched.becomes("one@3, two@1", 1);
    fs::remove_file(watched.at("rival.yaml")).unwrap();
    fs::remove_file(&one).unwrap();
    watched.becomes("two@1", 0);
}

#[test]
fn written_replaced_broken_repaired_renamed_and_removed() {
    a_life(false);
}

#[test]
fn the_same_where_the_system_watches_nothing() {
    a_life(true);
}

#[test]
fn a_config_map_is_swapped_as_a_whole() {
    let watched = Watched::new(false);
    for version in [1, 2] {
        let data = watched.at(&format!("..2024_{version}"));
        fs::create_dir(&data).unwrap();
        fs::write(data.join("one.yaml"), text("one", version)).unwrap();
        fs::write(data.join("two.yaml"), text("two", version)).unwrap();
    }
    symlink("..2024_1", watched.at("..data")).unwrap();
    symlink("..data/one.yaml", watched.at("one.yaml")).unwrap();
    symlink("..data/two.yaml", watched.at("two.yaml")).unwrap();
    watched.becomes("one@1, two@1", 0);
    symlink("..2024_2", watched.at("..data_tmp")).unwrap();
    fs::rename(watched.at("..data_tmp"), watched.at("..data")).unwrap();
    watched.becomes("one@2, two@2", 0);
    let mixed = |r: &Arc<Registry>| r.iter().map(|c| c.version).collect::<std::collections::BTreeSet<_>>().len() > 1;
    assert!(!watched.offers.lock().unwrap().iter().any(mixed), "half of one map with half of another");
}

#[test]
fn what_a_link_leads_to_is_followed() {
    let watched = Watched::new(false);
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("one.yaml");
    fs::write(&target, text("one", 1)).unwrap();
    symlink(&target, watched.at("one.yaml")).unwrap();
    watched.becomes("one@1", 0);
    fs::write(&target, text("one", 2)).unwrap();
    watched.becomes("one@2", 0);
    fs::remove_file(&target).unwrap();
    watched.becomes("one@2", 1);
}

#[test]
fn a_folder_that_goes_away_keeps_its_catalogs_and_is_found_again() {
    let watched = Watched::new(false);
    fs::write(watched.at("one.yaml"), text("one", 1)).unwrap();
    watched.becomes("one@1", 0);
    fs::rename(&watched.folder, watched.folder.with_extension("old")).unwrap();
    watched.becomes("one@1", 1);
    fs::create_dir(&watched.folder).unwrap();
    fs::write(watched.at("one.yaml"), text("one", 2)).unwrap();
    watched.becomes("one@2", 0);
    fs::write(watched.at("one.yaml"), text("one", 3)).unwrap();
    watched.becomes("one@3", 0);
}

#[test]
fn a_pipe_or_a_folder_hangs_nothing() {
    let watched = Watched::new(false);
    assert!(std::process::Command::new("mkfifo").arg(watched.at("pipe.yaml")).status().unwrap().success());
    fs::create_dir(watched.at("folder.yaml")).unwrap();
    fs::write(watched.at("one.yaml"), text("one", 1)).unwrap();
    watched.becomes("one@1", 2);
}

#[test]
fn a_slow_writer_never_takes_a_catalog_away() {
    let watched = Watched::new(false);
    fs::write(watched.at("one.yaml"), text("one", 1)).unwrap();
    watched.becomes("one@1", 0);
    let whole = text("one", 2);
    for end in (0..whole.len()).step_by(40) {
        fs::write(watched.at("one.yaml"), &whole[..end]).unwrap();
        std::thread::sleep(Duration::from_millis(60));
    }
    fs::write(watched.at("one.yaml"), &whole).unwrap();
    watched.becomes("one@2", 0);
    let versions: Vec<u32> = watched.offers.lock().unwrap().iter().map(|r| r.get("one").unwrap().version).collect();
    assert!(versions.is_sorted() && versions.iter().all(|v| [1, 2].contains(v)), "{versions:?}");
}

#[test]
fn nothing_is_offered_while_nothing_changes() {
    let watched = Watched::new(false);
    fs::write(watched.at("one.yaml"), text("one", 1)).unwrap();
    watched.becomes("one@1", 0);
    // Read by others, touched, written with the same words: the catalog is the same.
    fs::read(watched.at("one.yaml")).unwrap();
    fs::write(watched.at("one.yaml"), text("one", 1)).unwrap();
    fs::write(watched.at("notes.txt"), "x").unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(watched.offers.lock().unwrap().len(), 1);
}
