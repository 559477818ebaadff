//! `tokamak catalog`: what catalogs there are, whether they are right, what they teach and whether their APIs agree.
//! Invariant: a catalog is read, taught and called by the code that a session uses; a secret is named, never shown.

mod check;
mod find;
mod graph;
mod import;
mod list;
mod schema;
mod show;
mod taught;
mod test;
mod tokens;

use std::path::Path;

pub use find::config;
pub use graph::drawn;

pub use import::draft;
pub use tokens::count;

use crate::args::CatalogCommand;
use crate::failure::Failure;
use crate::log;
use crate::output::Output;

pub async fn run(config: Option<&Path>, command: &CatalogCommand, output: &Output) -> Result<(), Failure> {
    log::init("error");
    match command {
        CatalogCommand::List(folders) => list::run(config, folders, output),
        CatalogCommand::Check(args) => check::run(args, output),
        CatalogCommand::Show(args) => show::run(config, args, output),
        CatalogCommand::Test(args) => test::run(config, args, output).await,
        CatalogCommand::Import(kind) => import::run(config, kind, output).await,
        CatalogCommand::Schema => schema::run(output),
    }
}
