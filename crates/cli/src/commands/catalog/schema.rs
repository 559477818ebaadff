//! `tokamak catalog schema`: the JSON Schema of the format.
//! Invariant: it is made from the types that read catalogs; `catalogs/schema.json` is the same text (a test compares).

use crate::failure::Failure;
use crate::output::Output;

pub fn run(output: &Output) -> Result<(), Failure> {
    output.value(&catalog::schema());
    Ok(())
}
