//! `tokamak js`, `execution` and `heap` on a data folder of their own.

use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Ended, tokamak, write};

const NOWHERE: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A data folder.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let data = self.path().join("data").display().to_string();
        let all: Vec<&str> = arguments.iter().copied().chain(["--data", &data]).collect();
        tokamak(&all)
    }
}

/// 2 is a mistake in how it was called, 3 something that is not there; as `--json` says by its code.
#[test]
fn exit_codes_tell_what_is_wrong_from_what_is_missing() {
    let place = Place::new();
    let script = write(place.path(), "a.js", "1");
    let empty = write(place.path(), "empty.js", "  ");
    let long = format!("{}=v", "k".repeat(300));
    let name = "n".repeat(300);
    let cases: [(&[&str], i32, &str); 12] = [
        (&["heap", "show", NOWHERE], 3, "no_heap"),
        (&["heap", "export", NOWHERE, "-o", "/dev/null"], 3, "no_heap"),
        (&["heap", "diff", NOWHERE, NOWHERE], 3, "no_heap"),
        (&["execution", "show", "nothing"], 3, "no_execution"),
        (&["execution", "cancel", "nothing"], 3, "no_execution"),
        (&["js", &script, "--heap", NOWHERE], 3, "no_heap"),
        (&["heap", "show", "nothing"], 2, "bad_heap"),
        (&["heap", "import", &script], 2, "not_a_heap"),
        (&["js", &script, "--tag", &long], 2, "bad_tags"),
        (&["js", &empty], 2, "bad_code"),
        (&["js", &script, "--memory-mb", "100000"], 2, "bad_arguments"),
        (&["js", &script, "--session", &name], 2, "no_session_name"),
    ];
    for (arguments, code, word) in cases {
        let ended = place.run(&[arguments, &["--json"]].concat());
        assert_eq!((ended.code, ended.error()["error"]["code"].as_str()), (code, Some(word)), "{arguments:?}");
    }
    let threw = write(place.path(), "threw.js", "null.f()");
    assert_eq!(place.run(&["js", &threw]).code, 1, "a run that failed is a failure");
}

fn js(place: &Place, code: &str, more: &[&str]) -> Value {
    let script = write(place.path(), "run.js", code);
    let ended = place.run(&[&["js", &script, "--json"], more].concat());
    assert_eq!(ended.code, 0, "{}", ended.err);
    ended.json()[0].clone()
}

fn heap(place: &Place, code: &str, more: &[&str]) -> String {
    js(place, code, more)["heap"].as_str().unwrap().to_owned()
}

fn good(place: &Place, arguments: &[&str]) -> Ended {
    let ended = place.run(arguments);
    assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.err);
    ended
}

#[test]
fn heaps_are_listed_shown_compared_tagged_and_found() {
    let place = Place::new();
    let first = heap(&place, "let a = 1, gone = 2", &["--tag", "env=test"]);
    let second = heap(&place, "a = [1, 2]; globalThis.b = 3", &["--heap", &first]);
    let listed = good(&place, &["heap", "list"]).out;
    assert!(listed.lines().count() == 2 && listed.contains(&first) && listed.contains("env=test"), "{listed}");
    let one = good(&place, &["heap", "list", "--json", "--limit", "1"]).json();
    let key = one["heaps"][0]["heap"].as_str().unwrap();
    let other = good(&place, &["heap", "list", "--json", "--after", key]).json();
    let both = [key, other["heaps"][0]["heap"].as_str().unwrap()];
    assert!(both.contains(&first.as_str()) && both.contains(&second.as_str()), "{one} {other}");

    let shown = good(&place, &["heap", "show", &second]).json();
    assert_eq!((&shown["parents"], &shown["tags"]), (&json!([first]), &json!({})), "{shown}");
    assert!(shown["memory_bytes"].as_u64() > shown["stored_bytes"].as_u64() && shown["stored_against"].is_array());

    let diff = good(&place, &["heap", "diff", &first, &second]).out;
    assert!(diff.contains("+ b number 3") && diff.contains("~ a 1 -> "), "{diff}");
    assert!(diff.lines().last().unwrap().contains("unchanged; memory"), "{diff}");
    let diff = good(&place, &["heap", "diff", &first, &second, "--json"]).json();
    assert_eq!((&diff["added"][0]["name"], &diff["changed"][0]["name"]), (&json!("b"), &json!("a")), "{diff}");

    assert_eq!(good(&place, &["heap", "tag", &second, "env=test", "n=2"]).out.trim(), "env=test n=2");
    assert_eq!(good(&place, &["heap", "tag", &second, "--remove", "n"]).out.trim(), "env=test");
    let found = good(&place, &["heap", "find", "env=test", "--json"]).json();
    assert_eq!(found["results"].as_array().unwrap().len(), 2, "{found}");
    good(&place, &["heap", "tag", &first, "--remove", "env"]);
    assert_eq!(good(&place, &["heap", "find", "env=test"]).out.trim(), format!("{second} env=test"));
    assert_eq!(good(&place, &["heap", "find", "env=other"]).out, "");
}

