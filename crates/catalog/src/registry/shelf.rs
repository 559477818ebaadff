//! The catalogs of the folders, each file with its last good version, and the registry they make.
//! Invariant: a reload is a pure function of the shelf before and what was found. A file gives only what was valid and had
//! its names to itself; a broken one goes on giving its last; one that is gone gives nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::Digest;

use super::claims::{self, Claimant, Verdict};
use super::problem::{Cause, Problem};
use super::{Change, FileFound, FolderFound, Registry, Report, names};
use crate::model::Catalog;

#[derive(Debug, Default)]
pub struct Shelf {
    /// In the binary: offered unless a file has the same id.
    shipped: Vec<Shipped>,
    files: BTreeMap<String, File>,
    registry: Arc<Registry>,
}

#[derive(Debug, Clone)]
struct Shipped {
    catalog: Arc<Catalog>,
    offered: bool,
    /// The file that is offered in its place.
    instead: Option<String>,
}

#[derive(Debug, Clone)]
struct File {
    folder: String,
    /// Of the text that was read, so that an unchanged file is not read again.
    text: Option<Digest>,
    newest: Result<Arc<Catalog>, Cause>,
    offered: Option<Arc<Catalog>>,
}

impl Shelf {
    /// Before anything was looked at: the shipped catalogs. Of two that share a name the first is offered.
    pub fn new(shipped: impl IntoIterator<Item = Arc<Catalog>>) -> Self {
        let shipped = shipped.into_iter().map(|catalog| Shipped { catalog, offered: false, instead: None });
        Self { shipped: shipped.collect(), ..Self::default() }.reload(&[]).0
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// What is offered, and the file that it is from; none is one of the binary's own.
    pub fn offered(&self) -> impl Iterator<Item = (&Arc<Catalog>, Option<&str>)> {
        let files = self.files.iter().filter_map(|(name, file)| Some((file.offered.as_ref()?, Some(name.as_str()))));
        files.chain(self.shipped.iter().filter(|s| s.offered).map(|s| (&s.catalog, None)))
    }

    /// The shelf after a look at the folders, and what is different.
    pub fn reload(&self, found: &[FolderFound]) -> (Shelf, Report) {
        let mut files = self.files_now(found);
        let mut shipped = self.shipped.clone();
        // Files first: a shipped catalog that comes back does not take what a file reaches for at that moment.
        let claimants: Vec<Claimant> = files.values().map(of_file).chain(shipped.iter().map(of_shipped)).collect();
        let verdicts = claims::settle(&claimants);
        let mut problems: Vec<Problem> = found.iter().filter_map(unlisted).collect();
        problems.extend(problems_of(&shipped, &files, &verdicts));
        let (of_files, of_shipped) = verdicts.split_at(files.len());
        for (file, verdict) in files.values_mut().zip(of_files) {
            file.offered = verdict.catalog().cloned();
        }
        for (shipped, verdict) in shipped.iter_mut().zip(of_shipped) {
            let instead =
                files.iter().find(|(_, file)| file.offered.as_ref().is_some_and(|c| c.id == shipped.catalog.id));
            shipped.offered = verdict.catalog().is_some();
            shipped.instead = instead.map(|(name, _)| name.clone());
        }
        let offered = verdicts.iter().filter_map(|verdict| verdict.catalog().cloned());
        let registry = Arc::new(Registry::after(&self.registry, offered, problems));
        let mut report = Report::between(&self.registry, &registry);
        report.changes.extend(self.newly_instead(&shipped));
        (Shelf { shipped, files, registry }, report)
    }

    /// What each file holds now, beside what is offered of it.
    fn files_now(&self, found: &[FolderFound]) -> BTreeMap<String, File> {
        let mut now = BTreeMap::new();
        for folder in found {
            match &folder.files {
                Ok(files) => now.extend(files.iter().map(|file| (file.file.clone(), self.file_now(folder, file)))),
                // Nothing is known of its files: what they were they are.
                Err(_) => {
                    let known = self.files.iter().filter(|(_, file)| file.folder == folder.folder);
                    now.extend(known.map(|(name, file)| (name.clone(), file.clone())));
                }
            }
        }
        now
    }

    fn file_now(&self, folder: &FolderFound, found: &FileFound) -> File {
        let known = self.files.get(&found.file);
        let offered = known.and_then(|file| file.offered.clone());
        let folder = folder.folder.clone();
        let text = match &found.text {
            Ok(text) => text,
            Err(cause) => return File { folder, text: None, newest: Err(Cause::Unusable(cause.clone())), offered },
        };
        let digest = Some(Digest::of(text.as_bytes()));
        let newest = match known.filter(|file| file.text == digest) {
            Some(same) => same.newest.clone(),
            None => crate::read(&found.file, text).map(Arc::new).map_err(|rejected| Cause::rejected(&rejected)),
        };
        File { folder, text: digest, newest, offered }
    }

    fn newly_instead(&self, shipped: &[Shipped]) -> Vec<Change> {
        let moved = self.shipped.iter().zip(shipped).filter(|(old, new)| old.instead != new.instead);
        let said = moved.filter_map(|(_, new)| Some((new.catalog.id.clone(), new.instead.clone()?)));
        said.map(|(id, file)| Change::InsteadOfShipped { id, file }).collect()
    }
}

fn of_shipped(shipped: &Shipped) -> Claimant {
    let catalog = Some(shipped.catalog.clone());
    Claimant { before: catalog.clone().filter(|_| shipped.offered), newest: catalog, shipped: true }
}

fn of_file(file: &File) -> Claimant {
    Claimant { newest: file.newest.as_ref().ok().cloned(), before: file.offered.clone(), shipped: false }
}

fn unlisted(folder: &FolderFound) -> Option<Problem> {
    let cause = folder.files.as_ref().err()?.clone();
    Some(Problem { place: folder.folder.clone(), cause: Cause::Unlisted(cause), kept: None })
}

/// What is not offered although it is there, in the order of the claimants.
fn problems_of(shipped: &[Shipped], files: &BTreeMap<String, File>, verdicts: &[Verdict]) -> Vec<Problem> {
    let owners = claims::owners(verdicts);
    let places: Vec<&String> = files.keys().collect();
    let taken = |catalog: &Catalog, at: usize| {
        let rival = |name| owners.get(name).filter(|owner| **owner != at).map(|owner| (name, *owner));
        let (name, owner) = names(catalog).find_map(rival)?;
        Some(Cause::Taken { name: name.clone(), by: places.get(owner).map(|place| (*place).clone()) })
    };
    let (of_files, of_shipped) = verdicts.split_at(files.len());
    let mut problems = Vec::new();
    for (at, ((name, file), verdict)) in files.iter().zip(of_files).enumerate() {
        let cause = match (&file.newest, verdict) {
            (_, Verdict::Newest(_)) => None,
            (Err(cause), _) => Some(cause.clone()),
            (Ok(catalog), _) => taken(catalog, at),
        };
        let kept = verdict.catalog().map(|catalog| (catalog.id.clone(), catalog.version));
        problems.extend(cause.map(|cause| Problem { place: name.clone(), cause, kept }));
    }
    let from_files: BTreeSet<_> = of_files.iter().filter_map(|verdict| Some(&verdict.catalog()?.id)).collect();
    for (at, (shipped, verdict)) in shipped.iter().zip(of_shipped).enumerate() {
        // One that a file stands in for is no problem; one whose name a file took while it was away is.
        let missed = verdict.catalog().is_none() && !from_files.contains(&shipped.catalog.id);
        let cause = if missed { taken(&shipped.catalog, files.len() + at) } else { None };
        let place = format!("the shipped catalog `{}`", shipped.catalog.id);
        problems.extend(cause.map(|cause| Problem { place, cause, kept: None }));
    }
    problems
}
