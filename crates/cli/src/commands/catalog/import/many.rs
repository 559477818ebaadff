//! Several specifications: a line for each, nothing written unless a folder is given.
//! Invariant: one that fails does not end the others, not even by a panic; the lines come in the order of the files.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use import::Options;
use serde_json::{Value, json};

use super::learn::Learned;
use super::{make, print};
use crate::args::CatalogImport;
use crate::failure::Failure;
use crate::output::Output;

/// Each may need a gigabyte, so there are not as many as there are cores.
const THREADS: usize = 2;

pub fn run(args: &CatalogImport, graphql: bool, output: &Output) -> Result<(), Failure> {
    if let Some(folder) = &args.output {
        std::fs::create_dir_all(folder).map_err(|cause| Failure::Unwritable { path: folder.clone(), cause })?;
    }
    let files = files(&args.sources)?;
    let files = &files;
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Value)>> = Mutex::new(Vec::with_capacity(files.len()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS.min(files.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(at) else { break };
                    let value = one(args, graphql, file);
                    if let Ok(mut done) = done.lock() {
                        done.push((at, value));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(at, _)| *at);
    let values: Vec<Value> = done.into_iter().map(|(_, value)| value).collect();
    say(&values, output);
    let untaught = |value: &&Value| value["untaught"].as_array().is_some_and(|lines| !lines.is_empty());
    let lines = values.iter().filter(untaught).count();
    if lines > 0 {
        return Err(Failure::Found(format!("{lines} of {} drafts have lines that cannot be taught", values.len())));
    }
    let failed = values.iter().filter(|value| value["error"].is_string()).count();
    if failed > 0 {
        return Err(Failure::Found(format!("{failed} of {} specifications could not be imported", values.len())));
    }
    super::strict(args, average(&values))
}

/// Files as they are; of a folder every specification below it, in the order of their names.
fn files(sources: &[String]) -> Result<Vec<String>, Failure> {
    let mut out = Vec::new();
    let mut work: Vec<PathBuf> = sources.iter().rev().map(PathBuf::from).collect();
    while let Some(path) = work.pop() {
        if !path.is_dir() {
            out.push(path.display().to_string());
            continue;
        }
        let unreadable = |cause| Failure::Unreadable { path: path.clone(), cause };
        let mut inside: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(&path).map_err(unreadable)? {
            let inner = entry.map_err(unreadable)?.path();
            let ends = inner.extension().and_then(|end| end.to_str()).unwrap_or_default();
            if inner.is_dir() || matches!(ends, "json" | "yaml" | "yml" | "graphql") {
                inside.push(inner);
            }
        }
        inside.sort();
        work.extend(inside.into_iter().rev());
    }
    Ok(out)
}

fn one(args: &CatalogImport, graphql: bool, file: &str) -> Value {
    let options = Options { only: args.only.clone(), tag: args.tag.clone(), ..Options::default() };
    let tried = catch_unwind(AssertUnwindSafe(|| {
        let bytes = match std::fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) => return json!({"error": error.to_string(), "code": "unreadable"}),
        };
        let start = Instant::now();
        let made = match make(&bytes, &options, graphql) {
            Ok(made) => made,
            Err(error) => return json!({"error": error.to_string(), "code": error.code()}),
        };
        let ms = start.elapsed().as_millis();
        let learned = Learned::of(&made.catalog);
        let mut value = print::value(&made, &learned);
        value["ms"] = json!(ms);
        if let Some(folder) = &args.output {
            let name = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let path = folder.join(format!("{name}.yaml"));
            if let Err(error) = std::fs::write(&path, &made.text) {
                return json!({"error": error.to_string(), "code": "unwritable"});
            }
        }
        value
    }));
    let mut value = tried.unwrap_or_else(|_| json!({"error": "the importer panicked", "code": "panic"}));
    value["file"] = json!(file);
    value
}

fn average(values: &[Value]) -> f64 {
    let shares: Vec<f64> = values.iter().filter_map(|value| value["share"].as_f64()).collect();
    if shares.is_empty() { 1.0 } else { shares.iter().sum::<f64>() / shares.len() as f64 }
}

fn say(values: &[Value], output: &Output) {
    if output.json {
        return output.value(&json!({"files": values, "share": average(values)}));
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
        average(values) * 100.0
    ));
}
