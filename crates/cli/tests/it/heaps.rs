//! Tests of `tokamak js`, `execution`, `heap` and `session`. Each test has its own data folder.

use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Ended, tokamak, write};

/// The key of a heap that does not exist.
const UNKNOWN_HEAP: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A temporary folder with the data folder and the script files of one test.
struct TestFolder(tempfile::TempDir);

impl TestFolder {
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

/// Wrong arguments have the exit code 2, and a thing that does not exist has the exit code 3. The JSON error has the matching stable code.
#[test]
fn wrong_arguments_and_missing_things_have_different_exit_codes() {
    let folder = TestFolder::new();
    let script = write(folder.path(), "a.js", "1");
    let empty = write(folder.path(), "empty.js", "  ");
    let long = format!("{}=v", "k".repeat(300));
    let name = "n".repeat(300);
    let cases: [(&[&str], i32, &str); 12] = [
        (&["heap", "show", UNKNOWN_HEAP], 3, "no_heap"),
        (&["heap", "export", UNKNOWN_HEAP, "-o", "/dev/null"], 3, "no_heap"),
        (&["heap", "diff", UNKNOWN_HEAP, UNKNOWN_HEAP], 3, "no_heap"),
        (&["execution", "show", "nothing"], 3, "no_execution"),
        (&["execution", "cancel", "nothing"], 3, "no_execution"),
        (&["js", &script, "--heap", UNKNOWN_HEAP], 3, "no_heap"),
        (&["heap", "show", "nothing"], 2, "bad_heap"),
        (&["heap", "import", &script], 2, "not_a_heap"),
        (&["js", &script, "--tag", &long], 2, "bad_tags"),
        (&["js", &empty], 2, "bad_code"),
        (&["js", &script, "--memory-mb", "100000"], 2, "bad_arguments"),
        (&["js", &script, "--session", &name], 2, "no_session_name"),
    ];
    for (arguments, exit_code, code) in cases {
        let ended = folder.run(&[arguments, &["--json"]].concat());
        assert_eq!((ended.code, ended.error()["error"]["code"].as_str()), (exit_code, Some(code)), "{arguments:?}");
    }
    let throws = write(folder.path(), "throws.js", "null.f()");
    assert_eq!(folder.run(&["js", &throws]).code, 1, "a run that failed is a failure");
}

/// Runs code with `tokamak js` and returns the JSON output of the run.
fn js(folder: &TestFolder, code: &str, more: &[&str]) -> Value {
    let script = write(folder.path(), "run.js", code);
    let ended = folder.run(&[&["js", &script, "--json"], more].concat());
    assert_eq!(ended.code, 0, "{}", ended.err);
    ended.json()[0].clone()
}

/// Runs code with `tokamak js` and returns the key of the heap after the run.
fn heap(folder: &TestFolder, code: &str, more: &[&str]) -> String {
    js(folder, code, more)["heap"].as_str().unwrap().to_owned()
}

/// Runs a command that must succeed.
fn succeed(folder: &TestFolder, arguments: &[&str]) -> Ended {
    let ended = folder.run(arguments);
    assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.err);
    ended
}

#[test]
fn heaps_are_listed_shown_compared_tagged_and_found() {
    let folder = TestFolder::new();
    let first = heap(&folder, "let a = 1, unused = 2", &["--tag", "env=test"]);
    let second = heap(&folder, "a = [1, 2]; globalThis.b = 3", &["--heap", &first]);
    let listed = succeed(&folder, &["heap", "list"]).out;
    assert!(listed.lines().count() == 2 && listed.contains(&first) && listed.contains("env=test"), "{listed}");
    let page = succeed(&folder, &["heap", "list", "--json", "--limit", "1"]).json();
    let key = page["heaps"][0]["heap"].as_str().unwrap();
    let next_page = succeed(&folder, &["heap", "list", "--json", "--after", key]).json();
    let both = [key, next_page["heaps"][0]["heap"].as_str().unwrap()];
    assert!(both.contains(&first.as_str()) && both.contains(&second.as_str()), "{page} {next_page}");

    let shown = succeed(&folder, &["heap", "show", &second]).json();
    assert_eq!((&shown["parents"], &shown["tags"]), (&json!([first]), &json!({})), "{shown}");
    assert!(shown["memory_bytes"].as_u64() > shown["stored_bytes"].as_u64() && shown["stored_against"].is_array());

    let diff = succeed(&folder, &["heap", "diff", &first, &second]).out;
    assert!(diff.contains("+ b number 3") && diff.contains("~ a 1 -> "), "{diff}");
    assert!(diff.lines().last().unwrap().contains("unchanged; memory"), "{diff}");
    let diff = succeed(&folder, &["heap", "diff", &first, &second, "--json"]).json();
    assert_eq!((&diff["added"][0]["name"], &diff["changed"][0]["name"]), (&json!("b"), &json!("a")), "{diff}");

    assert_eq!(succeed(&folder, &["heap", "tag", &second, "env=test", "n=2"]).out.trim(), "env=test n=2");
    assert_eq!(succeed(&folder, &["heap", "tag", &second, "--remove", "n"]).out.trim(), "env=test");
    let found = succeed(&folder, &["heap", "find", "env=test", "--json"]).json();
    assert_eq!(found["results"].as_array().unwrap().len(), 2, "{found}");
    succeed(&folder, &["heap", "tag", &first, "--remove", "env"]);
    assert_eq!(succeed(&folder, &["heap", "find", "env=test"]).out.trim(), format!("{second} env=test"));
    assert_eq!(succeed(&folder, &["heap", "find", "env=other"]).out, "");
}

