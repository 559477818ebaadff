//! The server settings `[teaching]`. They are the same for all sessions of a server.
//! Invariant: every field has a default, and an unknown field is an error.

use serde::Deserialize;

use crate::relevance::MIN_RELEVANCE;

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Teaching {
    /// The style in which tables write slots.
    pub slots: SlotStyle,
    /// The minimum relevance to the intent at which a write is taught, 0 to 1. It applies to all waves of a session.
    pub writes: f32,
}

impl Default for Teaching {
    fn default() -> Self {
        Self { slots: SlotStyle::default(), writes: MIN_RELEVANCE }
    }
}

/// The style in which a table writes slots. Programs may use both styles, independently of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlotStyle {
    /// Slots are written as symbols: `e1[p2,p4]`. The first row that uses a symbol explains its name.
    Symbols,
    /// Slots are written by name: `e1[number,title]`. This is the default, because tables of the shipped catalogs are a fifth
    /// smaller and no harder to read (docs/benchmarks.md).
    #[default]
    Names,
}
