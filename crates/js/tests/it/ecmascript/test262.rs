//! Test262, in the form in which the sources of SpiderMonkey contain it. `TEST262` is the folder that
//! `scripts/ecmascript.sh` has unpacked. Each folder there has a `shell.js` with the harness files that its tests
//! include, and each test ends with a report.

use std::collections::{BTreeMap, HashSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::package;

use super::case_runner::{Case, Expectation};
use super::front_matter::FrontMatter;
use super::known_failures::KnownFailures;
use super::quickjs::{PACKAGE, files};
use super::suite::{Suite, is_chosen};

const KNOWN_FAILURES: &str = include_str!("test262.txt");
const PASSED: &str = "Test262 passed";

/// Defines the functions that the harness expects of a shell. A buffer is detached by transferring its content.
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

/// Texts of files that are not run, with the reason.
const TEXTS_LEFT_OUT: &[(&str, &str)] = &[
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
    let mut cases = Vec::new();
    let mut left_out = BTreeMap::<String, usize>::new();
    for path in files(&root) {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let is_harness =
            ["shell.js", "browser.js"].iter().any(|end| name.ends_with(end)) || name.ends_with("_FIXTURE.js");
        if is_harness || !is_chosen(&name) {
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let front_matter = FrontMatter::read(&text);
        match reason_to_leave_out(&name, &text, &front_matter, &skipped_features) {
            Some(reason) => *left_out.entry(reason).or_default() += 1,
            None => cases.push(case(&root, name, text, &front_matter)),
        }
    }
    for (reason, count) in &left_out {
        println!("left out: {count} files: {reason}");
    }
    // `ECMASCRIPT_EVERY=10` runs every tenth file.
    let every = env::var("ECMASCRIPT_EVERY").ok().and_then(|every| every.parse().ok()).unwrap_or(1);
    let cases: Vec<_> = cases.into_iter().step_by(every).collect();
    let harness_files = move |name: &str| {
        if name == "shell" { SHELL.to_owned() } else { fs::read_to_string(root.join(name)).unwrap() }
    };
    let known_failures = KnownFailures::read(KNOWN_FAILURES);
    let suite = Suite {
        title: "Test262",
        harness_files: Arc::new(harness_files),
        known_failures: &known_failures,
        run_natively: &|native, index, case| native.run_script(index, case),
        is_complete: every == 1,
    };
    suite.check(&cases);
}

fn reason_to_leave_out(
    name: &str,
    text: &str,
    front_matter: &FrontMatter,
    skipped_features: &HashSet<String>,
) -> Option<String> {
    if front_matter.has_flag("module") || name.contains("dynamic-import") || text.contains("import.meta") {
        return Some("no modules in a program".to_owned());
    }
    if front_matter.has_flag("CanBlockIsFalse") || front_matter.has_flag("CanBlockIsTrue") {
        return Some("no threads".to_owned());
    }
    if let Some((_, why)) = FOLDERS_LEFT_OUT.iter().find(|(folder, _)| name.starts_with(folder)) {
        return Some((*why).to_owned());
    }
    if front_matter.features.iter().any(|feature| feature == "Atomics" || feature == "SharedArrayBuffer") {
        return Some("no threads, so no Atomics".to_owned());
    }
    if front_matter.features.iter().any(|feature| feature.starts_with("FinalizationRegistry.prototype.cleanupSome")) {
        return Some("cleanupSome was withdrawn from the language".to_owned());
    }
    if let Some(feature) = front_matter.features.iter().find(|feature| skipped_features.contains(*feature)) {
        return Some(format!("QuickJS-NG does not have {feature}"));
    }
    TEXTS_LEFT_OUT.iter().find(|(part, _)| text.contains(part)).map(|(_, why)| (*why).to_owned())
}

/// Returns the features that QuickJS-NG itself leaves out when it runs Test262.
fn features_left_out() -> HashSet<String> {
    let settings = fs::read_to_string(package(PACKAGE).join("embed/quickjs/test262.conf")).unwrap();
    let features = settings.split("[features]").nth(1).unwrap().split("[exclude]").next().unwrap().to_owned();
    features.lines().filter_map(|line| line.trim().strip_suffix("=skip")).map(str::to_owned).collect()
}

fn case(root: &Path, name: String, source: String, front_matter: &FrontMatter) -> Case {
    let expectation = front_matter.negative.clone().map_or(Expectation::Prints(PASSED), Expectation::Throws);
    let mut harness = vec!["shell".to_owned()];
    // A raw file runs without the harness.
    if !front_matter.has_flag("raw") {
        let mut folder = String::new();
        for part in name.split('/') {
            let shell = format!("{folder}shell.js");
            if fs::metadata(root.join(&shell)).is_ok_and(|shell| shell.len() > 0) {
                harness.push(shell);
            }
            folder = format!("{folder}{part}/");
        }
    }
    Case { name, harness, source, expectation }
}