#[test]
fn a_heap_goes_to_a_file_whole_and_comes_back_with_a_tag_that_keeps_it() {
    let (place, other) = (Place::new(), Place::new());
    let key = heap(&place, "let x = 41", &[]);
    let file = place.path().join("x.heap").display().to_string();
    std::fs::write(&file, "what was there").unwrap();
    good(&place, &["heap", "export", &key, "-o", &file]);
    let names: Vec<String> =
        std::fs::read_dir(place.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| !name.starts_with('.')), "nothing is left beside it: {names:?}");
    // What cannot be written leaves what was there.
    let folder = place.path().join("no").join("such").display().to_string();
    let ended = place.run(&["heap", "export", &key, "-o", &folder, "--json"]);
    assert_eq!((ended.code, &ended.error()["error"]["code"]), (1, &json!("unwritable")));

    let ended = good(&other, &["heap", "import", &file, "--tag", "from=a file"]);
    assert_eq!(ended.out.trim(), key);
    assert!(ended.err.contains("from=a file imported=2") && ended.err.contains("kept for as long as"), "{}", ended.err);
    let shown = good(&other, &["heap", "show", &key]).json();
    assert_eq!((&shown["tags"]["from"], &shown["parents"]), (&json!("a file"), &json!([])));
    let pass = good(&other, &["heap", "gc", "--dry-run", "--json"]).json();
    assert_eq!((&pass["dry_run"], &pass["condemned"]), (&json!(true), &json!(0)), "{pass}");
    // Without its tags nothing leads to it, until someone keeps it.
    good(&other, &["heap", "tag", &key, "--remove", "imported", "--remove", "from"]);
    assert_eq!(good(&other, &["heap", "gc", "--dry-run", "--json"]).json()["condemned"], 1);
    good(&other, &["heap", "pin", &key]);
    assert!(good(&other, &["heap", "list"]).out.contains("pinned"));
    assert_eq!(good(&other, &["heap", "gc", "--dry-run", "--json"]).json()["condemned"], 0);
    good(&other, &["heap", "pin", &key, "--off"]);
    assert_eq!(good(&other, &["heap", "gc", "--dry-run", "--json"]).json()["condemned"], 1);
    assert_eq!(js(&other, "x + 1", &["--heap", &key])["result"], 42);
    assert_eq!(other.run(&["heap", "import", "nowhere.heap"]).code, 3);
}

#[test]
fn output_that_was_not_kept_is_told_of() {
    let place = Place::new();
    let script = write(place.path(), "much.js", "for (let i = 0; i < 1200; i++) console.log('x'.repeat(999))");
    let ended = good(&place, &["js", &script]);
    assert!(ended.err.contains("more bytes were printed and not kept"), "{}", ended.err);
    let id = good(&place, &["execution", "list", "--json"]).json()["executions"][0]["execution_id"].clone();
    let ended = good(&place, &["execution", "output", id.as_str().unwrap()]);
    assert!(ended.err.contains("more bytes were printed and not kept") && ended.out.len() > 1_000_000, "{}", ended.err);
    assert!(js(&place, "console.log(1)", &[]).get("dropped_bytes").is_none());
}

