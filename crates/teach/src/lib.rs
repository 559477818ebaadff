//! What the model reads: the ledger of symbols, which part of a catalog a wave exposes, and the table that teaches it.
//!
//! Invariants:
//! - No I/O, no async; no input makes it panic.
//! - The ledger is append-only: a symbol never changes its meaning.
//! - A taught line is parsed and checked by the code that runs programs before it is shown.

pub mod discovery;
mod exposure;
mod ledger;
mod seed;
mod settings;
mod shown_slots;
mod table;
pub mod words;

pub use ledger::{Extension, Ledger, TaughtEntity, TaughtMethod, TaughtRelation, Wave};
pub use seed::{Catalogs, Seed, SeedError, TeachRequest};
pub use settings::{SlotStyle, Teaching};
pub use table::{RenderedTable, UNCHANGED_USE, render_wave};
