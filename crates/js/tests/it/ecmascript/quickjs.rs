//! QuickJS-NG's own tests, from the package whose sources the guest is built of.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::package;

use super::desk::{Case, Wanted};
use super::expected::Expected;
use super::meta::Meta;
use super::suite::{Suite, chosen};

pub const PACKAGE: &str = "libquickjs-ng-sys-0.14.0";
const EXPECTED: &str = include_str!("quickjs.txt");
/// Files that others import, and a benchmark: no tests.
const NO_TESTS: &[&str] = &["assert.js", "empty.js", "microbench.js", "test_worker_module.js"];

/// Modules whose place the harness takes, as far as these tests use them.
const HARNESS: &[&str] = &["/assert.js\"", "\"qjs:std\"", "\"qjs:os\""];

/// Texts that the tests want and that are otherwise here on purpose: dates are written as browsers do in en-US.
const OTHERWISE: &[(&str, &str)] = &[("04/07/2024, 0", "4/7/2024, "), ("04/07/2024, 1", "4/7/2024, 1")];

/// What `qjs` has and the tests use. A collection is asked for until one has happened: a ring of objects that nothing else
/// holds is gone only then. How the engine keeps a string is not asked.
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
        if !NO_TESTS.contains(&name.as_str()) && !name.starts_with("fixture_") && chosen(&name) {
            cases.push(case(name, &fs::read_to_string(&path).unwrap()));
        }
    }
    assert!(cases.len() > 100 || !chosen(""), "only {} files", cases.len());
    let assert = fs::read_to_string(folder.join("assert.js")).unwrap().replace("export function", "function");
    let library = move |name: &str| if name == "shell" { SHELL.to_owned() } else { assert.clone() };
    let expected = Expected::read(EXPECTED);
    let suite = Suite {
        title: "QuickJS-NG's own tests",
        library: Arc::new(library),
        expected: &expected,
        natively: &|native, _, case| native.file(&folder.join(&case.name), &case.wanted),
        all: true,
    };
    suite.hold(&cases);
}

/// There are no modules in a run. One that imports nothing but the assertions is a strict script whose harness they are.
fn case(name: String, text: &str) -> Case {
    let mut meta = Meta::read(text);
    let mut source = String::with_capacity(text.len() + 20);
    let mut module = false;
    for line in text.lines() {
        let harness = line.starts_with("import ") && HARNESS.iter().any(|module| line.contains(module));
        module |= harness;
        source += if harness { "" } else { line };
        source.push('\n');
    }
    let wanted = match meta.negative.take() {
        Some(_) if meta.is("qjs:set-interrupt-handler") => Wanted::Interrupted,
        Some(error) => Wanted::Throws(error),
        None => Wanted::Completes,
    };
    // Errors say where they come from, and these tests look.
    let mut source = source.replace(&name, "run.js");
    for (theirs, ours) in OTHERWISE {
        source = source.replace(theirs, ours);
    }
    let source = if module { format!("\"use strict\"; {source}") } else { source };
    Case { name, harness: vec!["shell".into(), "assert".into()], source, wanted }
}

pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|end| end == "js") {
            found.push(path);
        }
    }
    found.sort();
    found
}
