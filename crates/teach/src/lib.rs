//! Teaching a model: the ledger of symbols, the choice of the capabilities that a wave teaches, the table of a wave, and the
//! discovery of the entities for an intent.
//!
//! Invariants:
//! - The crate does no I/O and is not async. No input makes it panic.
//! - The ledger is append-only, so a symbol never changes its meaning.
//! - Each row of a table is parsed and checked by the code that checks programs before a model reads the row.

pub mod discovery;
mod exposure;
mod ledger;
mod relevance;
mod request;
mod settings;
mod shown_slots;
mod table;
pub mod words;

pub use ledger::{Extension, Ledger, TaughtEntity, TaughtMethod, TaughtRelation, Wave};
pub use request::{Catalogs, Seed, SeedError, TeachRequest};
pub use settings::{SlotStyle, Teaching};
pub use table::{RenderedTable, UNCHANGED_USE, render_wave};