/// `s0`, an id and an intent are the logical session; any other name is a connection's.
#[test]
fn a_session_is_named_as_everywhere() {
    let place = Place::new();
    good(&place, &["context", "count in sessions", "--seed", "demo:Ticket"]);
    let logical =
        |name: &str| js(&place, "globalThis.n = (globalThis.n ?? 0) + 1", &["--session", name])["result"].clone();
    let id = good(&place, &["session", "list", "--json"]).json()["sessions"][0]["logical_session_id"].clone();
    assert_eq!(
        [logical("s0"), logical("count in sessions"), logical(id.as_str().unwrap())],
        [json!(1), json!(2), json!(3)]
    );
    assert_eq!([logical("by name"), logical("by name")], [json!(1), json!(1)], "such a one starts fresh");
    let script = write(place.path(), "a.js", "1");
    assert_eq!(place.run(&["js", &script, "--session", "s5"]).code, 3, "a slot that is not there is no name");

    let listed = good(&place, &["session", "list", "--json"]).json();
    assert_eq!((&listed["sessions"][0]["js_entries"], listed["named"].as_array().unwrap().len()), (&json!(3), 1));
    assert_eq!((&listed["named"][0]["name"], &listed["named"][0]["js_entries"]), (&json!("by name"), &json!(2)));
    let listed = good(&place, &["session", "list"]).out;
    assert!(listed.contains("3 of JavaScript") && listed.contains("by name"), "{listed}");
    assert_eq!(good(&place, &["session", "log", "by name"]).out.lines().count(), 2);
    assert_eq!(good(&place, &["session", "rm", "by name"]).out.trim(), "removed by name");
    assert_eq!(place.run(&["session", "rm", "by name"]).code, 3);
    good(&place, &["session", "rm", "count in sessions"]);
    assert!(good(&place, &["session", "list"]).out.contains("there are no sessions"));
}

#[test]
fn the_way_of_a_heap_is_drawn() {
    let place = Place::new();
    good(&place, &["context", "draw", "--seed", "demo:Ticket"]);
    for code in ["let a = 1", "a = '\"<b>&amp;\\\\'", "a++"] {
        js(&place, code, &["--session", "draw"]);
    }
    good(&place, &["session", "rewind", "draw", "0"]);
    let drawn = good(&place, &["session", "show", "draw", "--graph"]).out;
    assert!(drawn.starts_with("flowchart LR\n") && drawn.contains("n0 --> n1") && drawn.contains(":::head"), "{drawn}");
    let labels: Vec<&str> = drawn.lines().filter(|line| line.trim_start().starts_with("n1[")).collect();
    assert!(labels[0].matches('"').count() == 2 && !labels[0].contains('<'), "code is text: {labels:?}");
    let picture = good(&place, &["session", "show", "draw", "--graph", "svg"]).out;
    well_formed(&picture);
    assert!(picture.contains("(rewound to 0)") && !picture.contains("<b>"), "{picture}");
    let file = place.path().join("way.svg").display().to_string();
    good(&place, &["session", "log", "draw", "--graph", "svg", "-o", &file]);
    assert_eq!(std::fs::read_to_string(file).unwrap().trim_end(), picture.trim_end());
}

/// Every tag that is opened is closed in its turn, values are quoted, and `&` and `<` stand only where markup begins.
fn well_formed(text: &str) {
    let (mut open, mut rest) = (Vec::new(), text.trim_start());
    while let Some(at) = rest.find('<') {
        let between = &rest[..at];
        assert!(!between.contains('>'), "{between}");
        for (after, _) in between.match_indices('&') {
            assert!(between[after..].contains(';'), "{between}");
        }
        let end = at + rest[at..].find('>').unwrap_or_else(|| panic!("a tag without its end: {}", &rest[at..]));
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if tag.starts_with('?') || tag.starts_with('!') {
            continue;
        }
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name.trim()), "{tag}"),
            None => {
                assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
                let name = tag.split_whitespace().next().unwrap().trim_end_matches('/').to_owned();
                if !tag.ends_with('/') {
                    open.push(name);
                }
            }
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
    assert!(text.contains("<svg"), "{text}");
}

#[test]
fn a_write_that_waits_shows_its_plan_and_what_lets_it_happen() {
    let place = Place::new();
    good(&place, &["context", "write", "--seed", "demo:Ticket:*"]);
    let script = write(place.path(), "w.js", r#"await plasm('Ticket.open(project="OPS", title="from code")'); 'done'"#);
    let ended = place.run(&["js", &script, "--session", "s0", "--timeout-ms", "600000"]);
    assert_eq!(ended.code, 1, "{}", ended.out);
    let line = ended.err.lines().find(|line| line.contains("tokamak run")).unwrap_or_else(|| panic!("{}", ended.err));
    assert!(ended.err.contains("waiting_review") && ended.err.contains("plan review"), "{}", ended.err);
    let listed = good(&place, &["execution", "list", "--json"]).json();
    let id = listed["executions"][0]["execution_id"].as_str().unwrap().to_owned();
    let shown = good(&place, &["execution", "show", &id]).out;
    assert!(shown.contains("plan review") && shown.contains(line.split_once("tokamak").unwrap().1), "{shown}");
    // The line is one that can be copied.
    let words: Vec<&str> = line.split_once("tokamak ").unwrap().1.split(' ').collect();
    let ended = good(&place, &words);
    assert!(ended.out.contains("from code") || ended.out.contains("OPS"), "{}", ended.out);
}
