//! The settings `[teaching]` of a server, which are the same for all its sessions.
//! Invariant: every field has a default, and an unknown field is an error.

use serde::Deserialize;

use crate::relevance::RELEVANT;

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Teaching {
    /// How tables write slots.
    pub slots: SlotStyle,
    /// The lowest relevance to the intent at which a write is taught, 0 to 1. It is the same for all waves of a session.
    pub writes: f32,
}

impl Default for Teaching {
    fn default() -> Self {
        Self { slots: SlotStyle::default(), writes: RELEVANT }
    }
}

/// How a table writes the slots of its expressions. Programs may use both styles, whatever the table used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlotStyle {
    /// `e1[p2,p4]`: the row that first needs a slot says the name of its symbol.
    Symbols,
    /// `e1[number,title]`: slots are written by name and have no symbols in the table. This is the default, because tables of
    /// the shipped catalogs are a fifth smaller and no harder to read (docs/benchmarks.md).
    #[default]
    Names,
}
