//! The texts that a model reads: the ledger of symbols, the choice of the capabilities that a wave teaches, the table that
//! teaches them, and the search for the entities of an intent.
//!
//! Invariants:
//! - No I/O, no async; no input makes this crate panic.
//! - The ledger is append-only: a symbol never changes its meaning.
//! - A taught line is parsed and checked by the code that runs programs before it is shown.

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
