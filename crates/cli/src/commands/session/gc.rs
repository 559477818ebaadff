//! `tokamak gc`: what is kept no longer goes.
//! Invariant: a dry run changes nothing.

use std::path::Path;

use ::session::{Collected, Pass};
use serde_json::json;

use super::with_service;
use crate::args::Gc;
use crate::failure::Failure;
use crate::output::Output;

pub async fn gc(file: Option<&Path>, args: &Gc, output: &Output) -> Result<(), Failure> {
    with_service((file, &args.work), async |service| {
        let pass = Pass { dry_run: args.dry_run, ..Pass::default() };
        let collected = service.collect_garbage(pass).await?;
        if output.json {
            let mut value = json!(collected);
            value["dry_run"] = json!(args.dry_run);
            output.value(&value);
        } else {
            report(&collected, args.dry_run, output);
        }
        if collected.unread.is_empty() {
            return Ok(());
        }
        let tables = collected.unread.join(", ");
        Err(Failure::Found(format!(
            "no blob was touched: {tables} cannot be read to the end, so what it names is not known"
        )))
    })
    .await
}

fn report(collected: &Collected, dry_run: bool, output: &Output) {
    let would = if dry_run { "would go" } else { "went" };
    if collected.rows.is_empty() && collected.blobs == 0 {
        output.line(&format!("nothing {would}"));
    }
    for (table, count) in &collected.rows {
        output.line(&format!("{count:>8} {table} {would}"));
    }
    if collected.blobs > 0 {
        output.line(&format!("{:>8} blobs {would}, {} bytes", collected.blobs, collected.blob_bytes));
    }
    output.line(&format!("{:>8} blobs stay, {} bytes", collected.kept_blobs, collected.kept_bytes));
}
