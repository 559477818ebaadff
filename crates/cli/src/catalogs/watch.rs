//! The thread that looks at the folders again when something changed there.
//! Invariant: the system's watch only wakes it up; each second it compares marks as well, because a watch hears nothing of
//! network folders, of what a link leads to, or of a folder that was replaced. Nothing here stops the server.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use catalog::{CatalogSet, Registry};
use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio_util::sync::CancellationToken;

use super::settle::settled;
use super::stamp::Stamp;
use super::{Level, say, scan};

const TICK: Duration = Duration::from_secs(1);
/// Between two looks that must agree.
const PAUSE: Duration = Duration::from_millis(150);
/// Of silence after the system said that something changed, and how often it may be broken.
const QUIET: Duration = Duration::from_millis(50);
const MOST_NOISE: usize = 10;
/// A comparison of marks takes a twentieth of the time at most, however slow the folder is.
const SHARE: u32 = 20;

/// Passes each new registry to `offer` until `stop`.
pub fn start(
    folders: Vec<PathBuf>,
    shelf: CatalogSet,
    stop: CancellationToken,
    offer: impl Fn(Arc<Registry>) + Send + 'static,
) {
    let watching = move || run(folders, shelf, watcher, &stop, &offer);
    if let Err(cause) = std::thread::Builder::new().name("catalogs".to_owned()).spawn(watching) {
        tracing::error!(%cause, "catalogs are not watched: a change needs a restart");
    }
}

/// `listen` makes the system's watch, where there is one.
pub fn run(
    folders: Vec<PathBuf>,
    shelf: CatalogSet,
    listen: impl FnOnce(SyncSender<()>) -> Option<RecommendedWatcher>,
    stop: &CancellationToken,
    offer: &impl Fn(Arc<Registry>),
) {
    // One wake-up that waits is as good as many; and with a sender here the channel never closes.
    let (wake, woken) = sync_channel(1);
    let (watcher, stamp) = (listen(wake.clone()), Stamp::of(&[]));
    Watch { folders, shelf, stamp, watcher, _wake: wake }.run(&woken, stop, offer);
}

struct Watch {
    folders: Vec<PathBuf>,
    shelf: CatalogSet,
    /// Of the folders when they were last looked at.
    stamp: Stamp,
    watcher: Option<RecommendedWatcher>,
    _wake: SyncSender<()>,
}

impl Watch {
    fn run(mut self, woken: &Receiver<()>, stop: &CancellationToken, offer: &impl Fn(Arc<Registry>)) {
        let mut tick = Duration::ZERO;
        while !stop.is_cancelled() {
            let heard = woken.recv_timeout(tick) != Err(RecvTimeoutError::Timeout);
            if heard {
                wait_for_quiet(woken);
            }
            let started = Instant::now();
            // Marked before the look, so that what changes during it is seen at the next tick.
            let stamp = Stamp::of(&self.folders);
            tick = TICK.max(started.elapsed() * SHARE);
            if heard || stamp != self.stamp {
                // A defect of ours on one file's content must not end the watch; what was offered stays.
                let looked = catch_unwind(AssertUnwindSafe(|| self.look(stamp, offer)));
                if looked.is_err() {
                    tracing::error!(target: "tokamak::catalogs", "a reload broke off; the catalogs stay as they were");
                }
            }
        }
    }

    fn look(&mut self, stamp: Stamp, offer: &impl Fn(Arc<Registry>)) {
        if !stamp.same_folders(&self.stamp) {
            self.arm();
        }
        self.stamp = stamp;
        let found = settled(|| scan::folders(&self.folders), || std::thread::sleep(PAUSE));
        let (shelf, report) = self.shelf.reload(&found);
        if !report.is_empty() {
            offer(shelf.registry().clone());
            say(&report, Level::Reload);
        }
        self.shelf = shelf;
    }

    /// Asks the system to tell about the folders, as they are now.
    fn arm(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        for folder in &self.folders {
            // The watch of a folder that was replaced stays with the old one, and may be gone already.
            let _ = watcher.unwatch(folder);
            if let Err(cause) = watcher.watch(folder, RecursiveMode::NonRecursive) {
                let folder = folder.display();
                tracing::warn!(%folder, %cause, "the system does not watch this folder; it is compared each second");
            }
        }
    }
}

fn watcher(wake: SyncSender<()>) -> Option<RecommendedWatcher> {
    let told = move |event: notify::Result<notify::Event>| {
        // An error may be a queue that ran over: something changed.
        if event.map_or(true, |event| is_change(event.kind)) {
            // Full: it will wake up anyway.
            let _ = wake.try_send(());
        }
    };
    let made = notify::recommended_watcher(told);
    made.inspect_err(|cause| tracing::warn!(%cause, "the system watches no folders; they are compared each second"))
        .ok()
}

/// Reading is no change; our own looks would wake us up for ever.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

fn wait_for_quiet(woken: &Receiver<()>) {
    for _ in 0..MOST_NOISE {
        if woken.recv_timeout(QUIET).is_err() {
            return;
        }
    }
}
