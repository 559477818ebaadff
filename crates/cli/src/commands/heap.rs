//! `tokamak heap`: heaps, their tags, what they differ in, and heaps as files.
//! Invariant: a file is written whole or not at all; what is taken in is verified first.

use std::path::Path;

use serde_json::json;
use session::{Caller, HeapInfo, Pass, Service, Tags};
use tokio_util::sync::CancellationToken;

use super::js;
use crate::args::{Heap, HeapAction};
use crate::failure::Failure;
use crate::log;
use crate::output::Output;

pub async fn run(file: Option<&Path>, args: &Heap, output: &Output) -> Result<(), Failure> {
    log::init("error");
    let stop = CancellationToken::new();
    let service = js::open(file, &args.place, &stop).await?;
    let caller = Caller::local();
    match &args.action {
        HeapAction::List { limit, after } => {
            let found = service.heaps(&caller, *after, (*limit).clamp(1, 1_000)).await?;
            if output.json {
                output.value(&json!({"heaps": found.iter().map(server::js::heap).collect::<Vec<_>>()}));
                return Ok(());
            }
            found.iter().for_each(|info| output.line(&line(info, output)));
        }
        HeapAction::Show { key } => {
            let info = service.heap_info(&caller, key).await?;
            output.value(&server::js::heap(&info));
        }
        HeapAction::Diff { a, b } => diff(&service, (a, b), output).await?,
        HeapAction::Export { key, output: path } => {
            let bytes = service.export_heap(&caller, key).await?;
            let unwritable = |cause| Failure::Unwritable { path: path.clone(), cause };
            std::fs::write(path, &bytes).map_err(unwritable)?;
            done(output, &json!({"heap": key, "file": path, "bytes": bytes.len()}), &format!("{} bytes", bytes.len()));
        }
        HeapAction::Import { file } => {
            let unreadable = |cause| Failure::Unreadable { path: file.clone(), cause };
            let key = service.import_heap(&caller, &std::fs::read(file).map_err(unreadable)?).await?;
            done(output, &json!({"heap": key}), &key.to_string());
        }
        HeapAction::Tag { key, tags, remove } => {
            let mut next = service.heap_tags(&caller, key).await?;
            next.extend(tags.iter().cloned());
            next.retain(|name, _| !remove.contains(name));
            service.set_heap_tags(&caller, key, next.clone()).await?;
            done(output, &json!({"tags": next}), &written(&next));
        }
        HeapAction::Gc { dry_run } => {
            let pass = Pass { dry_run: *dry_run, only_js: true, ..Pass::default() };
            super::session::collect(&service, pass, output).await?;
        }
        HeapAction::Find { tags } => {
            let found = service.heaps_by_tags(&caller, &tags.iter().cloned().collect()).await?;
            if output.json {
                let results: Vec<_> = found.iter().map(|(heap, tags)| json!({"heap": heap, "tags": tags})).collect();
                output.value(&json!({"results": results}));
                return Ok(());
            }
            found.iter().for_each(|(heap, tags)| output.line(&format!("{heap} {}", written(tags))));
        }
    }
    Ok(())
}

fn done(output: &Output, value: &serde_json::Value, text: &str) {
    if output.json { output.value(value) } else { output.line(text) }
}

fn line(info: &HeapInfo, output: &Output) -> String {
    let sizes = format!("{:>9} of {} bytes", info.stored_bytes, info.memory_bytes);
    format!("{} {sizes} {} {}", output.bold(&info.heap.to_string()), info.created, written(&info.tags))
}

fn written(tags: &Tags) -> String {
    tags.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

async fn diff(service: &Service, (a, b): (&str, &str), output: &Output) -> Result<(), Failure> {
    let diff = service.diff_heaps(&Caller::local(), a, b).await?;
    if output.json {
        output.value(&json!(diff));
        return Ok(());
    }
    for named in &diff.added {
        output.line(&format!("+ {} {} {}", named.name, named.kind, named.preview));
    }
    for named in &diff.removed {
        output.line(&format!("- {} {} {}", named.name, named.kind, named.preview));
    }
    for changed in &diff.changed {
        output.line(&format!("~ {} {} -> {}", changed.name, changed.before.preview, changed.after.preview));
    }
    output.line(&format!(
        "{} unchanged; memory {} -> {} bytes",
        diff.unchanged, diff.memory_bytes[0], diff.memory_bytes[1]
    ));
    Ok(())
}
