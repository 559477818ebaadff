//! The web-platform tests of the globals, from the sources of Node. `WPT` is the folder that `scripts/ecmascript.sh`
//! has unpacked. Each file runs on a heap with the suite's own harness, which is stored and loaded at every await.

use std::collections::{BTreeSet, HashMap};
use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::ecmascript::case_runner::{Case, CaseRunner, Expectation};
use crate::ecmascript::suite::is_chosen;

const KNOWN_FAILURES: &str = include_str!("wpt.txt");
/// Files whose names begin with one of these texts are run.
const FOLDERS: &[&str] = &[
    "url/",
    "encoding/",
    "html/webappapis/",
    "dom/abort/",
    "dom/events/",
    "console/",
    "hr-time/",
    "WebCryptoAPI/digest/",
    "WebCryptoAPI/getRandomValues",
    "WebCryptoAPI/randomUUID",
];
const OTHER_ENCODINGS: &str = "utf-8, utf-16 and windows-1252 are here, and no other encoding";
/// Files whose names contain one of these texts are not run. Each text has its reason.
const LEFT_OUT: &[(&str, &str)] = &[
    ("idlharness", "needs the descriptions of interfaces that are not here"),
    ("encoding/streams/", "no streams"),
    ("encoding/legacy-mb", OTHER_ENCODINGS),
    ("encoding/textdecoder-fatal-single-byte", OTHER_ENCODINGS),
    ("encoding/textdecoder-labels", OTHER_ENCODINGS),
    ("encoding/textencoder-constructor-non-utf", OTHER_ENCODINGS),
    ("encoding/iso-2022-jp-decoder", OTHER_ENCODINGS),
    ("encoding/unsupported-encodings", OTHER_ENCODINGS),
    ("encoding/replacement-encodings", OTHER_ENCODINGS),
    ("scrolling", "needs a page"),
];
/// Files that tests read with `fetch`: the name in the test, and the path in the suite.
const DATA_FILES: &[(&str, &str)] = &[
    ("resources/urltestdata.json", "url/resources/urltestdata.json"),
    ("resources/urltestdata-javascript-only.json", "url/resources/urltestdata-javascript-only.json"),
    ("resources/setters_tests.json", "url/resources/setters_tests.json"),
    ("resources/toascii.json", "url/resources/toascii.json"),
    ("resources/percent-encoding.json", "url/resources/percent-encoding.json"),
    ("../../../fetch/data-urls/resources/base64.json", "fetch/data-urls/resources/base64.json"),
];

/// A script that runs before the suite's harness. It defines the parts of a page that the harness expects.
const BEFORE: &str = "
    globalThis.self = globalThis;
    globalThis.Blob = class Blob {}; globalThis.File = class File {};
    globalThis.location = {search: '', href: 'https://web-platform.test/', pathname: '/'};
    globalThis.GLOBAL = {isWindow: () => false, isWorker: () => false, isShadowRealm: () => false};
    0";
/// A script that runs after the suite's harness. It prints a report of each test.
const AFTER: &str = "
    setup({explicit_done: true});
    globalThis.wholeSuite = new Promise((over) => add_completion_callback(over));
    add_result_callback((test) => console.log('WPT ' + JSON.stringify([test.name, test.status, test.message])));
    0";

