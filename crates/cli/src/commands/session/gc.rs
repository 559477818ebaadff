//! `tokamak gc`: what is kept no longer goes.
//! Invariant: a dry run changes nothing.

use std::path::Path;

use ::session::{CollectionOptions, CollectionReport, Service};
use serde_json::json;

use super::with_service;
use crate::args::Gc;
use crate::failure::Failure;
use crate::output::Output;

pub async fn gc(file: Option<&Path>, args: &Gc, output: &Output) -> Result<(), Failure> {
    with_service((file, &args.work), async |service| {
        pass(&service, CollectionOptions { dry_run: args.dry_run, ..CollectionOptions::default() }, output).await
    })
    .await
}

/// One pass, and what came of it.
pub async fn pass(service: &Service, pass: CollectionOptions, output: &Output) -> Result<(), Failure> {
    let collected = service.collect_garbage(pass).await?;
    if output.json {
        let mut value = json!(collected);
        value["dry_run"] = json!(pass.dry_run);
        output.value(&value);
    } else {
        report(&collected, pass.dry_run, output);
    }
    if collected.unread.is_empty() {
        return Ok(());
    }
    let tables = collected.unread.join(", ");
    Err(Failure::Found(format!(
        "no blob was touched: {tables} cannot be read to the end, so what it names is not known"
    )))
}

fn report(collected: &CollectionReport, dry_run: bool, output: &Output) {
    let would = if dry_run { "would go" } else { "went" };
    if collected.rows.is_empty() && collected.blobs == 0 && collected.condemned == 0 {
        output.line(&format!("nothing {would}"));
    }
    for (table, count) in &collected.rows {
        output.line(&format!("{count:>8} {table} {would}"));
    }
    if collected.condemned > 0 {
        let n = collected.condemned;
        output.line(&format!("{n:>8} heaps that nothing leads to go after the grace period"));
    }
    if collected.blobs > 0 {
        output.line(&format!("{:>8} blobs {would}, {} bytes", collected.blobs, collected.blob_bytes));
    }
    output.line(&format!("{:>8} blobs stay, {} bytes", collected.kept_blobs, collected.kept_bytes));
}
