//! `tokamak artifact` and `gc`: print and pin stored results and plans, and remove expired data.
//! Invariant: no API is called. A dry run of the collection removes no data.

use std::path::Path;

use app::calls::{ArtifactContent, CollectGarbage, PinArtifact, ReadArtifact};
use app::{App, Context};
use serde_json::json;
use session::{Artifact, CollectionOptions, CollectionReport};

use super::with_app;
use crate::args::{ArtifactArgs, GcArgs, Settings};
use crate::failure::Failure;
use crate::output::Output;

/// `tokamak artifact`: prints a whole stored result or plan, or pins a result.
pub async fn artifact(config_file: Option<&Path>, args: &ArtifactArgs, output: &Output) -> Result<(), Failure> {
    with_app(config_file, Settings::from(&args.service), async |app| {
        if args.pin || args.unpin {
            let request = PinArtifact { uri: args.uri.clone(), pinned: args.pin };
            app.call(&Context::command("pin_artifact"), request).await?;
            let text = if args.pin {
                "the result is pinned and is kept until its session is removed"
            } else {
                "the result is unpinned and expires like other results"
            };
            output.notice(text);
            return Ok(());
        }
        let request = ReadArtifact::whole(args.uri.clone());
        match app.call(&Context::command("read_artifact"), request).await? {
            ArtifactContent::Artifact(artifact) if output.json => output.value(&json!(artifact)),
            ArtifactContent::Plan(plan) if output.json => output.value(&json!(plan)),
            ArtifactContent::Artifact(artifact) => print_artifact(&artifact, output),
            ArtifactContent::Plan(plan) => {
                output.line(plan.explained.trim_end());
                output.line(&format!("\n{}", base::visible_lines(plan.program.trim_end())));
            }
            ArtifactContent::Heap(heap) => output.value(&json!(heap)),
        }
        Ok(())
    })
    .await
}

fn print_artifact(artifact: &Artifact, output: &Output) {
    for returned in &artifact.returns {
        output.line(&output.bold(&format!("{} ({} rows)", returned.label, returned.rows.len())));
        match &returned.error {
            Some(error) => output.line(error),
            None => {
                let table = server::text::rows_table(&returned.columns, &returned.rows, |_, _| false);
                output.line(table.trim_end());
            }
        }
    }
}

/// `tokamak gc`: removes expired sessions, results, runs and heaps.
pub async fn gc(config_file: Option<&Path>, args: &GcArgs, output: &Output) -> Result<(), Failure> {
    with_app(config_file, Settings::from(&args.service), async |app| {
        collect(&app, CollectionOptions { dry_run: args.dry_run, ..CollectionOptions::default() }, output).await
    })
    .await
}

/// Runs one collection and prints its report.
pub async fn collect(app: &App, options: CollectionOptions, output: &Output) -> Result<(), Failure> {
    let report = app.call(&Context::command("collect_garbage"), CollectGarbage(options)).await?;
    if output.json {
        let mut value = json!(report);
        value["dry_run"] = json!(options.dry_run);
        output.value(&value);
    } else {
        print_report(&report, options.dry_run, output);
    }
    if report.unread.is_empty() {
        return Ok(());
    }
    let tables = report.unread.join(", ");
    Err(Failure::Found(format!(
        "no blob was removed, because rows of {tables} could not be read, and an unread row may refer to any blob"
    )))
}

fn print_report(report: &CollectionReport, dry_run: bool, output: &Output) {
    let removed = if dry_run { "would be removed" } else { "removed" };
    if report.rows.is_empty() && report.blobs == 0 && report.condemned == 0 {
        output.line(&format!("nothing {removed}"));
    }
    for (table, count) in &report.rows {
        output.line(&format!("{count:>8} {table} {removed}"));
    }
    if report.condemned > 0 {
        output
            .line(&format!("{:>8} heaps are unreferenced; they are removed after the grace period", report.condemned));
    }
    if report.blobs > 0 {
        output.line(&format!("{:>8} blobs {removed}, {} bytes", report.blobs, report.blob_bytes));
    }
    output.line(&format!("{:>8} blobs kept, {} bytes", report.kept_blobs, report.kept_bytes));
}