#[test]
#[ignore = "needs the web-platform tests, which scripts/ecmascript.sh fetches"]
fn web_platform_tests() {
    let root = PathBuf::from(env::var_os("WPT").unwrap());
    let mut listed = known_failures();
    // An entry `file: "beginning*` covers all tests whose names begin like this.
    let groups: Vec<String> = listed.keys().filter_map(|name| name.strip_suffix('*')).map(str::to_owned).collect();
    let mut used_groups = BTreeSet::new();
    let harness_root = root.clone();
    let runner = CaseRunner::new(true, Arc::new(move |name| harness_text(&harness_root, name)));
    let mut passed = 0;
    let mut total = 0;
    let mut files = 0;
    let mut problems = String::new();
    for name in names(&root) {
        files += 1;
        let console = runner.console_of(&case(&root, &name));
        let results: Vec<Value> = console
            .as_deref()
            .unwrap_or_default()
            .lines()
            .filter_map(|line| serde_json::from_str(line.strip_prefix("WPT ")?).ok())
            .collect();
        if results.is_empty() && listed.remove(&name).is_none() {
            writeln!(problems, "{name}").unwrap();
            println!("{name} has no result: {console:?}");
        }
        for result in results {
            total += 1;
            let title = format!("{name}: {}", result[0]);
            let failed = result[1] != 0;
            passed += usize::from(!failed);
            let group = groups.iter().find(|group| title.starts_with(group.as_str()));
            let entry = match group {
                Some(group) => {
                    used_groups.insert(group.clone());
                    Some("as part of a group".to_owned())
                }
                None => listed.remove(&title),
            };
            match (failed, entry) {
                (true, None) => {
                    writeln!(problems, "{title}").unwrap();
                    println!("{title}: {}", result[2]);
                }
                (false, Some(reason)) => writeln!(problems, "{title} passes, but is listed: {reason}").unwrap(),
                _ => {}
            }
        }
    }
    println!("web-platform tests: {files} files, {passed} of {total} tests pass");
    listed.retain(|name, _| name.strip_suffix('*').is_none_or(|group| !used_groups.contains(group)));
    if env::var_os("ECMASCRIPT_ONLY").is_none() {
        assert!(listed.is_empty(), "listed, but there is no such test: {listed:#?}");
    }
    assert!(problems.is_empty() && passed > 0, "{problems}");
}

/// Returns the reason for each listed test.
fn known_failures() -> HashMap<String, String> {
    let mut reasons = HashMap::new();
    let mut section_reason = "";
    for line in KNOWN_FAILURES.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        match line.strip_prefix("## ") {
            Some(reason) => section_reason = reason,
            None => {
                let earlier = reasons.insert(line.to_owned(), section_reason.to_owned());
                assert!(earlier.is_none(), "{line} is listed twice");
            }
        }
    }
    reasons
}

/// Returns the names of the files to run.
fn names(root: &Path) -> BTreeSet<String> {
    let all = crate::ecmascript::quickjs::files(root);
    let names = all.iter().map(|path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
    names
        .filter(|name| name.ends_with(".any.js") && FOLDERS.iter().any(|folder| name.starts_with(folder)))
        .filter(|name| is_chosen(name) && LEFT_OUT.iter().all(|(part, _)| !name.contains(part)))
        .collect()
}

/// Returns the case of a test file. The scripts that the file includes run first, and the end of the case waits for all
/// tests.
fn case(root: &Path, name: &str) -> Case {
    let source = fs::read_to_string(root.join(name)).unwrap();
    let mut harness: Vec<String> =
        ["<before>", "<data>", "resources/testharness.js", "<after>"].map(str::to_owned).into();
    let folder = Path::new(name).parent().unwrap();
    for script in source.lines().filter_map(|line| line.strip_prefix("// META: script=")) {
        let path = match script.strip_prefix('/') {
            Some(path) => PathBuf::from(path),
            None => folder.join(script),
        };
        harness.push(path.to_str().unwrap().to_owned());
    }
    let source = format!("{source}\n;done(); await wholeSuite; 0");
    Case { name: name.to_owned(), harness, source, expectation: Expectation::Completes }
}

/// Returns the text of a harness file.
fn harness_text(root: &Path, name: &str) -> String {
    match name {
        "<before>" => BEFORE.to_owned(),
        "<after>" => AFTER.to_owned(),
        "<data>" => {
            let mut files = serde_json::Map::new();
            for (name, path) in DATA_FILES {
                if let Ok(content) = fs::read_to_string(root.join(path)) {
                    files.insert((*name).to_owned(), Value::String(content));
                }
            }
            let files = Value::Object(files);
            format!(
                "const files = {files}; globalThis.fetch = (path) => Promise.resolve({{json: () => JSON.parse(files[path])}}); 0"
            )
        }
        path => fs::read_to_string(root.join(path)).unwrap(),
    }
}
