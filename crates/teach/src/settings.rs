//! How a server teaches: one setting for all its sessions.
//! Invariant: every field has a default; an unknown one is an error.

use serde::Deserialize;

use crate::words::RELEVANT;

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Teaching {
    /// How slots are written in tables.
    pub slots: SlotStyle,
    /// From which relevance to the intent on a write is taught, 0 to 1; the same for the first wave and for later ones.
    pub writes: f32,
}

impl Default for Teaching {
    fn default() -> Self {
        Self { slots: SlotStyle::default(), writes: RELEVANT }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlotStyle {
    /// `e1[p2,p4]`: each is named where it is first needed.
    Symbols,
    /// `e1[number,title]`: nothing needs naming. The default, because it is a fifth smaller over the shipped catalogs and no
    /// harder to read (docs/benchmarks.md).
    #[default]
    Names,
}
