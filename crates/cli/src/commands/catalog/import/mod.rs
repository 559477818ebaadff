//! `tokamak catalog import`: makes a draft of a catalog from a specification, and reports each operation that the draft does not cover.
//! Invariant: a draft is written only if the catalog reader accepts it. The report has each missing operation with the reason.

mod batch;
mod print;
mod source;
mod teaching_cost;

use std::path::Path;

use import::{Import, Options};
use serde_json::json;

use self::teaching_cost::TeachingCost;
use crate::args::{CatalogImportArgs, ImportKind};
use crate::failure::Failure;
use crate::output::Output;

pub async fn run(config_file: Option<&Path>, kind: &ImportKind, output: &Output) -> Result<(), Failure> {
    let (args, graphql) = match kind {
        ImportKind::Openapi(args) => (args, false),
        ImportKind::Graphql(args) => (args, true),
    };
    if args.sources.len() > 1 || args.sources.iter().any(|source| Path::new(source).is_dir()) {
        return batch::run(args, graphql, output);
    }
    // clap requires at least one source.
    let Some(source) = args.sources.first() else { return Ok(()) };
    // A URL with the extension of a schema file is fetched. Any other URL is an endpoint, which gets an introspection query.
    let is_endpoint = graphql && ![".graphql", ".graphqls", ".gql", ".json"].iter().any(|end| source.ends_with(end));
    let bytes = source::read(config_file, source, is_endpoint.then_some(source::INTROSPECTION)).await?;
    let options = Options {
        name: args.name.clone(),
        only: args.only.clone(),
        tag: args.tag.clone(),
        from: source::is_url(source).then(|| source.clone()),
    };
    let import = import_bytes(&bytes, &options, graphql)
        .map_err(|cause| Failure::Import { specification: source.clone(), cause })?;
    if args.update {
        return update_catalog(args, &import, output);
    }
    let cost = TeachingCost::of(&import.catalog);
    if let Some(path) = &args.output {
        let unwritable = |cause| Failure::Unwritable { path: path.clone(), cause };
        std::fs::write(path, &import.text).map_err(unwritable)?;
    }
    if output.json {
        let mut value = print::value(&import, &cost);
        match &args.output {
            Some(path) => value["file"] = json!(path),
            None => value["draft"] = json!(import.text),
        }
        output.value(&value);
    } else if args.output.is_some() {
        output.line(&print::text(&import, &cost, output));
    } else {
        // Only the draft goes to standard output, so that it can be piped into a file or a command.
        output.line(import.text.trim_end());
        output.notice(&print::text(&import, &cost, output));
    }
    check_share(args, import.report.share())
}

/// Adds the new operations of a specification to an existing catalog. All lines of that catalog are kept.
fn update_catalog(args: &CatalogImportArgs, import: &Import, output: &Output) -> Result<(), Failure> {
    let Some(path) = &args.output else { return Ok(()) };
    let existing = crate::config::read_text(path)?;
    let specification = path.display().to_string();
    let update = import::update(&existing, import).map_err(|cause| Failure::Import { specification, cause })?;
    let unwritable = |cause| Failure::Unwritable { path: path.clone(), cause };
    std::fs::write(path, &update.text).map_err(unwritable)?;
    if output.json {
        output.value(&json!(update));
    } else {
        output.line(&print::update_text(&update, output));
    }
    check_share(args, import.report.share())
}

/// Makes a draft of a catalog in memory from an OpenAPI specification, for `tokamak serve --openapi`.
pub async fn draft(config_file: Option<&Path>, source: &str) -> Result<Import, Failure> {
    let bytes = source::read(config_file, source, None).await?;
    let from = source::is_url(source).then(|| source.to_owned());
    let options = Options { from, ..Options::default() };
    import_bytes(&bytes, &options, false).map_err(|cause| Failure::Import { specification: source.to_owned(), cause })
}

/// Makes a draft of a catalog from a GraphQL schema if `graphql` is true, and from an OpenAPI specification otherwise.
fn import_bytes(bytes: &[u8], options: &Options, graphql: bool) -> Result<Import, import::ImportError> {
    if graphql { import::graphql(bytes, options) } else { import::openapi(bytes, options) }
}

/// Fails if the share of mapped operations is below the value of `--strict`.
fn check_share(args: &CatalogImportArgs, share: f64) -> Result<(), Failure> {
    match args.strict {
        Some(least) if share < least => Err(Failure::Found(format!(
            "{:.1} % of the operations are mapped, less than the {:.1} % of --strict",
            share * 100.0,
            least * 100.0
        ))),
        _ => Ok(()),
    }
}
