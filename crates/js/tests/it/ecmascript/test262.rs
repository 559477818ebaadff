//! Test262, as SpiderMonkey's sources carry it: `TEST262` names the folder that `scripts/ecmascript.sh` has unpacked.
//! There each folder has a `shell.js` with the harness files that its tests include, and each test ends with a report.

use std::collections::{BTreeMap, HashSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::package;

use super::desk::{Case, Wanted};
use super::expected::Expected;
use super::meta::Meta;
use super::quickjs::{PACKAGE, files};
use super::suite::{Suite, chosen};

const EXPECTED: &str = include_str!("test262.txt");
const SAYS: &str = "Test262 passed";

/// What the harness asks of a shell. A buffer is detached by moving its content away.
const SHELL: &str = "
    globalThis.print ??= (text) => console.log(text);
    globalThis.reportCompare = () => print('Test262 passed');
    globalThis.reportFailure = (why) => print('Test262 failed: ' + why);
    globalThis.createIsHTMLDDA = () => undefined;
    globalThis.detachArrayBuffer = (buffer) => { ArrayBuffer.prototype.transfer.call(buffer) };
    globalThis.evaluate = (code) => (0, eval)(code);
    globalThis.gc ??= () => {};
    globalThis.clearKeptObjects = () => {};
    0";

/// What is not run: a part of the path or of the text, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("$262.createRealm", "a heap is one realm"),
    ("$262.agent", "no threads"),
    ("$262.evalScript", "a program is not a script: declarations may be repeated"),
    ("$262.IsHTMLDDA", "no document"),
    ("$262.gc", "no collection on request"),
];
const FOLDERS_LEFT_OUT: &[(&str, &str)] = &[
    ("intl402/", "Intl is a small part of itself"),
    ("staging/", "not yet part of the suite"),
    ("prs/", "not yet part of the suite"),
];

#[test]
#[ignore = "needs Test262, which scripts/ecmascript.sh fetches"]
fn test262() {
    let root = PathBuf::from(env::var_os("TEST262").unwrap());
    let skipped_features = features_left_out();
    let (mut cases, mut left_out) = (Vec::new(), BTreeMap::<String, usize>::new());
    for path in files(&root) {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let support = ["shell.js", "browser.js"].iter().any(|end| name.ends_with(end)) || name.ends_with("_FIXTURE.js");
        if support || !chosen(&name) {
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let meta = Meta::read(&text);
        match why_left_out(&name, &text, &meta, &skipped_features) {
            Some(why) => *left_out.entry(why).or_default() += 1,
            None => cases.push(case(&root, name, text, &meta)),
        }
    }
    for (why, count) in &left_out {
        println!("left out: {count} files: {why}");
    }
    let part = env::var("ECMASCRIPT_EVERY").ok().and_then(|every| every.parse().ok()).unwrap_or(1);
    let cases: Vec<_> = cases.into_iter().step_by(part).collect();
    let library = move |name: &str| {
        if name == "shell" { SHELL.to_owned() } else { fs::read_to_string(root.join(name)).unwrap() }
    };
    let expected = Expected::read(EXPECTED);
    let suite = Suite {
        title: "Test262",
        library: Arc::new(library),
        expected: &expected,
        natively: &|native, at, case| native.script(at, case),
        all: part == 1,
    };
    suite.hold(&cases);
}

fn why_left_out(name: &str, text: &str, meta: &Meta, features: &HashSet<String>) -> Option<String> {
    if meta.is("module") || name.contains("dynamic-import") || text.contains("import.meta") {
        return Some("no modules in a program".to_owned());
    }
    if meta.is("CanBlockIsFalse") || meta.is("CanBlockIsTrue") {
        return Some("no threads".to_owned());
    }
    if let Some((_, why)) = FOLDERS_LEFT_OUT.iter().find(|(folder, _)| name.starts_with(folder)) {
        return Some((*why).to_owned());
    }
    if meta.features.iter().any(|feature| feature == "Atomics" || feature == "SharedArrayBuffer") {
        return Some("no threads, so no Atomics".to_owned());
    }
    if meta.features.iter().any(|feature| feature.starts_with("FinalizationRegistry.prototype.cleanupSome")) {
        return Some("cleanupSome was given up".to_owned());
    }
    if let Some(feature) = meta.features.iter().find(|feature| features.contains(*feature)) {
        return Some(format!("QuickJS-NG does not have {feature}"));
    }
    LEFT_OUT.iter().find(|(part, _)| text.contains(part)).map(|(_, why)| (*why).to_owned())
}

/// What QuickJS-NG's own run of Test262 leaves out.
fn features_left_out() -> HashSet<String> {
    let settings = fs::read_to_string(package(PACKAGE).join("embed/quickjs/test262.conf")).unwrap();
    let features = settings.split("[features]").nth(1).unwrap().split("[exclude]").next().unwrap().to_owned();
    features.lines().filter_map(|line| line.trim().strip_suffix("=skip")).map(str::to_owned).collect()
}

fn case(root: &Path, name: String, source: String, meta: &Meta) -> Case {
    let wanted = meta.negative.clone().map_or(Wanted::Says(SAYS), Wanted::Throws);
    let mut harness = vec!["shell".to_owned()];
    // A raw file stands alone.
    if !meta.is("raw") {
        let mut folder = String::new();
        for part in name.split('/') {
            let shell = format!("{folder}shell.js");
            if fs::metadata(root.join(&shell)).is_ok_and(|shell| shell.len() > 0) {
                harness.push(shell);
            }
            folder = format!("{folder}{part}/");
        }
    }
    Case { name, harness, source, wanted }
}
