//! Property tests of reloads with random histories of a folder: every offered catalog is a valid version of its file
//! and has no common name with another catalog. It is the last valid version, unless a name of this version belongs
//! to another catalog.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use catalog::{Catalog, CatalogSet, FileError, FileScan, FolderError, FolderScan};
use proptest::prelude::*;

/// The ids and aliases that the generated files use. The shipped catalog has the id `demo` and the alias `d`.
const CLAIMED_NAMES: [&str; 5] = ["a", "b", "c", "d", "demo"];

/// A change of the folder.
#[derive(Debug, Clone)]
enum FolderChange {
    Write {
        file: usize,
        id: usize,
        alias: Option<usize>,
        version: u32,
    },
    /// Replaces the text of the file by a text that is not a catalog.
    WriteInvalid {
        file: usize,
    },
    /// Makes the file unreadable.
    Block {
        file: usize,
    },
    Remove {
        file: usize,
    },
    Rename {
        from: usize,
        to: usize,
    },
    /// The folder does not exist during one scan.
    Unmount,
}

fn changes() -> impl Strategy<Value = FolderChange> {
    let file = 0..4usize;
    let name = 0..CLAIMED_NAMES.len();
    prop_oneof![
        6 => (file.clone(), name.clone(), proptest::option::of(name), 1..4u32)
            .prop_map(|(file, id, alias, version)| FolderChange::Write { file, id, alias, version }),
        2 => file.clone().prop_map(|file| FolderChange::WriteInvalid { file }),
        1 => file.clone().prop_map(|file| FolderChange::Block { file }),
        2 => file.clone().prop_map(|file| FolderChange::Remove { file }),
        1 => (file.clone(), file).prop_map(|(from, to)| FolderChange::Rename { from, to }),
        1 => Just(FolderChange::Unmount),
    ]
}

/// Returns the text of a catalog whose title is the name of its file.
fn catalog_text(file: usize, id: &str, alias: Option<&str>, version: u32) -> String {
    let alias = alias.filter(|alias| *alias != id).unwrap_or_default();
    format!(
        "catalog: {id}\nversion: {version}\ntitle: {}\naliases: [{alias}]\norigin: http://x.localhost\nentities:\n  \
         A: {{about: a, key: [id], fields: {{id: string}}}}\ncapabilities:\n  a_list: {{query: A, http: GET /a, rows: data}}\n",
        file_name(file)
    )
}

fn file_name(file: usize) -> String {
    format!("f{file}.yaml")
}

type Folder = BTreeMap<usize, Result<String, FileError>>;

fn apply_change(folder: &mut Folder, change: &FolderChange) {
    match change {
        FolderChange::Write { file, id, alias, version } => {
            folder
                .insert(*file, Ok(catalog_text(*file, CLAIMED_NAMES[*id], alias.map(|a| CLAIMED_NAMES[a]), *version)));
        }
        FolderChange::WriteInvalid { file } => drop(folder.insert(*file, Ok("catalog: [\n".to_owned()))),
        FolderChange::Block { file } => drop(folder.insert(*file, Err(FileError::NotAFile))),
        FolderChange::Remove { file } => drop(folder.remove(file)),
        FolderChange::Rename { from, to } => {
            if let Some(Ok(text)) = folder.remove(from) {
                folder.insert(*to, Ok(text.replace(&file_name(*from), &file_name(*to))));
            }
        }
        FolderChange::Unmount => {}
    }
}

fn scan_folder(folder: &Folder, change: &FolderChange) -> Vec<FolderScan> {
    let files = folder.iter().map(|(file, text)| FileScan { file: file_name(*file), text: text.clone() }).collect();
    let files = if matches!(change, FolderChange::Unmount) { Err(FolderError::Missing) } else { Ok(files) };
    vec![FolderScan { folder: "dir".to_owned(), files }]
}

fn names(catalog: &Catalog) -> Vec<String> {
    std::iter::once(&catalog.id).chain(&catalog.aliases).map(ToString::to_string).collect()
}

fn parse_catalog(text: &Result<String, FileError>) -> Option<Catalog> {
    catalog::read("x", text.as_ref().ok()?).ok()
}

