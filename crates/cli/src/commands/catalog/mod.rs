//! `tokamak catalog`: lists, checks, shows, tests and imports catalogs.
//! Invariant: a catalog is read, taught and called by the code that sessions use. A secret is named, never shown.

mod check;
mod find;
mod graph;
mod import;
mod list;
mod show;
mod taught;
mod test;

use std::path::Path;

pub use find::read_config;
pub use graph::draw_boxes;
pub use import::draft;
pub use taught::count_tokens;

use crate::args::CatalogCommand;
use crate::failure::Failure;
use crate::log;
use crate::output::Output;

pub async fn run(config: Option<&Path>, command: &CatalogCommand, output: &Output) -> Result<(), Failure> {
    log::init("error");
    match command {
        CatalogCommand::List(args) => list::run(config, args, output),
        CatalogCommand::Check(args) => check::run(args, output),
        CatalogCommand::Show(args) => show::run(config, args, output),
        CatalogCommand::Test(args) => test::run(config, args, output).await,
        CatalogCommand::Import(kind) => import::run(config, kind, output).await,
        CatalogCommand::Schema => {
            // Made from the types that read catalogs. `catalogs/schema.json` has the same text (a test compares them).
            output.value(&catalog::schema());
            Ok(())
        }
    }
}
