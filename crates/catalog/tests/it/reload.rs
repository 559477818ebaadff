//! Reloads as a pure function: what a folder holds and what was offered, to what is offered and what is said.

use std::sync::Arc;

use catalog::{CatalogChange, CatalogSet, FileError, FileScan, FolderError, FolderScan, ProblemCause};

/// A catalog file; `names` is its id and then its aliases.
fn text(names: &str, version: u32) -> String {
    let (id, aliases) = names.split_once(' ').unwrap_or((names, ""));
    format!(
        "catalog: {id}\nversion: {version}\ntitle: T\naliases: [{}]\norigin: http://x.localhost\nentities:\n  \
         A: {{about: a, key: [id], fields: {{id: string}}}}\ncapabilities:\n  a_list: {{query: A, http: GET /a, rows: data}}\n",
        aliases.replace(' ', ", ")
    )
}

fn shipped(names: &str) -> Arc<catalog::Catalog> {
    Arc::new(catalog::read("shipped.yaml", &text(names, 1)).unwrap())
}

/// `("a.yaml", "tracker tickets@3")`: a catalog; `"!"`: broken; `"?"`: unusable.
fn folder(files: &[(&str, &str)]) -> Vec<FolderScan> {
    let file = |(name, what): &(&str, &str)| FileScan {
        file: (*name).to_owned(),
        text: match (*what, what.split_once('@')) {
            ("?", _) => Err(FileError::NotAFile),
            (_, Some((names, version))) => Ok(text(names, version.parse().unwrap())),
            _ => Ok("catalog: [\n".to_owned()),
        },
    };
    vec![FolderScan { folder: "dir".to_owned(), files: Ok(files.iter().map(file).collect()) }]
}

fn offered(shelf: &CatalogSet) -> Vec<String> {
    shelf.registry().iter().map(|c| format!("{}@{}", c.id, c.version)).collect()
}

fn said(shelf: &CatalogSet) -> Vec<String> {
    shelf.registry().problems().iter().map(ToString::to_string).collect()
}

#[test]
fn a_change_is_offered_and_the_old_version_is_still_found_by_digest() {
    let (one, report) = CatalogSet::default().reload(&folder(&[("a.yaml", "tracker tickets@1")]));
    assert_eq!(report.changes.iter().map(ToString::to_string).collect::<Vec<_>>(), ["`tracker` version 1 is offered"]);
    let old = one.registry().get("tickets").unwrap().clone();
    let (two, report) = one.reload(&folder(&[("a.yaml", "tracker tickets@2")]));
    assert!(matches!(&report.changes[..], [CatalogChange::Replaced { from: 1, to: 2, .. }]), "{report:?}");
    assert_eq!(two.registry().get("tickets").unwrap().version, 2);
    assert_eq!(two.registry().by_digest(&old.digest()), Some(&old));
    assert_eq!(one.registry().get("tickets"), Some(&old), "who holds the old registry sees the old one");
    let (three, report) = two.reload(&folder(&[]));
    assert!(matches!(&report.changes[..], [CatalogChange::Withdrawn { .. }]), "{report:?}");
    assert!(three.registry().is_empty() && three.registry().get("tickets").is_none());
    assert!(three.registry().by_digest(&old.digest()).is_some());
}

#[test]
fn a_broken_file_keeps_its_last_good_version_until_it_is_repaired_or_gone() {
    let (shelf, _) = CatalogSet::default().reload(&folder(&[("a.yaml", "tracker@1")]));
    for broken in ["!", "?"] {
        let (kept, report) = shelf.reload(&folder(&[("a.yaml", broken)]));
        assert_eq!((offered(&kept), report.changes.len(), report.problems.len()), (vec!["tracker@1".into()], 0, 1));
        assert!(said(&kept)[0].ends_with("a.yaml: `tracker` version 1 stays offered"), "{:?}", said(&kept));
        let (again, report) = kept.reload(&folder(&[("a.yaml", broken)]));
        assert!(report.is_empty() && again.registry().problems().len() == 1, "a known problem is not news");
        let (repaired, report) = again.reload(&folder(&[("a.yaml", "tracker@2")]));
        assert_eq!((offered(&repaired), report.repaired), (vec!["tracker@2".into()], vec!["a.yaml".into()]));
        let (gone, report) = again.reload(&folder(&[]));
        assert!(gone.registry().is_empty() && report.repaired == ["a.yaml"]);
    }
}

#[test]
fn a_mistake_is_said_with_its_place_its_code_and_what_to_write() {
    let typo = text("tracker", 1).replace("entities:", "entitees:");
    let files = Ok(vec![FileScan { file: "dir/a.yaml".to_owned(), text: Ok(typo) }]);
    let (shelf, _) = CatalogSet::default().reload(&[FolderScan { folder: "dir".to_owned(), files }]);
    assert!(
        said(&shelf)[0].starts_with("dir/a.yaml:6:1: E0501 ") && said(&shelf)[0].contains("entities"),
        "{:?}",
        said(&shelf)
    );
}

#[test]
fn who_had_a_name_keeps_it_whatever_the_file_is_called() {
    let (shelf, _) = CatalogSet::default().reload(&folder(&[("m.yaml", "tracker tickets@1")]));
    for newcomer in ["tracker@7", "other tickets@7", "tickets@7"] {
        let (after, _) = shelf.reload(&folder(&[("a.yaml", newcomer), ("m.yaml", "tracker tickets@2")]));
        assert_eq!(offered(&after), ["tracker@2"], "{newcomer}");
        assert!(said(&after)[0].contains("belongs to m.yaml"), "{:?}", said(&after));
        // The newcomer has its turn as soon as the name is free.
        let (freed, report) = after.reload(&folder(&[("a.yaml", newcomer)]));
        assert_eq!(offered(&freed), [newcomer.replace(" tickets", "")]);
        assert_eq!(report.repaired, ["a.yaml"]);
    }
}

