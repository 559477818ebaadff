//! How a server teaches: one setting for all its sessions.
//! Invariant: every field has a default; an unknown one is an error.

use serde::Deserialize;

use crate::table::SlotStyle;
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
