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
