//! Random histories of a folder: whatever is written, broken, taken away and put back, what is offered was valid, has its
//! names to itself, and is the last good version.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use catalog::{Catalog, CatalogSet, FileError, FileScan, FolderError, FolderScan};
use proptest::prelude::*;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "demo"];

#[derive(Debug, Clone)]
enum Act {
    Write {
        file: usize,
        id: usize,
        alias: Option<usize>,
        version: u32,
    },
    Break {
        file: usize,
    },
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
    /// The folder is away for one look.
    Unmount,
}

fn act() -> impl Strategy<Value = Act> {
    let (file, name) = (0..4usize, 0..NAMES.len());
    prop_oneof![
        6 => (file.clone(), name.clone(), proptest::option::of(name), 1..4u32)
            .prop_map(|(file, id, alias, version)| Act::Write { file, id, alias, version }),
        2 => file.clone().prop_map(|file| Act::Break { file }),
        1 => file.clone().prop_map(|file| Act::Block { file }),
        2 => file.clone().prop_map(|file| Act::Remove { file }),
        1 => (file.clone(), file).prop_map(|(from, to)| Act::Rename { from, to }),
        1 => Just(Act::Unmount),
    ]
}

/// The title says which file it came from.
fn text(file: usize, id: &str, alias: Option<&str>, version: u32) -> String {
    let alias = alias.filter(|alias| *alias != id).unwrap_or_default();
    format!(
        "catalog: {id}\nversion: {version}\ntitle: {}\naliases: [{alias}]\norigin: http://x.localhost\nentities:\n  \
         A: {{about: a, key: [id], fields: {{id: string}}}}\ncapabilities:\n  a_list: {{query: A, http: GET /a, rows: data}}\n",
        name(file)
    )
}

fn name(file: usize) -> String {
    format!("f{file}.yaml")
}

type Folder = BTreeMap<usize, Result<String, FileError>>;

fn apply(folder: &mut Folder, act: &Act) {
    match act {
        Act::Write { file, id, alias, version } => {
            folder.insert(*file, Ok(text(*file, NAMES[*id], alias.map(|a| NAMES[a]), *version)));
        }
        Act::Break { file } => drop(folder.insert(*file, Ok("catalog: [\n".to_owned()))),
        Act::Block { file } => drop(folder.insert(*file, Err(FileError::NotAFile))),
        Act::Remove { file } => drop(folder.remove(file)),
        Act::Rename { from, to } => {
            if let Some(Ok(text)) = folder.remove(from) {
                folder.insert(*to, Ok(text.replace(&name(*from), &name(*to))));
            }
        }
        Act::Unmount => {}
    }
}

fn found(folder: &Folder, act: &Act) -> Vec<FolderScan> {
    let files = folder.iter().map(|(file, text)| FileScan { file: name(*file), text: text.clone() }).collect();
    let files = if matches!(act, Act::Unmount) { Err(FolderError::Missing) } else { Ok(files) };
    vec![FolderScan { folder: "dir".to_owned(), files }]
}

fn names(catalog: &Catalog) -> Vec<String> {
    std::iter::once(&catalog.id).chain(&catalog.aliases).map(ToString::to_string).collect()
}

fn valid(text: &Result<String, FileError>) -> Option<Catalog> {
    catalog::read("x", text.as_ref().ok()?).ok()
}

fn of_file(shelf: &CatalogSet, file: usize) -> Option<&Arc<Catalog>> {
    shelf.registry().iter().find(|c| c.title == name(file))
}

/// What must hold of one step, whatever came before.
fn check(before: &CatalogSet, after: &CatalogSet, folder: &Folder) {
    let mut seen = BTreeSet::new();
    for catalog in after.registry().iter() {
        for name in names(catalog) {
            assert!(seen.insert(name.clone()), "two catalogs are called {name}");
            assert_eq!(after.registry().get(&name), Some(catalog));
        }
    }
    for (file, text) in folder {
        let (old, new) = (of_file(before, *file), of_file(after, *file));
        let reported = after.registry().problems().iter().any(|p| p.place == name(*file));
        match valid(text) {
            None => assert_eq!((old, reported), (new, true), "a broken file changes nothing, and is reported"),
            Some(newest) if new.is_some_and(|c| **c == newest) => assert!(!reported, "{}", name(*file)),
            Some(newest) => {
                assert_eq!(old, new, "what is not let in leaves what was there");
                let others = |n: &String| after.registry().get(n).is_some_and(|owner| owner.title != name(*file));
                let has_rival = names(&newest).iter().any(others);
                assert!(reported && has_rival, "{} is kept out for nothing", name(*file));
            }
        }
    }
    for old in before.registry().iter() {
        assert!(after.registry().by_digest(&old.digest()).is_some(), "what was offered is found by digest");
        for taken in names(old) {
            let Some(owner) = after.registry().get(&taken).filter(|owner| owner.title != old.title) else { continue };
            // Only a file may take over from a shipped catalog, by its id; else the file before gave the name up.
            let gave_up = match old.title.as_str() {
                "shipped" => after.registry().get("demo").is_none_or(|demo| demo.title != "shipped"),
                file => of_file_named(after, file).is_none_or(|now| !names(now).contains(&taken)),
            };
            assert!(gave_up, "{taken} went from {} to {}", old.title, owner.title);
        }
    }
    let files: BTreeSet<String> = folder.keys().map(|file| name(*file)).collect();
    assert!(
        after.registry().iter().all(|c| c.title == "shipped" || files.contains(&c.title)),
        "of a file that is gone"
    );
}

fn of_file_named<'a>(shelf: &'a CatalogSet, file: &str) -> Option<&'a Arc<Catalog>> {
    shelf.registry().iter().find(|c| c.title == file)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_to_the_folder(acts in proptest::collection::vec((act(), any::<bool>()), 1..40)) {
        let shipped = text(0, "demo", Some("d"), 1).replace(&name(0), "shipped");
        let shipped = Arc::new(catalog::read("shipped", &shipped).unwrap());
        let (mut shelf, mut folder) = (CatalogSet::new([shipped.clone()]), Folder::new());
        let mut ever = BTreeSet::from([shipped.digest()]);
        for (act, look) in acts {
            apply(&mut folder, &act);
            // Several things may happen between two looks.
            if !look {
                continue;
            }
            ever.extend(folder.values().filter_map(valid).map(|c| c.digest()));
            let (next, report) = shelf.reload(&found(&folder, &act));
            if matches!(act, Act::Unmount) {
                let same = |s: &CatalogSet| s.registry().iter().map(|c| c.digest()).collect::<Vec<_>>();
                prop_assert_eq!(same(&shelf), same(&next));
            } else {
                check(&shelf, &next, &folder);
            }
            prop_assert!(next.registry().iter().all(|c| ever.contains(&c.digest())), "never valid");
            let (again, silence) = next.reload(&found(&folder, &act));
            prop_assert!(silence.is_empty(), "{:?} after {:?}", silence, report);
            shelf = again;
        }
    }
}