/// Returns the offered catalog of a file.
fn catalog_of_file(set: &CatalogSet, file: usize) -> Option<&Arc<Catalog>> {
    set.registry().iter().find(|c| c.title == file_name(file))
}

/// Checks the properties that every reload must have.
fn check_reload(before: &CatalogSet, after: &CatalogSet, folder: &Folder) {
    let mut all_names = BTreeSet::new();
    for catalog in after.registry().iter() {
        for name in names(catalog) {
            assert!(all_names.insert(name.clone()), "two catalogs are called {name}");
            assert_eq!(after.registry().get(&name), Some(catalog));
        }
    }
    for (file, text) in folder {
        let old = catalog_of_file(before, *file);
        let new = catalog_of_file(after, *file);
        let is_reported = after.registry().problems().iter().any(|p| p.subject == file_name(*file));
        match parse_catalog(text) {
            None => assert_eq!((old, is_reported), (new, true), "a broken file changes nothing, and is reported"),
            Some(newest) if new.is_some_and(|c| **c == newest) => assert!(!is_reported, "{}", file_name(*file)),
            Some(newest) => {
                assert_eq!(old, new, "a file that loses its names keeps its last version");
                let has_other_owner =
                    |n: &String| after.registry().get(n).is_some_and(|owner| owner.title != file_name(*file));
                let has_rival = names(&newest).iter().any(has_other_owner);
                assert!(is_reported && has_rival, "{} is not offered without a reason", file_name(*file));
            }
        }
    }
    for old in before.registry().iter() {
        assert!(after.registry().by_digest(&old.digest()).is_some(), "a catalog that was offered is found by digest");
        for taken in names(old) {
            let Some(owner) = after.registry().get(&taken).filter(|owner| owner.title != old.title) else { continue };
            // A name gets another owner only if a file replaces the shipped catalog, or if the previous owner's file
            // no longer claims the name.
            let was_given_up = match old.title.as_str() {
                "shipped" => after.registry().get("demo").is_none_or(|demo| demo.title != "shipped"),
                file => catalog_with_title(after, file).is_none_or(|now| !names(now).contains(&taken)),
            };
            assert!(was_given_up, "{taken} went from {} to {}", old.title, owner.title);
        }
    }
    let files: BTreeSet<String> = folder.keys().map(|file| file_name(*file)).collect();
    assert!(
        after.registry().iter().all(|c| c.title == "shipped" || files.contains(&c.title)),
        "a removed file offers nothing"
    );
}

fn catalog_with_title<'a>(set: &'a CatalogSet, title: &str) -> Option<&'a Arc<Catalog>> {
    set.registry().iter().find(|c| c.title == title)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_reload_offers_the_last_valid_versions(history in proptest::collection::vec((changes(), any::<bool>()), 1..40)) {
        let shipped = catalog_text(0, "demo", Some("d"), 1).replace(&file_name(0), "shipped");
        let shipped = Arc::new(catalog::read("shipped", &shipped).unwrap());
        let mut set = CatalogSet::new([shipped.clone()]);
        let mut folder = Folder::new();
        let mut ever_valid = BTreeSet::from([shipped.digest()]);
        for (change, is_scanned) in history {
            apply_change(&mut folder, &change);
            // Several changes may happen between two scans.
            if !is_scanned {
                continue;
            }
            ever_valid.extend(folder.values().filter_map(parse_catalog).map(|c| c.digest()));
            let (next, report) = set.reload(&scan_folder(&folder, &change));
            if matches!(change, FolderChange::Unmount) {
                let digests = |s: &CatalogSet| s.registry().iter().map(|c| c.digest()).collect::<Vec<_>>();
                prop_assert_eq!(digests(&set), digests(&next));
            } else {
                check_reload(&set, &next, &folder);
            }
            prop_assert!(next.registry().iter().all(|c| ever_valid.contains(&c.digest())), "never valid");
            let (unchanged, second_report) = next.reload(&scan_folder(&folder, &change));
            prop_assert!(second_report.is_empty(), "{:?} after {:?}", second_report, report);
            set = unchanged;
        }
    }
}
