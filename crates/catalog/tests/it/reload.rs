//! Tests of reloads: the catalogs and the report that follow from the files of a folder and the previously offered
//! catalogs.

use std::sync::Arc;

use catalog::{CatalogChange, CatalogSet, FileError, FileScan, FolderError, FolderScan, ProblemCause};

/// Returns the text of a catalog. `names` has the id and then the aliases, separated by spaces.
fn catalog_text(names: &str, version: u32) -> String {
    let (id, aliases) = names.split_once(' ').unwrap_or((names, ""));
    format!(
        "catalog: {id}\nversion: {version}\ntitle: T\naliases: [{}]\norigin: http://x.localhost\nentities:\n  \
         A: {{about: a, key: [id], fields: {{id: string}}}}\ncapabilities:\n  a_list: {{query: A, http: GET /a, rows: data}}\n",
        aliases.replace(' ', ", ")
    )
}

fn shipped(names: &str) -> Arc<catalog::Catalog> {
    Arc::new(catalog::read("shipped.yaml", &catalog_text(names, 1)).unwrap())
}

/// Returns the scan of a folder. The content of a file is given as `tracker tickets@3` for a catalog of version 3
/// with these names, as `!` for a text that is not a catalog, and as `?` for an unreadable file.
fn folder(files: &[(&str, &str)]) -> Vec<FolderScan> {
    let file = |(name, content): &(&str, &str)| FileScan {
        file: (*name).to_owned(),
        text: match (*content, content.split_once('@')) {
            ("?", _) => Err(FileError::NotAFile),
            (_, Some((names, version))) => Ok(catalog_text(names, version.parse().unwrap())),
            _ => Ok("catalog: [\n".to_owned()),
        },
    };
    vec![FolderScan { folder: "dir".to_owned(), files: Ok(files.iter().map(file).collect()) }]
}

/// Lists the offered catalogs as `id@version`.
fn offered(set: &CatalogSet) -> Vec<String> {
    set.registry().iter().map(|c| format!("{}@{}", c.id, c.version)).collect()
}

fn problems(set: &CatalogSet) -> Vec<String> {
    set.registry().problems().iter().map(ToString::to_string).collect()
}

#[test]
fn a_change_is_offered_and_the_old_version_is_still_found_by_digest() {
    let (first, report) = CatalogSet::default().reload(&folder(&[("a.yaml", "tracker tickets@1")]));
    assert_eq!(
        report.changes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["catalog `tracker` version 1 is offered"]
    );
    let old = first.registry().get("tickets").unwrap().clone();
    let (second, report) = first.reload(&folder(&[("a.yaml", "tracker tickets@2")]));
    assert!(matches!(&report.changes[..], [CatalogChange::Replaced { from: 1, to: 2, .. }]), "{report:?}");
    assert_eq!(second.registry().get("tickets").unwrap().version, 2);
    assert_eq!(second.registry().by_digest(&old.digest()), Some(&old));
    assert_eq!(first.registry().get("tickets"), Some(&old), "the old registry still has the old version");
    let (third, report) = second.reload(&folder(&[]));
    assert!(matches!(&report.changes[..], [CatalogChange::Withdrawn { .. }]), "{report:?}");
    assert!(third.registry().is_empty() && third.registry().get("tickets").is_none());
    assert!(third.registry().by_digest(&old.digest()).is_some());
}

#[test]
fn a_broken_file_keeps_its_last_good_version_until_it_is_repaired_or_gone() {
    let (set, _) = CatalogSet::default().reload(&folder(&[("a.yaml", "tracker@1")]));
    for broken in ["!", "?"] {
        let (kept, report) = set.reload(&folder(&[("a.yaml", broken)]));
        assert_eq!((offered(&kept), report.changes.len(), report.problems.len()), (vec!["tracker@1".into()], 0, 1));
        assert!(problems(&kept)[0].ends_with("a.yaml: `tracker` version 1 stays offered"), "{:?}", problems(&kept));
        let (unchanged, report) = kept.reload(&folder(&[("a.yaml", broken)]));
        assert!(
            report.is_empty() && unchanged.registry().problems().len() == 1,
            "a known problem is not reported again"
        );
        let (repaired, report) = unchanged.reload(&folder(&[("a.yaml", "tracker@2")]));
        assert_eq!((offered(&repaired), report.repaired), (vec!["tracker@2".into()], vec!["a.yaml".into()]));
        let (without_file, report) = unchanged.reload(&folder(&[]));
        assert!(without_file.registry().is_empty() && report.repaired == ["a.yaml"]);
    }
}

#[test]
fn a_mistake_is_reported_with_its_position_and_its_code() {
    let typo = catalog_text("tracker", 1).replace("entities:", "entitees:");
    let files = Ok(vec![FileScan { file: "dir/a.yaml".to_owned(), text: Ok(typo) }]);
    let (set, _) = CatalogSet::default().reload(&[FolderScan { folder: "dir".to_owned(), files }]);
    assert!(
        problems(&set)[0].starts_with("dir/a.yaml:6:1: E0501 ") && problems(&set)[0].contains("entities"),
        "{:?}",
        problems(&set)
    );
}

#[test]
fn the_owner_of_a_name_keeps_it_whatever_the_files_are_called() {
    let (set, _) = CatalogSet::default().reload(&folder(&[("m.yaml", "tracker tickets@1")]));
    for newcomer in ["tracker@7", "other tickets@7", "tickets@7"] {
        let (after, _) = set.reload(&folder(&[("a.yaml", newcomer), ("m.yaml", "tracker tickets@2")]));
        assert_eq!(offered(&after), ["tracker@2"], "{newcomer}");
        assert!(problems(&after)[0].contains("belongs to m.yaml"), "{:?}", problems(&after));
        // The second claim gets the name as soon as no offered catalog has it.
        let (freed, report) = after.reload(&folder(&[("a.yaml", newcomer)]));
        assert_eq!(offered(&freed), [newcomer.replace(" tickets", "")]);
        assert_eq!(report.repaired, ["a.yaml"]);
    }
}

