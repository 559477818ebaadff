//! The thread that reloads catalogs when something changes in their folders.
//! Invariant: the system's file watch only wakes the thread up. Each second it also compares fingerprints, because the file watch does
//! not report changes in network folders, in the target of a link, or in a folder that was replaced. No failure here stops the server.

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

use super::settle::settled;
use super::{Occasion, log_report, scan};

/// The interval between two comparisons of fingerprints.
const TICK: Duration = Duration::from_secs(1);
/// The pause between two scans that must agree.
const SCAN_PAUSE: Duration = Duration::from_millis(150);
/// A reload waits until no event arrived for `QUIET`, but at most for `MAX_EVENTS` further events.
const QUIET: Duration = Duration::from_millis(50);
const MAX_EVENTS: usize = 10;
/// The interval is at least so many times as long as a comparison took, so that a slow folder costs a twentieth of the time at most.
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
        tracing::error!(%cause, "cannot watch the catalogs; restart the server after a change");
    }
}

/// Watches until `stop` is cancelled. `make_watcher` makes the system's file watch, or none for a test of polling alone.
pub fn run(
    folders: Vec<PathBuf>,
    catalog_set: CatalogSet,
    make_watcher: impl FnOnce(SyncSender<()>) -> Option<RecommendedWatcher>,
    stop: &CancellationToken,
    offer: &impl Fn(Arc<Registry>),
) {
    // One place is enough, because one event that waits wakes the thread as well as many.
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
    watcher: Option<RecommendedWatcher>,
    /// A sender that keeps the channel open if there is no watcher: waiting on a closed channel would return at once.
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
            // Taken before the scan, so that a change during the scan differs from it at the next tick.
            let fingerprint = Fingerprint::of(&self.folders);
            tick = TICK.max(started.elapsed() * TICK_PER_COMPARISON);
            if woken || fingerprint != self.fingerprint {
                // A panic on the content of one file must not end the watch. The offered catalogs stay.
                let reloaded = catch_unwind(AssertUnwindSafe(|| self.reload(fingerprint, offer)));
                if reloaded.is_err() {
                    tracing::error!(target: "tokamak::catalogs", "a reload hit a defect; the offered catalogs stay as they were");
                }
            }
        }
    }

    fn reload(&mut self, fingerprint: Fingerprint, offer: &impl Fn(Arc<Registry>)) {
        if !fingerprint.same_folders(&self.fingerprint) {
            self.watch_folders();
        }
        self.fingerprint = fingerprint;
        let files = settled(|| scan::folders(&self.folders), || std::thread::sleep(SCAN_PAUSE));
        let (catalog_set, report) = self.catalog_set.reload(&files);
        if !report.is_empty() {
            offer(catalog_set.registry().clone());
            log_report(&report, Occasion::Reload);
        }
        self.catalog_set = catalog_set;
    }

    /// Makes the system watch the folders that have these paths now.
    fn watch_folders(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        for folder in &self.folders {
            // The watch of a folder that was replaced belongs to the old folder. It may have ended already, which is no problem.
            let _ = watcher.unwatch(folder);
            if let Err(cause) = watcher.watch(folder, RecursiveMode::NonRecursive) {
                let folder = folder.display();
                tracing::warn!(%folder, %cause, "cannot watch this folder; it is compared each second instead");
            }
        }
    }
}

/// Makes the system's file watch. Each event puts a token into the channel.
fn system_watcher(wake: SyncSender<()>) -> Option<RecommendedWatcher> {
    let on_event = move |event: notify::Result<notify::Event>| {
        // An error may mean that events were lost, so it counts as a change.
        if event.map_or(true, |event| is_change(event.kind)) {
            // If the channel is full, the thread wakes up anyway.
            let _ = wake.try_send(());
        }
    };
    let watcher = notify::recommended_watcher(on_event);
    watcher
        .inspect_err(|cause| tracing::warn!(%cause, "cannot watch folders; they are compared each second instead"))
        .ok()
}

/// Returns whether an event reports a change. Reading does not count, or each scan would cause the next one.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

/// Waits until no event arrives for a moment, because most changes cause several events.
fn wait_for_quiet(events: &Receiver<()>) {
    for _ in 0..MAX_EVENTS {
        if events.recv_timeout(QUIET).is_err() {
            return;
        }
    }
}

/// The metadata of folders and their catalog files, which changes with every change of a file, of the target of a link, or of a folder.
/// It is cheap, because no file is read.
#[derive(Debug, PartialEq, Eq)]
struct Fingerprint(Vec<FolderFingerprint>);

#[derive(Debug, PartialEq, Eq)]
struct FolderFingerprint {
    /// Device and inode of the folder. `None` if it does not exist.
    identity: Option<(u64, u64)>,
    files: Result<Vec<(PathBuf, Option<FileFingerprint>)>, FolderError>,
}

#[derive(Debug, PartialEq, Eq)]
struct FileFingerprint {
    device: u64,
    inode: u64,
    bytes: u64,
    /// The time of the last change of the content, in seconds and nanoseconds.
    content_changed: (i64, i64),
    /// The time of the last change of the content or the metadata. Unlike the time above, no program can set it.
    status_changed: (i64, i64),
}

impl Fingerprint {
    fn of(folders: &[PathBuf]) -> Self {
        Self(folders.iter().map(|folder| FolderFingerprint::of(folder)).collect())
    }

    /// Returns whether these are the same folders, whatever is in them. If not, the system watches the old ones.
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
        let files = scan::names(folder).map(|names| names.into_iter().map(file).collect());
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
