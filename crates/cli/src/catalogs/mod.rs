//! The catalogs of a configuration: those in the binary, and the folders, which are looked at again while the server runs.
//! Invariant: what is offered is decided by `catalog::CatalogSet`; here files are read, and what came of them is said.

mod scan;
mod settle;
mod stamp;
#[cfg(test)]
mod tests;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use catalog::{Catalog, CatalogChange, CatalogProblem, CatalogSet, Registry, ReloadReport};
use session::Service;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::failure::Failure;
use crate::shipped;

/// As they were found at the start.
pub struct Catalogs {
    folders: Vec<PathBuf>,
    shelf: CatalogSet,
    report: ReloadReport,
}

impl Catalogs {
    /// A folder that is not there is a mistake in the settings and fails. A file that cannot be used is skipped and kept as
    /// a problem: one mistake in one file must not take the other APIs away, least of all when a server comes back after a
    /// crash.
    pub fn load(config: &Config) -> Result<Self, Failure> {
        let mut shipped = shipped::all(config.demo)?;
        shipped.retain(|own| !config.imported.iter().any(|imported| imported.id == own.id));
        shipped.extend(config.imported.iter().cloned());
        listable(&config.catalogs)?;
        let (shelf, report) = CatalogSet::new(shipped).reload(&scan::folders(&config.catalogs));
        let catalogs = Self { folders: config.catalogs.clone(), shelf, report };
        if config.strict_catalogs { catalogs.or_refuse() } else { Ok(catalogs) }
    }

    /// Itself, unless something could not be offered.
    fn or_refuse(self) -> Result<Self, Failure> {
        match self.problems() {
            [] => Ok(self),
            problems => Err(Failure::Catalogs(problems.to_vec())),
        }
    }

    pub fn registry(&self) -> Arc<Registry> {
        self.shelf.registry().clone()
    }

    /// In the order of their ids, each with the file that it is from; none is one of the binary's own.
    pub fn offered(&self) -> Vec<(Arc<Catalog>, Option<String>)> {
        let mut found: Vec<(Arc<Catalog>, Option<String>)> =
            self.shelf.offered().map(|(catalog, file)| (catalog.clone(), file.map(str::to_owned))).collect();
        found.sort_by(|a, b| a.0.id.cmp(&b.0.id));
        found
    }

    pub fn problems(&self) -> &[CatalogProblem] {
        self.shelf.registry().problems()
    }

    /// Shipped catalogs that a file stands in for.
    pub fn replaced(&self) -> impl Iterator<Item = &CatalogChange> {
        self.report.changes.iter().filter(|change| matches!(change, CatalogChange::InsteadOfShipped { .. }))
    }

    /// Says what was found at the start, and offers through `service` whatever the folders hold from now on.
    pub fn watch(self, service: Arc<Service>, stop: CancellationToken) {
        let Self { folders, shelf, report } = self;
        say(&report, Level::Start);
        if !folders.is_empty() {
            watch::start(folders, shelf, stop, move |registry| service.offer(registry));
        }
    }
}

/// Every catalog of these folders; the first that cannot be used is a failure.
pub fn all_of(folders: &[PathBuf]) -> Result<Vec<Arc<Catalog>>, Failure> {
    listable(folders)?;
    let (shelf, report) = CatalogSet::default().reload(&scan::folders(folders));
    let loaded = Catalogs { folders: Vec::new(), shelf, report }.or_refuse()?;
    Ok(loaded.shelf.registry().iter().cloned().collect())
}

fn listable(folders: &[PathBuf]) -> Result<(), Failure> {
    let list = |path: &Path| {
        std::fs::read_dir(path).map(drop).map_err(|cause| match cause.kind() {
            std::io::ErrorKind::NotFound => Failure::Missing { path: path.to_owned() },
            _ => Failure::Unreadable { path: path.to_owned(), cause },
        })
    };
    folders.iter().try_for_each(|folder| list(folder))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// That everything is offered for the first time is no news.
    Start,
    Reload,
}

/// To the log: each mistake with its place, what is wrong and what to write.
fn say(report: &ReloadReport, level: Level) {
    for change in &report.changes {
        if level == Level::Reload || matches!(change, CatalogChange::InsteadOfShipped { .. }) {
            tracing::info!(target: "tokamak::catalogs", "{change}");
        }
    }
    for problem in &report.problems {
        let kept = problem.kept.as_ref().map(|(id, version)| format!("{id} version {version}"));
        for line in problem.lines() {
            tracing::warn!(target: "tokamak::catalogs", kept, "{line}");
        }
    }
    for place in &report.repaired {
        tracing::info!(target: "tokamak::catalogs", "{place} is in order again");
    }
}
