//! `tokamak heap`: heaps, their tags, what they differ in, and heaps as files.
//! Invariant: a file is written whole or not at all; what is taken in is verified first.

use std::io::Write;
use std::path::Path;

use access::Caller;
use serde_json::json;
use session::{CollectionOptions, HeapInfo, Service, Tags};
use tokio_util::sync::CancellationToken;

use super::js;
use crate::args::{Heap, HeapAction};
use crate::failure::Failure;
use crate::log;
use crate::output::Output;

/// The tag of a heap that came from a file: when it came.
const IMPORTED: &str = "imported";

pub async fn run(file: Option<&Path>, args: &Heap, output: &Output) -> Result<(), Failure> {
    log::init("error");
    let stop = CancellationToken::new();
    let service = js::open(file, &args.place, &stop).await?;
    let caller = Caller::local();
    match &args.action {
        HeapAction::List { limit, after } => {
            let found = service.heaps(&caller, *after, (*limit).clamp(1, 1_000)).await?;
            if output.json {
                output.value(&json!({"heaps": found}));
                return Ok(());
            }
            found.iter().for_each(|info| output.line(&line(info, output)));
        }
        HeapAction::Show { key } => {
            let info = service.heap_info(&caller, key).await?;
            output.value(&json!(info));
        }
        HeapAction::Diff { a, b } => diff(&service, (a, b), output).await?,
        HeapAction::Export { key, output: path } => {
            let bytes = service.export_heap(&caller, key).await?;
            write_whole(path, &bytes).map_err(|cause| Failure::Unwritable { path: path.clone(), cause })?;
            done(output, &json!({"heap": key, "file": path, "bytes": bytes.len()}), &format!("{} bytes", bytes.len()));
        }
        HeapAction::Import { file, tag } => import(&service, file, tag.iter().cloned().collect(), output).await?,
        HeapAction::Pin { key, off } => {
            let key = service.pin_heap(&caller, key, !off).await?;
            let said = if *off { "kept no longer than others" } else { "kept until it is unpinned" };
            done(output, &json!({"heap": key, "pinned": !off}), said);
        }
        HeapAction::Tag { key, tags, remove } => {
            let mut next = service.heap_tags(&caller, key).await?;
            next.extend(tags.iter().cloned());
            next.retain(|name, _| !remove.contains(name));
            service.set_heap_tags(&caller, key, next.clone()).await?;
            done(output, &json!({"tags": next}), &written(&next));
        }
        HeapAction::Gc { dry_run } => {
            let pass = CollectionOptions { dry_run: *dry_run, only_js: true, ..CollectionOptions::default() };
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

async fn import(service: &Service, file: &Path, mut tags: Tags, output: &Output) -> Result<(), Failure> {
    let path = file.to_owned();
    let bytes = std::fs::read(file).map_err(|cause| match cause.kind() {
        std::io::ErrorKind::NotFound => Failure::Missing { path },
        _ => Failure::Unreadable { path, cause },
    })?;
    tags.entry(IMPORTED.to_owned()).or_insert_with(|| service.now().to_string());
    let key = service.import_heap(&Caller::local(), &bytes, &tags).await?;
    done(output, &json!({"heap": key, "tags": tags}), &key.to_string());
    if !output.json {
        output.notice(&format!("kept for as long as it has a tag or a pin; tagged {}", written(&tags)));
    }
    Ok(())
}

/// Beside the file first, then in its place: whoever looks finds what was there, or all of it.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    // What is no file (a pipe, `/dev/stdout`) has no place to be renamed to.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return std::fs::write(path, bytes);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?.to_string_lossy();
    let beside = folder.join(format!(".{name}.{}", std::process::id()));
    let written = std::fs::File::create_new(&beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&beside, path))
        .and_then(|()| std::fs::File::open(folder)?.sync_all());
    if written.is_err() {
        // Nothing half is left; where this fails too, the first failure is the one to tell.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

fn done(output: &Output, value: &serde_json::Value, text: &str) {
    if output.json { output.value(value) } else { output.line(text) }
}

fn line(info: &HeapInfo, output: &Output) -> String {
    let sizes = format!("{:>9} of {} bytes", info.stored_bytes, info.memory_bytes);
    let pinned = if info.pinned { "pinned " } else { "" };
    format!("{} {sizes} {} {pinned}{}", output.bold(&info.heap.to_string()), info.created, written(&info.tags))
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
