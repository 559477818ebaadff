//! `tokamak artifact`: a stored result or plan, uncut.
//! Invariant: nothing is called; only `--pin` and `--unpin` change anything.

use std::path::Path;

use ::session::Resource;
use access::Caller;
use serde_json::json;

use super::with_service;
use crate::args::Artifact;
use crate::failure::Failure;
use crate::output::Output;

pub async fn artifact(file: Option<&Path>, args: &Artifact, output: &Output) -> Result<(), Failure> {
    let me = Caller::local();
    with_service((file, &args.work), async |service| {
        if args.pin || args.unpin {
            service.pin_artifact(&me, &args.uri, args.pin).await?;
            output.notice(if args.pin { "kept for as long as its session" } else { "kept no longer than others" });
            return Ok(());
        }
        match service.resource(&me, &args.uri).await? {
            Resource::Artifact(artifact) if output.json => output.value(&json!(artifact)),
            Resource::Plan(plan) if output.json => output.value(&json!(plan)),
            Resource::Artifact(artifact) => {
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
            Resource::Plan(plan) => {
                output.line(plan.explained.trim_end());
                output.line(&format!("\n{}", plan.program.trim_end()));
            }
        }
        Ok(())
    })
    .await
}
