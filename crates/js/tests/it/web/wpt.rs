//! The web-platform tests of the globals, as Node's sources carry them: `WPT` names the folder that `scripts/ecmascript.sh` has
//! unpacked. Each file is run on a heap with the suite's own harness, stored and restored at every await.

use std::collections::{BTreeSet, HashMap};
use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::ecmascript::desk::{Case, Desk, Wanted};
use crate::ecmascript::suite::chosen;

const EXPECTED: &str = include_str!("wpt.txt");
/// What is run, and in it what is not, with the reason.
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
/// Data that tests ask for by `fetch`.
const DATA: &[(&str, &str)] = &[
    ("resources/urltestdata.json", "url/resources/urltestdata.json"),
    ("resources/urltestdata-javascript-only.json", "url/resources/urltestdata-javascript-only.json"),
    ("resources/setters_tests.json", "url/resources/setters_tests.json"),
    ("resources/toascii.json", "url/resources/toascii.json"),
    ("resources/percent-encoding.json", "url/resources/percent-encoding.json"),
    ("../../../fetch/data-urls/resources/base64.json", "fetch/data-urls/resources/base64.json"),
];

/// Before the suite's harness, and after it: a page that is none, and a report of each test.
const BEFORE: &str = "
    globalThis.self = globalThis;
    globalThis.Blob = class Blob {}; globalThis.File = class File {};
    globalThis.location = {search: '', href: 'https://web-platform.test/', pathname: '/'};
    globalThis.GLOBAL = {isWindow: () => false, isWorker: () => false, isShadowRealm: () => false};
    0";
const AFTER: &str = "
    setup({explicit_done: true});
    globalThis.wholeSuite = new Promise((over) => add_completion_callback(over));
    add_result_callback((test) => console.log('WPT ' + JSON.stringify([test.name, test.status, test.message])));
    0";

#[test]
#[ignore = "needs the web-platform tests, which scripts/ecmascript.sh fetches"]
fn web_platform_tests() {
    let root = PathBuf::from(env::var_os("WPT").unwrap());
    let mut listed = listed();
    // `file: "beginning*` stands for all tests whose names begin so.
    let groups: Vec<String> = listed.keys().filter_map(|name| name.strip_suffix('*')).map(str::to_owned).collect();
    let mut met = BTreeSet::new();
    let from = root.clone();
    let desk = Desk::new(true, Arc::new(move |name| text(&from, name)));
    let (mut passed, mut of, mut files, mut wrong) = (0, 0, 0, String::new());
    for name in names(&root) {
        files += 1;
        let said = desk.said(&case(&root, &name));
        let results: Vec<Value> = said
            .as_deref()
            .unwrap_or_default()
            .lines()
            .filter_map(|line| serde_json::from_str(line.strip_prefix("WPT ")?).ok())
            .collect();
        if results.is_empty() && listed.remove(&name).is_none() {
            writeln!(wrong, "{name}").unwrap();
            println!("{name} has no result: {said:?}");
        }
        for result in results {
            of += 1;
            let title = format!("{name}: {}", result[0]);
            let failed = result[1] != 0;
            passed += usize::from(!failed);
            let group = groups.iter().find(|group| title.starts_with(group.as_str()));
            let entry = match group {
                Some(group) => {
                    met.insert(group.clone());
                    Some("a group of them".to_owned())
                }
                None => listed.remove(&title),
            };
            match (failed, entry) {
                (true, None) => {
                    writeln!(wrong, "{title}").unwrap();
                    println!("{title}: {}", result[2]);
                }
                (false, Some(why)) => writeln!(wrong, "{title} passes, and is listed: {why}").unwrap(),
                _ => {}
            }
        }
    }
    println!("web-platform tests: {files} files, {passed} of {of} tests pass");
    listed.retain(|name, _| name.strip_suffix('*').is_none_or(|group| !met.contains(group)));
    if env::var_os("ECMASCRIPT_ONLY").is_none() {
        assert!(listed.is_empty(), "listed, and not there: {listed:#?}");
    }
    assert!(wrong.is_empty() && passed > 0, "{wrong}");
}

fn listed() -> HashMap<String, String> {
    let (mut found, mut why) = (HashMap::new(), "");
    for line in EXPECTED.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        match line.strip_prefix("## ") {
            Some(reason) => why = reason,
            None => assert!(found.insert(line.to_owned(), why.to_owned()).is_none(), "{line} is listed twice"),
        }
    }
    found
}

fn names(root: &Path) -> BTreeSet<String> {
    let all = crate::ecmascript::quickjs::files(root);
    let names = all.iter().map(|path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
    names
        .filter(|name| name.ends_with(".any.js") && FOLDERS.iter().any(|folder| name.starts_with(folder)))
        .filter(|name| chosen(name) && LEFT_OUT.iter().all(|(part, _)| !name.contains(part)))
        .collect()
}

/// Its scripts before it, and its end after it: no test is added any more, and all of them are waited for.
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
    Case { name: name.to_owned(), harness, source, wanted: Wanted::Completes }
}

fn text(root: &Path, name: &str) -> String {
    match name {
        "<before>" => BEFORE.to_owned(),
        "<after>" => AFTER.to_owned(),
        "<data>" => {
            let mut files = serde_json::Map::new();
            for (asked, path) in DATA {
                if let Ok(content) = fs::read_to_string(root.join(path)) {
                    files.insert((*asked).to_owned(), Value::String(content));
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
