//! `tokamak catalog import`: a specification as a draft of a catalog, and what became of each of its operations.
//! Invariant: the draft is written only when it loads; the report says every operation that is not in it, and why.

mod learn;
mod many;
mod print;
mod source;

use std::path::Path;

use import::{Import, Options};
use serde_json::json;

use self::learn::Learned;
use crate::args::{CatalogImport, ImportKind};
use crate::failure::Failure;
use crate::output::Output;

pub async fn run(file: Option<&Path>, kind: &ImportKind, output: &Output) -> Result<(), Failure> {
    let (args, graphql) = match kind {
        ImportKind::Openapi(args) => (args, false),
        ImportKind::Graphql(args) => (args, true),
    };
    if args.sources.len() > 1 || args.sources.iter().any(|source| Path::new(source).is_dir()) {
        return many::run(args, graphql, output);
    }
    let Some(name) = args.sources.first() else { return Ok(()) };
    // A file of a schema is fetched, an endpoint is asked.
    let endpoint = graphql && ![".graphql", ".graphqls", ".gql", ".json"].iter().any(|end| name.ends_with(end));
    let bytes = source::read(file, name, endpoint.then_some(source::INTROSPECTION)).await?;
    let made =
        make(&bytes, &options(args, name), graphql).map_err(|cause| Failure::Import { from: name.clone(), cause })?;
    if args.update {
        return renew(args, &made, output);
    }
    let learned = Learned::of(&made.catalog);
    if let Some(path) = &args.output {
        let unwritable = |cause| Failure::Unwritable { path: path.clone(), cause };
        std::fs::write(path, &made.text).map_err(unwritable)?;
    }
    if output.json {
        let mut value = print::value(&made, &learned);
        match &args.output {
            Some(path) => value["file"] = json!(path),
            None => value["draft"] = json!(made.text),
        }
        output.value(&value);
    } else if args.output.is_some() {
        output.line(&print::text(&made, &learned, output));
    } else {
        // The draft alone goes to standard output, so that it can be sent on.
        output.line(made.text.trim_end());
        output.notice(&print::text(&made, &learned, output));
    }
    strict(args, made.report.share())
}

/// Into the catalog that is there, which keeps every line it has.
fn renew(args: &CatalogImport, made: &Import, output: &Output) -> Result<(), Failure> {
    let Some(path) = &args.output else { return Ok(()) };
    let existing = crate::config::read_text(path)?;
    let from = path.display().to_string();
    let update = import::update(&existing, made).map_err(|cause| Failure::Import { from, cause })?;
    let unwritable = |cause| Failure::Unwritable { path: path.clone(), cause };
    std::fs::write(path, &update.text).map_err(unwritable)?;
    if output.json {
        output.value(&json!(update));
    } else {
        output.line(&print::update(&update, output));
    }
    strict(args, made.report.share())
}

/// An OpenAPI specification as a draft that nothing is written of.
pub async fn draft(file: Option<&Path>, source: &str) -> Result<Import, Failure> {
    let bytes = source::read(file, source, None).await?;
    let from = source::is_url(source).then(|| source.to_owned());
    let options = Options { from, ..Options::default() };
    make(&bytes, &options, false).map_err(|cause| Failure::Import { from: source.to_owned(), cause })
}

/// As a draft, whichever the specification is.
pub fn make(bytes: &[u8], options: &Options, graphql: bool) -> Result<Import, import::ImportError> {
    if graphql { import::graphql(bytes, options) } else { import::openapi(bytes, options) }
}

fn options(args: &CatalogImport, source: &str) -> Options {
    Options {
        name: args.name.clone(),
        only: args.only.clone(),
        tag: args.tag.clone(),
        from: source::is_url(source).then(|| source.to_owned()),
    }
}

/// Whether enough of the operations is mapped.
fn strict(args: &CatalogImport, share: f64) -> Result<(), Failure> {
    match args.strict {
        Some(least) if share < least => Err(Failure::Found(format!(
            "{:.1} % of the operations are mapped, not {:.1} %",
            share * 100.0,
            least * 100.0
        ))),
        _ => Ok(()),
    }
}
