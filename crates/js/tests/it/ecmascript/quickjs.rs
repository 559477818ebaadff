//! The tests of QuickJS-NG, from the package with the guest's C sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::package;

use super::case_runner::{Case, Expectation};
use super::front_matter::FrontMatter;
use super::known_failures::KnownFailures;
use super::suite::{Suite, is_chosen};

pub const PACKAGE: &str = "libquickjs-ng-sys-0.14.0";
const KNOWN_FAILURES: &str = include_str!("quickjs.txt");
/// Files that are not tests: files that other tests import, and a benchmark.
const NO_TESTS: &[&str] = &["assert.js", "empty.js", "microbench.js", "test_worker_module.js"];

/// Imports that are removed, because the harness defines the functions of these modules that the tests use.
const HARNESS_IMPORTS: &[&str] = &["/assert.js\"", "\"qjs:std\"", "\"qjs:os\""];

/// Expected texts that are replaced, because this engine writes dates as browsers write them in en-US.
const REPLACED_TEXTS: &[(&str, &str)] = &[("04/07/2024, 0", "4/7/2024, "), ("04/07/2024, 1", "4/7/2024, 1")];

/// Defines the functions of the program `qjs` that the tests use. `gc` allocates until a ring of objects was collected,
/// because a script cannot request a collection. `getStringKind` guesses from the length, because a script cannot ask
/// the engine.
const SHELL: &str = "
    globalThis.print = (...values) => console.log(...values);
    globalThis.gc = () => {
        let ring = {}; ring.ring = ring;
        const seen = new WeakRef(ring);
        ring = null;
        for (let i = 0; seen.deref() !== undefined; i++) { if (i > 1e7) throw Error('nothing is collected'); const a = {}; a.a = a }
    };
    var std = {gc}, os = {platform: 'linux'}, qjs = {getStringKind: (text) => text.length > 1000 ? 1 : 0};
    0";

#[test]
fn quickjs_own_tests() {
    let folder = package(PACKAGE).join("embed/quickjs/tests");
    let mut cases = Vec::new();
    for path in files(&folder) {
        let name = path.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned();
        if !NO_TESTS.contains(&name.as_str()) && !name.starts_with("fixture_") && is_chosen(&name) {
            cases.push(case(name, &fs::read_to_string(&path).unwrap()));
        }
    }
    assert!(cases.len() > 100 || !is_chosen(""), "only {} files", cases.len());
    let assert = fs::read_to_string(folder.join("assert.js")).unwrap().replace("export function", "function");
    let harness_files = move |name: &str| if name == "shell" { SHELL.to_owned() } else { assert.clone() };
    let known_failures = KnownFailures::read(KNOWN_FAILURES);
    let suite = Suite {
        title: "QuickJS-NG's own tests",
        harness_files: Arc::new(harness_files),
        known_failures: &known_failures,
        run_natively: &|native, _, case| native.run_file(&folder.join(&case.name), &case.expectation),
        is_complete: true,
    };
    suite.check(&cases);
}

/// Turns a file into a case. A run has no modules, so a module that imports only parts of the harness becomes a strict
/// script.
fn case(name: String, text: &str) -> Case {
    let mut front_matter = FrontMatter::read(text);
    let mut source = String::with_capacity(text.len() + 20);
    let mut is_module = false;
    for line in text.lines() {
        let imports_harness = line.starts_with("import ") && HARNESS_IMPORTS.iter().any(|module| line.contains(module));
        is_module |= imports_harness;
        source += if imports_harness { "" } else { line };
        source.push('\n');
    }
    let expectation = match front_matter.negative.take() {
        Some(_) if front_matter.has_flag("qjs:set-interrupt-handler") => Expectation::Interrupted,
        Some(error) => Expectation::Throws(error),
        None => Expectation::Completes,
    };
    // Some tests check the file name in a stack trace.
    let mut source = source.replace(&name, "run.js");
    for (theirs, ours) in REPLACED_TEXTS {
        source = source.replace(theirs, ours);
    }
    let source = if is_module { format!("\"use strict\"; {source}") } else { source };
    Case { name, harness: vec!["shell".into(), "assert".into()], source, expectation }
}

/// Returns all JavaScript files below a folder, sorted.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files_below = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below.extend(files(&path));
        } else if path.extension().is_some_and(|end| end == "js") {
            files_below.push(path);
        }
    }
    files_below.sort();
    files_below
}
