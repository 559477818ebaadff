//! Tests of updates: an edited draft is updated from a changed specification.

use std::path::Path;

use import::{Import, Options};

fn tracker(only: Option<&str>) -> Import {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/import/tracker.yaml");
    let options = Options { only: only.map(str::to_owned), ..Options::default() };
    import::openapi(&std::fs::read(path).unwrap(), &options).unwrap()
}

#[test]
fn edited_lines_stay_and_new_parts_come_after_them() {
    let edited = tracker(Some("/projects*"))
        .text
        .replace("Ticket", "Issue")
        .replace("about: A unit of work", "about: what is to be done  # said better")
        .replace("  ticket_close:", "  # Closing is for good here.\n  ticket_close:");
    assert!(edited.contains("# said better") && edited.contains("# Closing is for good here."));
    let update = import::update(&edited, &tracker(None)).unwrap();
    for line in edited.lines() {
        assert!(update.text.lines().any(|other| other == line), "lost: {line}");
    }
    assert_eq!(update.added, ["person_get", "person_me"]);
    assert_eq!((update.gone.len(), update.refused.len()), (0, 0), "{update:?}");
    let merged = catalog::read("merged", &update.text).unwrap();
    assert_eq!(merged.entities.keys().collect::<Vec<_>>(), ["Project", "Issue", "Person"]);
    assert_eq!(merged.capability("ticket_close").unwrap().entity, "Issue");
    let second = import::update(&update.text, &tracker(None)).unwrap();
    assert_eq!((second.added.len(), second.text), (0, update.text), "a second update changes nothing");
}

#[test]
fn new_capabilities_of_a_renamed_entity_use_its_new_name() {
    let edited = tracker(Some("/projects/{project}/tickets*")).text;
    let start = edited.find("  ticket_close:").unwrap();
    let edited = edited[..start].replace("Ticket", "Issue");
    let update = import::update(&edited, &tracker(Some("/projects/{project}/tickets*"))).unwrap();
    assert_eq!(update.added, ["ticket_close"]);
    let merged = catalog::read("merged", &update.text).unwrap();
    assert_eq!(merged.capability("ticket_close").unwrap().entity, "Issue");
}

#[test]
fn operations_that_are_gone_are_reported_and_stay() {
    let whole = tracker(None).text;
    let update = import::update(&whole, &tracker(Some("/people*"))).unwrap();
    assert_eq!(update.text, whole);
    assert!(update.gone.contains(&"ticket_close".to_owned()) && !update.gone.contains(&"person_get".to_owned()));
    let less = whole.replace(
        "    params: {archived: boolean}\n    http: GET /projects?archived={archived}\n    rows: data",
        "    http: GET /projects\n    rows: data",
    );
    assert_ne!(less, whole);
    let update = import::update(&less, &tracker(None)).unwrap();
    assert_eq!(update.changed, ["project_list: also takes archived"]);
}

#[test]
fn a_file_that_is_no_catalog_is_refused() {
    let error = import::update("catalog: [", &tracker(None)).unwrap_err();
    assert_eq!(error.code(), "bad_catalog");
}
