//! `tokamak heap`: lists, shows, compares, tags, pins, exports and imports heaps.
//! Invariant: an exported file is written as a whole or not at all. An imported heap is verified before it is stored.

use std::io::Write;
use std::path::Path;

use app::calls::{
    DiffHeaps, ExportHeap, GetHeapTags, ImportHeap, ListHeaps, PinHeap, QueryHeapsByTags, SetHeapTags, ShowHeap,
};
use app::{App, Context};
use serde_json::json;
use session::{CollectionOptions, HeapInfo, Tags};

use super::with_app;
use crate::args::{HeapAction, HeapArgs, Settings};
use crate::failure::Failure;
use crate::output::Output;

/// The key of the tag that every imported heap gets. The value of the tag is the time of the import.
const IMPORTED_TAG: &str = "imported";

pub async fn run(config_file: Option<&Path>, args: &HeapArgs, output: &Output) -> Result<(), Failure> {
    with_app(config_file, Settings::from(&args.folder), async |app| run_action(&app, &args.action, output).await).await
}

async fn run_action(app: &App, action: &HeapAction, output: &Output) -> Result<(), Failure> {
    match action {
        HeapAction::List { limit, after } => {
            let request = ListHeaps { after: *after, limit: (*limit).clamp(1, 1_000) };
            let heaps = app.call(&Context::command("list_heaps"), request).await?;
            if output.json {
                output.value(&json!({"heaps": heaps}));
                return Ok(());
            }
            heaps.iter().for_each(|heap| output.line(&heap_line(heap, output)));
        }
        HeapAction::Show { key } => {
            let heap = app.call(&Context::command("show_heap"), ShowHeap { heap: key.clone() }).await?;
            output.value(&json!(heap));
        }
        HeapAction::Diff { a, b } => diff(app, a, b, output).await?,
        HeapAction::Export { key, output: path } => {
            let bytes = app.call(&Context::command("export_heap"), ExportHeap { heap: key.clone() }).await?;
            write_file_atomically(path, &bytes).map_err(|cause| Failure::Unwritable { path: path.clone(), cause })?;
            let value = json!({"heap": key, "file": path, "bytes": bytes.len()});
            output.value_or_line(&value, &format!("{} bytes", bytes.len()));
        }
        HeapAction::Import { file, tag } => import(app, file, tag.iter().cloned().collect(), output).await?,
        HeapAction::Pin { key, off } => {
            let request = PinHeap { heap: key.clone(), pinned: !off };
            let heap = app.call(&Context::command("pin_heap"), request).await?;
            let text = if *off {
                "the heap is unpinned and expires like other heaps"
            } else {
                "the heap is pinned and is kept until it is unpinned"
            };
            output.value_or_line(&json!({"heap": heap, "pinned": !off}), text);
        }
        HeapAction::Tag { key, tags, remove } => {
            let mut all = app.call(&Context::command("get_heap_tags"), GetHeapTags { heap: key.clone() }).await?;
            all.extend(tags.iter().cloned());
            all.retain(|name, _| !remove.contains(name));
            let request = SetHeapTags { heap: key.clone(), tags: all.clone() };
            app.call(&Context::command("set_heap_tags"), request).await?;
            output.value_or_line(&json!({"tags": all}), &tags_text(&all));
        }
        HeapAction::Gc { dry_run } => {
            let options = CollectionOptions { dry_run: *dry_run, only_js: true, ..CollectionOptions::default() };
            super::session::collect(app, options, output).await?;
        }
        HeapAction::Find { tags } => {
            let mut request = QueryHeapsByTags { tags: tags.iter().cloned().collect(), after: None, limit: None };
            let mut results = Vec::new();
            loop {
                let page = app.call(&Context::command("query_heaps_by_tags"), request.clone()).await?;
                for (heap, tags) in &page.rows {
                    if output.json {
                        results.push(json!({"heap": heap, "tags": tags}));
                    } else {
                        output.line(&format!("{heap} {}", tags_text(tags)));
                    }
                }
                request.after = page.next;
                if request.after.is_none() {
                    break;
                }
            }
            if output.json {
                output.value(&json!({"results": results}));
            }
        }
    }
    Ok(())
}

async fn import(app: &App, path: &Path, mut tags: Tags, output: &Output) -> Result<(), Failure> {
    let file = std::fs::read(path).map_err(|cause| match cause.kind() {
        std::io::ErrorKind::NotFound => Failure::Missing { path: path.to_owned() },
        _ => Failure::Unreadable { path: path.to_owned(), cause },
    })?;
    tags.entry(IMPORTED_TAG.to_owned()).or_insert_with(|| app.service().now().to_string());
    let heap = app.call(&Context::command("import_heap"), ImportHeap { file, tags: tags.clone() }).await?;
    output.value_or_line(&json!({"heap": heap, "tags": tags}), &heap.to_string());
    if !output.json {
        output.notice(&format!("the heap is kept while it has a tag or is pinned; its tags are {}", tags_text(&tags)));
    }
    Ok(())
}

/// Writes a new file for this user only and renames it to `path`, so that a reader sees either the old content or the whole new content.
fn write_file_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    // A rename would replace a pipe or a device, such as `/dev/stdout`, instead of writing to it.
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return std::fs::write(path, bytes);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?.to_string_lossy();
    let new = folder.join(format!(".{name}.{}", std::process::id()));
    let written = store::folder::create_new_file(&new)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&new, path))
        .and_then(|()| std::fs::File::open(folder)?.sync_all());
    if written.is_err() {
        // The partial file is removed. If the removal fails too, the first failure is reported.
        let _ = std::fs::remove_file(&new);
    }
    written
}

fn heap_line(heap: &HeapInfo, output: &Output) -> String {
    let key = output.bold(&heap.heap.to_string());
    let sizes = format!("{:>9} bytes stored, {} in memory", heap.stored_bytes, heap.memory_bytes);
    let pinned = if heap.pinned { "pinned " } else { "" };
    format!("{key} {sizes} {} {pinned}{}", heap.created, tags_text(&heap.tags))
}

fn tags_text(tags: &Tags) -> String {
    tags.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

async fn diff(app: &App, a: &str, b: &str, output: &Output) -> Result<(), Failure> {
    let request = DiffHeaps { a: a.to_owned(), b: b.to_owned() };
    let diff = app.call(&Context::command("diff_heaps"), request).await?;
    if output.json {
        output.value(&json!(diff));
        return Ok(());
    }
    for global in &diff.added {
        output.line(&format!("+ {} {} {}", global.name, global.kind, global.preview));
    }
    for global in &diff.removed {
        output.line(&format!("- {} {} {}", global.name, global.kind, global.preview));
    }
    for global in &diff.changed {
        output.line(&format!("~ {} {} -> {}", global.name, global.before.preview, global.after.preview));
    }
    let [before, after] = diff.memory_bytes;
    if diff.omitted > 0 {
        output.line(&format!("{} more global variables differ", diff.omitted));
    }
    output.line(&format!("{} global variables unchanged; memory {before} -> {after} bytes", diff.unchanged));
    Ok(())
}