#[test]
fn a_heap_is_exported_whole_and_imported_with_a_tag_that_keeps_it() {
    let (folder, other) = (TestFolder::new(), TestFolder::new());
    let key = heap(&folder, "let x = 41", &[]);
    let file = folder.path().join("x.heap").display().to_string();
    std::fs::write(&file, "old content").unwrap();
    succeed(&folder, &["heap", "export", &key, "-o", &file]);
    let names: Vec<String> =
        std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| !name.starts_with('.')), "a temporary file is left: {names:?}");
    // The export to a folder that does not exist must fail.
    let missing_folder = folder.path().join("no").join("such").display().to_string();
    let ended = folder.run(&["heap", "export", &key, "-o", &missing_folder, "--json"]);
    assert_eq!((ended.code, &ended.error()["error"]["code"]), (1, &json!("unwritable")));

    let ended = succeed(&other, &["heap", "import", &file, "--tag", "from=a file"]);
    assert_eq!(ended.out.trim(), key);
    assert!(
        ended.err.contains("from=a file imported=2") && ended.err.contains("kept while it has a tag"),
        "{}",
        ended.err
    );
    let shown = succeed(&other, &["heap", "show", &key]).json();
    assert_eq!((&shown["tags"]["from"], &shown["parents"]), (&json!("a file"), &json!([])));
    let pass = succeed(&other, &["heap", "gc", "--dry-run", "--json"]).json();
    assert_eq!((&pass["dry_run"], &pass["condemned"]), (&json!(true), &json!(0)), "{pass}");
    // Without tags nothing refers to the heap, so the collection counts it until it is pinned.
    succeed(&other, &["heap", "tag", &key, "--remove", "imported", "--remove", "from"]);
    assert_eq!(succeed(&other, &["heap", "gc", "--dry-run", "--json"]).json()["condemned"], 1);
    succeed(&other, &["heap", "pin", &key]);
    assert!(succeed(&other, &["heap", "list"]).out.contains("pinned"));
    assert_eq!(succeed(&other, &["heap", "gc", "--dry-run", "--json"]).json()["condemned"], 0);
    succeed(&other, &["heap", "pin", &key, "--off"]);
    assert_eq!(succeed(&other, &["heap", "gc", "--dry-run", "--json"]).json()["condemned"], 1);
    assert_eq!(js(&other, "x + 1", &["--heap", &key])["result"], 42);
    assert_eq!(other.run(&["heap", "import", "nowhere.heap"]).code, 3);
}

#[test]
fn output_that_was_not_kept_is_reported() {
    let folder = TestFolder::new();
    let script = write(folder.path(), "much.js", "for (let i = 0; i < 1200; i++) console.log('x'.repeat(999))");
    let ended = succeed(&folder, &["js", &script]);
    assert!(ended.err.contains("more bytes of console output, which were not stored"), "{}", ended.err);
    let id = succeed(&folder, &["execution", "list", "--json"]).json()["executions"][0]["execution_id"].clone();
    let ended = succeed(&folder, &["execution", "output", id.as_str().unwrap()]);
    assert!(
        ended.err.contains("more bytes of console output, which were not stored") && ended.out.len() > 1_000_000,
        "{}",
        ended.err
    );
    assert!(js(&folder, "console.log(1)", &[]).get("dropped_bytes").is_none());
}

