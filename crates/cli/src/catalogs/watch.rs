//! The thread that reloads catalogs when a file changes in the catalog folders.
//! Invariants: an event of the system's file watch only wakes the thread. Each second the thread also compares fingerprints (the metadata of
//! folders and files), because the file watch does not report changes in network folders, in the target of a link, or in a folder that
//! was replaced. A failure of this thread does not stop the server.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use catalog::{CatalogSet, FolderError, Registry};
use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio_util::sync::CancellationToken;

use super::settle::scan_until_settled;
use super::{Occasion, log_report, scan};

/// The shortest interval between two comparisons of fingerprints.
const TICK: Duration = Duration::from_secs(1);
/// The pause between two scans of the folders, of which the results must agree.
const SCAN_PAUSE: Duration = Duration::from_millis(150);
/// A reload starts when no event has arrived for this time, because one change causes several events.
const QUIET: Duration = Duration::from_millis(50);
/// A reload starts after this many further events, even if more events arrive.
const MAX_EVENTS: usize = 10;
/// The interval between two comparisons is at least this many times the duration of the last comparison, so that comparing a slow folder
/// takes at most a twentieth of the thread's time.
const TICK_PER_COMPARISON: u32 = 20;

/// Starts the thread. It passes each new registry to `offer` until `stop` is cancelled.
pub fn start(
    folders: Vec<PathBuf>,
    catalog_set: CatalogSet,
    stop: CancellationToken,
    offer: impl Fn(Arc<Registry>) + Send + 'static,
) {
    let watching = move || run(folders, catalog_set, system_watcher, &stop, &offer);
    if let Err(cause) = std::thread::Builder::new().name("catalogs".to_owned()).spawn(watching) {
        tracing::error!(%cause, "cannot start the thread that watches the catalog folders; restart the server after each change of a catalog");
    }
}

/// Watches the folders until `stop` is cancelled. `make_watcher` makes the system's file watch, or returns `None` in a test in which only
/// fingerprints are compared.
pub fn run(
    folders: Vec<PathBuf>,
    catalog_set: CatalogSet,
    make_watcher: impl FnOnce(SyncSender<()>) -> Option<RecommendedWatcher>,
    stop: &CancellationToken,
    offer: &impl Fn(Arc<Registry>),
) {
    // The channel has room for one event, because one event is enough to wake the thread.
    let (wake, events) = sync_channel(1);
    let watcher = make_watcher(wake.clone());
    CatalogWatch { folders, catalog_set, fingerprint: Fingerprint::of(&[]), watcher, _wake: wake }
        .run(&events, stop, offer);
}

struct CatalogWatch {
    folders: Vec<PathBuf>,
    /// The catalogs as of the last reload.
    catalog_set: CatalogSet,
    /// The fingerprint of the folders before the last reload.
    fingerprint: Fingerprint,
    /// The system's file watch. `None` if the system has none, so that only fingerprints are compared.
    watcher: Option<RecommendedWatcher>,
    /// A sender that keeps the channel open even without a watcher, because waiting on a closed channel would return at once.
    _wake: SyncSender<()>,
}

impl CatalogWatch {
    fn run(mut self, events: &Receiver<()>, stop: &CancellationToken, offer: &impl Fn(Arc<Registry>)) {
        let mut tick = Duration::ZERO;
        while !stop.is_cancelled() {
            let woken = events.recv_timeout(tick) != Err(RecvTimeoutError::Timeout);
            if woken {
                wait_for_quiet(events);
            }
            let started = Instant::now();
            // The fingerprint is taken before the scan. A change during the scan then makes the next fingerprint differ.
            let fingerprint = Fingerprint::of(&self.folders);
            tick = TICK.max(started.elapsed() * TICK_PER_COMPARISON);
            if woken || fingerprint != self.fingerprint {
                // A panic while one file is read must not end the watch. The catalogs that are offered stay offered.
                let reloaded = catch_unwind(AssertUnwindSafe(|| self.reload(fingerprint, offer)));
                if reloaded.is_err() {
                    tracing::error!(target: "tokamak::catalogs", "the reload of the catalogs panicked; the server still offers the catalogs of the last reload");
                }
            }
        }
    }