#[test]
fn a_file_that_claims_a_name_of_another_keeps_its_last_version() {
    let (set, _) = CatalogSet::default().reload(&folder(&[("a.yaml", "one@1"), ("b.yaml", "two@1")]));
    let (after, _) = set.reload(&folder(&[("a.yaml", "one two@2"), ("b.yaml", "two@1")]));
    assert_eq!(offered(&after), ["one@1", "two@1"]);
    assert!(problems(&after)[0].contains("the name `two` belongs to b.yaml"), "{:?}", problems(&after));
}

#[test]
fn two_files_may_swap_names_and_a_file_may_be_renamed() {
    let (set, _) = CatalogSet::default().reload(&folder(&[("a.yaml", "one@1"), ("b.yaml", "two@1")]));
    let (swapped, report) = set.reload(&folder(&[("a.yaml", "two@2"), ("b.yaml", "one@2")]));
    assert_eq!((offered(&swapped), report.problems.len()), (vec!["one@2".into(), "two@2".into()], 0));
    let (renamed, report) = swapped.reload(&folder(&[("c.yaml", "two@2"), ("b.yaml", "one@2")]));
    assert!(report.is_empty() && offered(&renamed) == ["one@2", "two@2"]);
}

#[test]
fn a_claim_that_lost_to_a_loser_wins() {
    // `a.yaml` claims the free name `x`, but is not offered because of the name `held`. So `b.yaml` gets `x`.
    let (set, _) = CatalogSet::default().reload(&folder(&[("h.yaml", "held@1")]));
    let (after, _) = set.reload(&folder(&[("a.yaml", "x held@1"), ("b.yaml", "x@2"), ("h.yaml", "held@1")]));
    assert_eq!(offered(&after), ["held@1", "x@2"]);
    assert_eq!(after.registry().problems().len(), 1);
}

#[test]
fn a_file_with_the_id_of_a_shipped_catalog_is_offered_in_its_place() {
    let only_shipped = CatalogSet::new([shipped("demo d")]);
    assert_eq!(offered(&only_shipped), ["demo@1"]);
    let (replaced, report) = only_shipped.reload(&folder(&[("a.yaml", "demo@9")]));
    assert_eq!(offered(&replaced), ["demo@9"]);
    assert!(report.changes.contains(&CatalogChange::InsteadOfShipped {
        id: base::CatalogId::parse("demo").unwrap(),
        file: "a.yaml".to_owned()
    }));
    let (broken, _) = replaced.reload(&folder(&[("a.yaml", "!")]));
    assert_eq!(offered(&broken), ["demo@9"]);
    let (shipped_again, _) = broken.reload(&folder(&[]));
    assert_eq!((offered(&shipped_again), shipped_again.registry().get("d").is_some()), (vec!["demo@1".into()], true));
    // A file cannot take another name of a shipped catalog. But a file that got the name while the shipped catalog
    // was replaced keeps the name.
    let (refused, _) = only_shipped.reload(&folder(&[("a.yaml", "other demo@1"), ("b.yaml", "d@1")]));
    assert_eq!((offered(&refused), problems(&refused).len()), (vec!["demo@1".into()], 2));
    let (took, _) = replaced.reload(&folder(&[("a.yaml", "demo@9"), ("b.yaml", "d@1")]));
    let (kept, _) = took.reload(&folder(&[("b.yaml", "d@1")]));
    assert_eq!(offered(&kept), ["d@1"]);
    assert!(
        problems(&kept)[0].contains("shipped catalog `demo`") && problems(&kept)[0].contains("b.yaml"),
        "{:?}",
        problems(&kept)
    );
}

#[test]
fn a_folder_that_cannot_be_listed_keeps_its_catalogs() {
    let (set, _) = CatalogSet::default().reload(&folder(&[("a.yaml", "one@1")]));
    let missing = [FolderScan { folder: "dir".to_owned(), files: Err(FolderError::Missing) }];
    let (after, report) = set.reload(&missing);
    assert_eq!(offered(&after), ["one@1"]);
    assert!(matches!(&report.problems[0].cause, ProblemCause::Folder(FolderError::Missing)));
    let (listed, report) = after.reload(&folder(&[("a.yaml", "one@1")]));
    assert_eq!((offered(&listed), report.repaired), (vec!["one@1".into()], vec!["dir".into()]));
}

#[test]
fn thousands_of_rivals_are_settled_quickly() {
    let names: Vec<String> = (0..2_000).map(|n| format!("{n:04}.yaml")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "same@1")).collect();
    let (set, _) = CatalogSet::default().reload(&folder(&files));
    assert_eq!((offered(&set), set.registry().problems().len()), (vec!["same@1".into()], 1_999));
}

#[test]
fn only_the_last_replaced_versions_are_found_by_digest() {
    let mut set = CatalogSet::default();
    let mut digests = Vec::new();
    for version in 1..=1_030 {
        let changing = format!("one@{version}");
        set = set.reload(&folder(&[("a.yaml", &changing), ("b.yaml", "two@1")])).0;
        digests.push(set.registry().get("one").unwrap().digest());
    }
    let is_found: Vec<bool> = digests.iter().map(|digest| set.registry().by_digest(digest).is_some()).collect();
    assert_eq!(
        is_found.iter().position(|is_found| *is_found),
        Some(5),
        "1,024 replaced versions and the offered one are found"
    );
    assert!(is_found[5..].iter().all(|is_found| *is_found));
}