/// A slot, an id and an intent name a logical session. Any other name is that of a named session.
#[test]
fn a_session_is_named_by_slot_id_intent_or_connection_name() {
    let folder = TestFolder::new();
    succeed(&folder, &["context", "count in sessions", "--seed", "demo:Ticket"]);
    let logical =
        |name: &str| js(&folder, "globalThis.n = (globalThis.n ?? 0) + 1", &["--session", name])["result"].clone();
    let id = succeed(&folder, &["session", "list", "--json"]).json()["sessions"][0]["logical_session_id"].clone();
    assert_eq!(
        [logical("s0"), logical("count in sessions"), logical(id.as_str().unwrap())],
        [json!(1), json!(2), json!(3)]
    );
    assert_eq!([logical("by name"), logical("by name")], [json!(1), json!(1)], "a named session starts fresh");
    let script = write(folder.path(), "a.js", "1");
    assert_eq!(folder.run(&["js", &script, "--session", "s5"]).code, 3, "an unknown slot is not a name");

    let listed = succeed(&folder, &["session", "list", "--json"]).json();
    assert_eq!((&listed["sessions"][0]["js_entries"], listed["named"].as_array().unwrap().len()), (&json!(3), 1));
    assert_eq!((&listed["named"][0]["name"], &listed["named"][0]["js_entries"]), (&json!("by name"), &json!(2)));
    let listed = succeed(&folder, &["session", "list"]).out;
    assert!(listed.contains("3 of JavaScript") && listed.contains("by name"), "{listed}");
    assert_eq!(succeed(&folder, &["session", "log", "by name"]).out.lines().count(), 2);
    assert_eq!(succeed(&folder, &["session", "rm", "by name"]).out.trim(), "removed the session by name");
    assert_eq!(folder.run(&["session", "rm", "by name"]).code, 3);
    succeed(&folder, &["session", "rm", "count in sessions"]);
    assert!(succeed(&folder, &["session", "list"]).out.contains("there are no sessions"));
}

#[test]
fn the_log_of_a_session_is_drawn() {
    let folder = TestFolder::new();
    succeed(&folder, &["context", "draw", "--seed", "demo:Ticket"]);
    for code in ["let a = 1", "a = '\"<b>&amp;\\\\'", "a++"] {
        js(&folder, code, &["--session", "draw"]);
    }
    succeed(&folder, &["session", "rewind", "draw", "0"]);
    let drawn = succeed(&folder, &["session", "show", "draw", "--graph"]).out;
    assert!(drawn.starts_with("flowchart LR\n") && drawn.contains("n0 --> n1") && drawn.contains(":::head"), "{drawn}");
    let labels: Vec<&str> = drawn.lines().filter(|line| line.trim_start().starts_with("n1[")).collect();
    assert!(
        labels[0].matches('"').count() == 2 && !labels[0].contains('<'),
        "code must be text, not markup: {labels:?}"
    );
    let picture = succeed(&folder, &["session", "show", "draw", "--graph", "svg"]).out;
    assert_well_formed(&picture);
    assert!(picture.contains("(rewound to 0)") && !picture.contains("<b>"), "{picture}");
    let file = folder.path().join("log.svg").display().to_string();
    succeed(&folder, &["session", "log", "draw", "--graph", "svg", "-o", &file]);
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim_end(), picture.trim_end());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "a log is private");
    }
}

/// Asserts that all tags are closed in order, that attribute values are quoted, and that `&` and `<` occur only as the start of markup.
fn assert_well_formed(text: &str) {
    let mut open_tags = Vec::new();
    let mut rest = text.trim_start();
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
            Some(name) => assert_eq!(open_tags.pop().as_deref(), Some(name.trim()), "{tag}"),
            None => {
                assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
                let name = tag.split_whitespace().next().unwrap().trim_end_matches('/').to_owned();
                if !tag.ends_with('/') {
                    open_tags.push(name);
                }
            }
        }
    }
    assert!(open_tags.is_empty() && rest.trim().is_empty(), "{open_tags:?} {rest}");
    assert!(text.contains("<svg"), "{text}");
}

#[test]
fn a_write_that_waits_for_a_review_shows_its_plan_and_the_command_that_approves_it() {
    let folder = TestFolder::new();
    succeed(&folder, &["context", "write", "--seed", "demo:Ticket:*"]);
    let script =
        write(folder.path(), "w.js", r#"await plasm('Ticket.open(project="OPS", title="from code")'); 'done'"#);
    let ended = folder.run(&["js", &script, "--session", "s0", "--timeout-ms", "600000"]);
    assert_eq!(ended.code, 1, "{}", ended.out);
    let line = ended.err.lines().find(|line| line.contains("tokamak run")).unwrap_or_else(|| panic!("{}", ended.err));
    assert!(ended.err.contains("waiting_review") && ended.err.contains("plan review"), "{}", ended.err);
    let listed = succeed(&folder, &["execution", "list", "--json"]).json();
    let id = listed["executions"][0]["execution_id"].as_str().unwrap().to_owned();
    let shown = succeed(&folder, &["execution", "show", &id]).out;
    assert!(shown.contains("plan review") && shown.contains(line.split_once("tokamak").unwrap().1), "{shown}");
    // The test runs the printed command unchanged.
    let words: Vec<&str> = line.split_once("tokamak ").unwrap().1.split(' ').collect();
    let ended = succeed(&folder, &words);
    assert!(ended.out.contains("from code") || ended.out.contains("OPS"), "{}", ended.out);
}
