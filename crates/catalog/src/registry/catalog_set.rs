//! The catalog set: the catalog files of the watched folders, each with its last valid version, and the registry that
//! is made from these files.
//! Invariants: a reload is a pure function of the previous set and a scan of the folders. A file's catalog is offered
//! only if its text is valid and no other catalog owns its names. A file with a mistake keeps its last valid version,
//! and a removed file has no offered catalog.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::Digest;

use super::name_claims::{self, Claim, ClaimResult};
use super::report::{CatalogProblem, ProblemCause};
use super::{CatalogChange, FileScan, FolderScan, Registry, ReloadReport, claimed_names};
use crate::model::Catalog;

/// The catalog files of the watched folders, and the shipped catalogs. A reload makes a new set.
#[derive(Debug, Default)]
pub struct CatalogSet {
    shipped: Vec<ShippedCatalog>,
    /// The state of each file, by its path.
    files: BTreeMap<String, CatalogFile>,
    /// The registry of all offered catalogs.
    registry: Arc<Registry>,
}

/// A catalog shipped in the binary. The catalog is offered unless a file has the same id.
#[derive(Debug, Clone)]
struct ShippedCatalog {
    catalog: Arc<Catalog>,
    offered: bool,
    /// The path of the file with the same id, whose catalog is offered instead.
    replaced_by: Option<String>,
}

#[derive(Debug, Clone)]
struct CatalogFile {
    folder: String,
    /// The digest of the file's text at the last scan, so that an unchanged file is not parsed again.
    text: Option<Digest>,
    /// The catalog in the file's newest text, or the reason why the text is not a catalog.
    newest: Result<Arc<Catalog>, ProblemCause>,
    /// The offered catalog of this file. It is an older version than `newest` if the newest text has a mistake or
    /// names that belong to another catalog.
    offered: Option<Arc<Catalog>>,
}

impl CatalogSet {
    /// Makes a set of shipped catalogs without any file. If two shipped catalogs have a common name, the first is
    /// offered.
    pub fn new(shipped: impl IntoIterator<Item = Arc<Catalog>>) -> Self {
        let shipped = shipped.into_iter().map(|catalog| ShippedCatalog { catalog, offered: false, replaced_by: None });
        Self { shipped: shipped.collect(), ..Self::default() }.reload(&[]).0
    }

    /// Returns the registry of all offered catalogs.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Returns the offered catalogs, each with the path of its file, or `None` for a shipped catalog.
    pub fn offered(&self) -> impl Iterator<Item = (&Arc<Catalog>, Option<&str>)> {
        let files = self.files.iter().filter_map(|(path, file)| Some((file.offered.as_ref()?, Some(path.as_str()))));
        files.chain(self.shipped.iter().filter(|s| s.offered).map(|s| (&s.catalog, None)))
    }

    /// Returns the set after a scan of the folders, and the report of the changes since this set.
    pub fn reload(&self, scan: &[FolderScan]) -> (CatalogSet, ReloadReport) {
        let mut files = self.merge_scanned_files(scan);
        let mut shipped = self.shipped.clone();
        // The claims of files are first in the order. So a shipped catalog that is offered again takes no name that a
        // file claims.
        let claims: Vec<Claim> =
            files.values().map(claim_of_file).chain(shipped.iter().map(claim_of_shipped)).collect();
        let results = name_claims::settle_claims(&claims);
        let mut problems: Vec<CatalogProblem> = scan.iter().filter_map(folder_problem).collect();
        problems.extend(claim_problems(&shipped, &files, &results));
        let (file_results, shipped_results) = results.split_at(files.len());
        for (file, result) in files.values_mut().zip(file_results) {
            file.offered = result.catalog().cloned();
        }
        for (shipped, result) in shipped.iter_mut().zip(shipped_results) {
            let replacement =
                files.iter().find(|(_, file)| file.offered.as_ref().is_some_and(|c| c.id == shipped.catalog.id));
            shipped.offered = result.catalog().is_some();
            shipped.replaced_by = replacement.map(|(path, _)| path.clone());
        }
        let offered = results.iter().filter_map(|result| result.catalog().cloned());
        let registry = Arc::new(Registry::after(&self.registry, offered, problems));
        let mut report = ReloadReport::between(&self.registry, &registry);
        report.changes.extend(self.new_replacements(&shipped));
        (CatalogSet { shipped, files, registry }, report)
    }

