//! The catalogs of a configuration: the shipped catalogs, and the catalog files of folders that are watched while the server runs.
//! Invariant: this module only reads files and logs the changes. `catalog::CatalogSet` decides which catalogs are offered.

mod scan;
mod settle;
#[cfg(test)]
mod tests;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;

use catalog::{Catalog, CatalogChange, CatalogProblem, CatalogSet, Registry, ReloadReport};
use session::Service;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::failure::Failure;
use crate::shipped;

/// The catalogs that a process loads at its start.
pub struct Catalogs {
    folders: Vec<PathBuf>,
    catalog_set: CatalogSet,
    /// The report of the first load: the shipped catalogs that a file replaced, and the files that cannot be offered.
    report: ReloadReport,
}

impl Catalogs {
    /// Loads all catalogs. A folder that does not exist is an error, because the settings name it. A file with a mistake is only a
    /// problem in the report, because the server must still offer the other APIs.
    pub fn load(config: &Config) -> Result<Self, Failure> {
        let mut shipped = shipped::all_catalogs(config.demo)?;
        shipped.retain(|own| !config.imported.iter().any(|imported| imported.id == own.id));
        shipped.extend(config.imported.iter().cloned());
        check_folders(&config.catalogs)?;
        let (catalog_set, report) = CatalogSet::new(shipped).reload(&scan::scan_folders(&config.catalogs));
        let catalogs = Self { folders: config.catalogs.clone(), catalog_set, report };
        if config.strict_catalogs { catalogs.without_problems() } else { Ok(catalogs) }
    }

    /// Returns these catalogs, or an error if the report has a file that cannot be offered.
    fn without_problems(self) -> Result<Self, Failure> {
        match self.problems() {
            [] => Ok(self),
            problems => Err(Failure::Catalogs(problems.to_vec())),
        }
    }

    pub fn registry(&self) -> Arc<Registry> {
        self.catalog_set.registry().clone()
    }

    /// Returns the offered catalogs in the order of their ids, each with the path of its file. A shipped catalog has no file.
    pub fn offered(&self) -> Vec<(Arc<Catalog>, Option<String>)> {
        let mut offered: Vec<(Arc<Catalog>, Option<String>)> =
            self.catalog_set.offered().map(|(catalog, file)| (catalog.clone(), file.map(str::to_owned))).collect();
        offered.sort_by(|(a, _), (b, _)| a.id.cmp(&b.id));
        offered
    }

    pub fn problems(&self) -> &[CatalogProblem] {
        self.catalog_set.registry().problems()
    }

    /// Returns the changes by which a file of a folder replaced a shipped catalog.
    pub fn replaced(&self) -> impl Iterator<Item = &CatalogChange> {
        self.report.changes.iter().filter(|change| matches!(change, CatalogChange::InsteadOfShipped { .. }))
    }

    /// Logs the report of the first load, watches the folders, and offers each later registry through `service`.
    pub fn watch(self, service: Arc<Service>, stop: CancellationToken) {
        let Self { folders, catalog_set, report } = self;
        log_report(&report, Occasion::Start);
        if !folders.is_empty() {
            watch::start(folders, catalog_set, stop, move |registry| service.offer(registry));
        }
    }
}

/// Loads every catalog of these folders. A catalog file with a mistake is an error.
pub fn load_folders(folders: &[PathBuf]) -> Result<Vec<Arc<Catalog>>, Failure> {
    check_folders(folders)?;
    let (catalog_set, report) = CatalogSet::default().reload(&scan::scan_folders(folders));
    let loaded = Catalogs { folders: Vec::new(), catalog_set, report }.without_problems()?;
    Ok(loaded.registry().iter().cloned().collect())
}

/// Checks that every folder exists and can be listed.
fn check_folders(folders: &[PathBuf]) -> Result<(), Failure> {
    for path in folders {
        std::fs::read_dir(path).map_err(|cause| match cause.kind() {
            std::io::ErrorKind::NotFound => Failure::Missing { path: path.clone() },
            _ => Failure::Unreadable { path: path.clone(), cause },
        })?;
    }
    Ok(())
}

/// The load that a report is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occasion {
    /// The first load of a process. Every catalog is an addition in its report, so additions are not logged.
    Start,
    /// A later load, after a change in the folders.
    Reload,
}

/// Logs the changes of a report, and each mistake with its file, line and correction.
fn log_report(report: &ReloadReport, occasion: Occasion) {
    for change in &report.changes {
        if occasion == Occasion::Reload || matches!(change, CatalogChange::InsteadOfShipped { .. }) {
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
        tracing::info!(target: "tokamak::catalogs", "the catalog file {place} has no mistakes any more");
    }
}