#[test]
fn a_file_that_reaches_for_anothers_name_stays_what_it_was() {
    let (shelf, _) = CatalogSet::default().reload(&folder(&[("a.yaml", "one@1"), ("b.yaml", "two@1")]));
    let (after, _) = shelf.reload(&folder(&[("a.yaml", "one two@2"), ("b.yaml", "two@1")]));
    assert_eq!(offered(&after), ["one@1", "two@1"]);
    assert!(said(&after)[0].contains("the name `two` belongs to b.yaml"), "{:?}", said(&after));
}

#[test]
fn names_may_be_swapped_and_files_renamed() {
    let (shelf, _) = CatalogSet::default().reload(&folder(&[("a.yaml", "one@1"), ("b.yaml", "two@1")]));
    let (swapped, report) = shelf.reload(&folder(&[("a.yaml", "two@2"), ("b.yaml", "one@2")]));
    assert_eq!((offered(&swapped), report.problems.len()), (vec!["one@2".into(), "two@2".into()], 0));
    let (renamed, report) = swapped.reload(&folder(&[("c.yaml", "two@2"), ("b.yaml", "one@2")]));
    assert!(report.is_empty() && offered(&renamed) == ["one@2", "two@2"]);
}

#[test]
fn whoever_lost_to_a_loser_is_let_in() {
    // a takes x from nobody, but loses `held`; b wants x.
    let (shelf, _) = CatalogSet::default().reload(&folder(&[("h.yaml", "held@1")]));
    let (after, _) = shelf.reload(&folder(&[("a.yaml", "x held@1"), ("b.yaml", "x@2"), ("h.yaml", "held@1")]));
    assert_eq!(offered(&after), ["held@1", "x@2"]);
    assert_eq!(after.registry().problems().len(), 1);
}

#[test]
fn a_file_with_the_id_of_a_shipped_catalog_is_offered_in_its_place() {
    let ships = CatalogSet::new([shipped("demo d")]);
    assert_eq!(offered(&ships), ["demo@1"]);
    let (ours, report) = ships.reload(&folder(&[("a.yaml", "demo@9")]));
    assert_eq!(offered(&ours), ["demo@9"]);
    assert!(report.changes.contains(&CatalogChange::InsteadOfShipped {
        id: base::CatalogId::parse("demo").unwrap(),
        file: "a.yaml".to_owned()
    }));
    let (broken, _) = ours.reload(&folder(&[("a.yaml", "!")]));
    assert_eq!(offered(&broken), ["demo@9"]);
    let (back, _) = broken.reload(&folder(&[]));
    assert_eq!((offered(&back), back.registry().get("d").is_some()), (vec!["demo@1".into()], true));
    // Any other name of a shipped catalog is taken, and so is a name that a file took while the catalog was away.
    let (refused, _) = ships.reload(&folder(&[("a.yaml", "other demo@1"), ("b.yaml", "d@1")]));
    assert_eq!((offered(&refused), said(&refused).len()), (vec!["demo@1".into()], 2));
    let (took, _) = ours.reload(&folder(&[("a.yaml", "demo@9"), ("b.yaml", "d@1")]));
    let (kept, _) = took.reload(&folder(&[("b.yaml", "d@1")]));
    assert_eq!(offered(&kept), ["d@1"]);
    assert!(
        said(&kept)[0].contains("shipped catalog `demo`") && said(&kept)[0].contains("b.yaml"),
        "{:?}",
        said(&kept)
    );
}

#[test]
fn a_folder_that_cannot_be_listed_says_nothing_about_its_files() {
    let (shelf, _) = CatalogSet::default().reload(&folder(&[("a.yaml", "one@1")]));
    let missing = [FolderScan { folder: "dir".to_owned(), files: Err(FolderError::Missing) }];
    let (after, report) = shelf.reload(&missing);
    assert_eq!(offered(&after), ["one@1"]);
    assert!(matches!(&report.problems[0].cause, ProblemCause::Folder(FolderError::Missing)));
    let (back, report) = after.reload(&folder(&[("a.yaml", "one@1")]));
    assert_eq!((offered(&back), report.repaired), (vec!["one@1".into()], vec!["dir".into()]));
}

#[test]
fn many_rivals_are_settled_quickly() {
    let names: Vec<String> = (0..2_000).map(|n| format!("{n:04}.yaml")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "same@1")).collect();
    let (shelf, _) = CatalogSet::default().reload(&folder(&files));
    assert_eq!((offered(&shelf), shelf.registry().problems().len()), (vec!["same@1".into()], 1_999));
}

#[test]
fn versions_of_long_ago_do_not_fill_the_memory() {
    let mut shelf = CatalogSet::default();
    let mut digests = Vec::new();
    for version in 1..=1_030 {
        let (one, two) = (format!("one@{version}"), "two@1");
        shelf = shelf.reload(&folder(&[("a.yaml", &one), ("b.yaml", two)])).0;
        digests.push(shelf.registry().get("one").unwrap().digest());
    }
    let found: Vec<bool> = digests.iter().map(|digest| shelf.registry().by_digest(digest).is_some()).collect();
    assert_eq!(found.iter().position(|found| *found), Some(5), "1,024 replaced ones, and the one that is offered");
    assert!(found[5..].iter().all(|found| *found));
}