    /// Returns the files with their newest contents. The field `offered` of each file still has the value from before
    /// the reload.
    fn merge_scanned_files(&self, scan: &[FolderScan]) -> BTreeMap<String, CatalogFile> {
        let mut files = BTreeMap::new();
        for folder in scan {
            match &folder.files {
                Ok(scanned) => {
                    files.extend(scanned.iter().map(|file| (file.file.clone(), self.merge_scanned_file(folder, file))));
                }
                // The folder could not be listed, so the state of its files is not known. The files from the previous
                // set are kept.
                Err(_) => {
                    let known = self.files.iter().filter(|(_, file)| file.folder == folder.folder);
                    files.extend(known.map(|(path, file)| (path.clone(), file.clone())));
                }
            }
        }
        files
    }

    fn merge_scanned_file(&self, folder: &FolderScan, scanned: &FileScan) -> CatalogFile {
        let known = self.files.get(&scanned.file);
        let offered = known.and_then(|file| file.offered.clone());
        let folder = folder.folder.clone();
        let text = match &scanned.text {
            Ok(text) => text,
            Err(error) => {
                return CatalogFile { folder, text: None, newest: Err(ProblemCause::File(error.clone())), offered };
            }
        };
        let digest = Some(Digest::of(text.as_bytes()));
        let newest = match known.filter(|file| file.text == digest) {
            Some(unchanged) => unchanged.newest.clone(),
            None => {
                crate::read(&scanned.file, text).map(Arc::new).map_err(|rejected| ProblemCause::rejected(&rejected))
            }
        };
        CatalogFile { folder, text: digest, newest, offered }
    }

    /// Returns a change for each shipped catalog that a file replaces since this reload.
    fn new_replacements(&self, shipped: &[ShippedCatalog]) -> Vec<CatalogChange> {
        let changed = self.shipped.iter().zip(shipped).filter(|(old, new)| old.replaced_by != new.replaced_by);
        let replaced = changed.filter_map(|(_, new)| Some((new.catalog.id.clone(), new.replaced_by.clone()?)));
        replaced.map(|(id, file)| CatalogChange::InsteadOfShipped { id, file }).collect()
    }
}

fn claim_of_shipped(shipped: &ShippedCatalog) -> Claim {
    let catalog = Some(shipped.catalog.clone());
    Claim { before: catalog.clone().filter(|_| shipped.offered), newest: catalog, shipped: true }
}

fn claim_of_file(file: &CatalogFile) -> Claim {
    Claim { newest: file.newest.as_ref().ok().cloned(), before: file.offered.clone(), shipped: false }
}

fn folder_problem(folder: &FolderScan) -> Option<CatalogProblem> {
    let error = folder.files.as_ref().err()?.clone();
    Some(CatalogProblem { subject: folder.folder.clone(), cause: ProblemCause::Folder(error), kept: None })
}

/// Returns the problems of claims whose newest catalog is not offered: first the files, then the shipped catalogs.
fn claim_problems(
    shipped: &[ShippedCatalog],
    files: &BTreeMap<String, CatalogFile>,
    results: &[ClaimResult],
) -> Vec<CatalogProblem> {
    let owners = name_claims::name_owners(results);
    let paths: Vec<&String> = files.keys().collect();
    let taken_name = |catalog: &Catalog, number: usize| {
        let other_owner = |name| owners.get(name).filter(|owner| **owner != number).map(|owner| (name, *owner));
        let (name, owner) = claimed_names(catalog).find_map(other_owner)?;
        Some(ProblemCause::Taken { name: name.clone(), by: paths.get(owner).map(|path| (*path).clone()) })
    };
    let (file_results, shipped_results) = results.split_at(files.len());
    let mut problems = Vec::new();
    for (number, ((path, file), result)) in files.iter().zip(file_results).enumerate() {
        let cause = match (&file.newest, result) {
            (_, ClaimResult::Newest(_)) => None,
            (Err(cause), _) => Some(cause.clone()),
            (Ok(catalog), _) => taken_name(catalog, number),
        };
        let kept = result.catalog().map(|catalog| (catalog.id.clone(), catalog.version));
        problems.extend(cause.map(|cause| CatalogProblem { subject: path.clone(), cause, kept }));
    }
    let ids_from_files: BTreeSet<_> = file_results.iter().filter_map(|result| Some(&result.catalog()?.id)).collect();
    for (n, (shipped, result)) in shipped.iter().zip(shipped_results).enumerate() {
        // A file with the id of a shipped catalog replaces this catalog on purpose. A file that only owns an alias of
        // the shipped catalog is a problem. Such a file can get the alias while another file replaces the shipped
        // catalog.
        let is_missing = result.catalog().is_none() && !ids_from_files.contains(&shipped.catalog.id);
        let cause = if is_missing { taken_name(&shipped.catalog, files.len() + n) } else { None };
        let subject = format!("the shipped catalog `{}`", shipped.catalog.id);
        problems.extend(cause.map(|cause| CatalogProblem { subject, cause, kept: None }));
    }
    problems
}
