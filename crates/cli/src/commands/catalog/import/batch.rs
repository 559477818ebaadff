//! Imports several specifications and prints one line for each. Drafts are written only if `-o` names a folder.
//! Invariant: a failure or a panic in one specification does not end the import of the others. The lines are in the order of the files.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use import::Options;
use serde_json::{Value, json};

use super::teaching_cost::TeachingCost;
use super::{import_bytes, print};
use crate::args::CatalogImportArgs;
use crate::failure::Failure;
use crate::output::Output;

/// The number of imports that run at the same time. One import may need a gigabyte of memory, so the number is small.
const THREADS: usize = 2;

pub fn run(args: &CatalogImportArgs, graphql: bool, output: &Output) -> Result<(), Failure> {
    if let Some(folder) = &args.output {
        std::fs::create_dir_all(folder).map_err(|cause| Failure::Unwritable { path: folder.clone(), cause })?;
    }
    let files = specification_files(&args.sources)?;
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Value)>> = Mutex::new(Vec::with_capacity(files.len()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS.min(files.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(index) else { break };
                    let value = import_file(args, graphql, file);
                    if let Ok(mut results) = results.lock() {
                        results.push((index, value));
                    }
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(index, _)| *index);
    let values: Vec<Value> = results.into_iter().map(|(_, value)| value).collect();
    print_values(&values, output);
    let has_untaught_lines = |value: &&Value| value["untaught"].as_array().is_some_and(|lines| !lines.is_empty());
    let untaught = values.iter().filter(has_untaught_lines).count();
    if untaught > 0 {
        return Err(Failure::Found(format!("{untaught} of {} drafts have lines that cannot be taught", values.len())));
    }
    let failed = values.iter().filter(|value| value["error"].is_string()).count();
    if failed > 0 {
        return Err(Failure::Found(format!("{failed} of {} specifications could not be imported", values.len())));
    }
    super::check_share(args, average_share(&values))
}

/// Returns the sources that are files, and every specification in the sources that are folders. The files of a folder are in the order of
/// their names.
fn specification_files(sources: &[String]) -> Result<Vec<String>, Failure> {
    let mut files = Vec::new();
    let mut unvisited: Vec<PathBuf> = sources.iter().rev().map(PathBuf::from).collect();
    while let Some(path) = unvisited.pop() {
        if !path.is_dir() {
            files.push(path.display().to_string());
            continue;
        }
        let unreadable = |cause| Failure::Unreadable { path: path.clone(), cause };
        let mut entries: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(&path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?.path();
            let extension = entry.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            if entry.is_dir() || matches!(extension, "json" | "yaml" | "yml" | "graphql") {
                entries.push(entry);
            }
        }
        entries.sort();
        // The order is reversed, because the loop visits the last path next.
        unvisited.extend(entries.into_iter().rev());
    }
    Ok(files)
}

/// Imports one file and returns the report or the error as JSON.
fn import_file(args: &CatalogImportArgs, graphql: bool, file: &str) -> Value {
    let options = Options { only: args.only.clone(), tag: args.tag.clone(), ..Options::default() };
    let result = catch_unwind(AssertUnwindSafe(|| {
        let bytes = match std::fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) => return json!({"error": error.to_string(), "code": "unreadable"}),
        };
        let start = Instant::now();
        let import = match import_bytes(&bytes, &options, graphql) {
            Ok(import) => import,
            Err(error) => return json!({"error": error.to_string(), "code": error.code()}),
        };
        let ms = start.elapsed().as_millis();
        let cost = TeachingCost::of(&import.catalog);
        let mut value = print::value(&import, &cost);
        value["ms"] = json!(ms);
        if let Some(folder) = &args.output {
            let name = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let path = folder.join(format!("{name}.yaml"));
            if let Err(error) = std::fs::write(&path, &import.text) {
                return json!({"error": error.to_string(), "code": "unwritable"});
            }
        }
        value
    }));
    let mut value = result.unwrap_or_else(
        |_| json!({"error": "the importer panicked on this specification, which is a defect", "code": "panic"}),
    );
    value["file"] = json!(file);
    value
}

/// Returns the average share of mapped operations over all specifications that were imported without an error.
fn average_share(values: &[Value]) -> f64 {
    let shares: Vec<f64> = values.iter().filter_map(|value| value["share"].as_f64()).collect();
    if shares.is_empty() { 1.0 } else { shares.iter().sum::<f64>() / shares.len() as f64 }
}

fn print_values(values: &[Value], output: &Output) {
    if output.json {
        return output.value(&json!({"files": values, "share": average_share(values)}));
    }
    for value in values {
        let file = value["file"].as_str().unwrap_or_default();
        match value["error"].as_str() {
            Some(error) => output.line(&format!("{file}: {}", error.lines().next().unwrap_or_default())),
            None => output.line(&format!(
                "{file}: {} of {} operations mapped, {} entities, {} relations, {} tokens for each capability, {} ms",
                value["mapped"],
                value["operations"],
                value["entities"],
                value["relations"],
                value["tokens"]["per_capability"],
                value["ms"],
            )),
        }
    }
    output.line(&format!(
        "{} specifications, {:.1} % of the operations mapped on average",
        values.len(),
        average_share(values) * 100.0
    ));
}
