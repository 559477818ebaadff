//! `tokamak catalog`: lists, checks, shows, tests and imports catalogs.
//! Invariant: these commands read, teach and call catalogs with the code that sessions use. They print the names of secrets, but no values.

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
            // The schema is made from the types that read catalogs. `catalogs/schema.json` has the same text (a test compares them).
            output.value(&catalog::schema());
            Ok(())
        }
    }
}