    fn reload(&mut self, fingerprint: Fingerprint, offer: &impl Fn(Arc<Registry>)) {
        if !fingerprint.same_folders(&self.fingerprint) {
            self.watch_folders();
        }
        self.fingerprint = fingerprint;
        let files = scan_until_settled(|| scan::scan_folders(&self.folders), || std::thread::sleep(SCAN_PAUSE));
        let (catalog_set, report) = self.catalog_set.reload(&files);
        if !report.is_empty() {
            offer(catalog_set.registry().clone());
            log_report(&report, Occasion::Reload);
        }
        self.catalog_set = catalog_set;
    }

    /// Registers the folders at the system's file watch. A path must be registered again after its folder was replaced.
    fn watch_folders(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        for folder in &self.folders {
            // The registration of a path belongs to the folder that was there before. If it has ended already, `unwatch` fails,
            // which has no consequence.
            let _ = watcher.unwatch(folder);
            if let Err(cause) = watcher.watch(folder, RecursiveMode::NonRecursive) {
                let folder = folder.display();
                tracing::warn!(%folder, %cause, "the system cannot watch this catalog folder; its files are compared each second instead");
            }
        }
    }
}

/// Makes the system's file watch. Each event that reports a change sends to the channel `wake`.
fn system_watcher(wake: SyncSender<()>) -> Option<RecommendedWatcher> {
    let on_event = move |event: notify::Result<notify::Event>| {
        // An error may mean that events were lost, so it counts as a change.
        if event.map_or(true, |event| is_change(event.kind)) {
            // If the channel is full, another event has woken the thread already.
            let _ = wake.try_send(());
        }
    };
    let watcher = notify::recommended_watcher(on_event);
    watcher
        .inspect_err(|cause| tracing::warn!(%cause, "the system cannot watch catalog folders; their files are compared each second instead"))
        .ok()
}

/// Returns whether an event reports a change of a file. Read access is no change, because otherwise each scan would cause the next scan.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

/// Waits until no event has arrived for `QUIET`, or until `MAX_EVENTS` events have arrived.
fn wait_for_quiet(events: &Receiver<()>) {
    for _ in 0..MAX_EVENTS {
        if events.recv_timeout(QUIET).is_err() {
            return;
        }
    }
}

/// The metadata of folders and their catalog files. It differs after every change of a file, of the target of a link, or of a folder.
/// A comparison of fingerprints is cheap, because no file is read.
#[derive(Debug, PartialEq, Eq)]
struct Fingerprint(Vec<FolderFingerprint>);

#[derive(Debug, PartialEq, Eq)]
struct FolderFingerprint {
    /// The device and the inode of the folder. `None` if the folder does not exist.
    identity: Option<(u64, u64)>,
    /// Each catalog file by its name. The metadata of a file is `None` if the file, or the target of the link, does not exist.
    files: Result<Vec<(PathBuf, Option<FileFingerprint>)>, FolderError>,
}

#[derive(Debug, PartialEq, Eq)]
struct FileFingerprint {
    device: u64,
    inode: u64,
    bytes: u64,
    /// The time of the last change of the content (mtime), in seconds and nanoseconds.
    content_changed: (i64, i64),
    /// The time of the last change of the content or the metadata (ctime). No program can set the ctime, while a copy may keep the mtime.
    status_changed: (i64, i64),
}

impl Fingerprint {
    fn of(folders: &[PathBuf]) -> Self {
        Self(folders.iter().map(|folder| FolderFingerprint::of(folder)).collect())
    }

    /// Returns whether both fingerprints are of the same folders, whatever files they contain. If a folder was replaced, the system still
    /// watches the old one.
    fn same_folders(&self, other: &Fingerprint) -> bool {
        self.0.iter().map(|folder| folder.identity).eq(other.0.iter().map(|folder| folder.identity))
    }
}

impl FolderFingerprint {
    fn of(folder: &Path) -> Self {
        let identity = std::fs::metadata(folder).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        let file = |name: PathBuf| {
            // `metadata` follows links, so that a change of the target is a change of the file.
            let metadata = std::fs::metadata(folder.join(&name)).ok();
            (name, metadata.as_ref().map(FileFingerprint::of))
        };
        let files = scan::catalog_file_names(folder).map(|names| names.into_iter().map(file).collect());
        Self { identity, files }
    }
}

impl FileFingerprint {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            content_changed: (metadata.mtime(), metadata.mtime_nsec()),
            status_changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}
