//! How slots are written in a table: by symbol or by name.
//! Invariant: programs may use either, whatever the table showed.

use serde::Deserialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlotStyle {
    /// `e1[p2,p4]`: short to write in programs; each is named where it is first needed.
    #[default]
    Symbols,
    /// `e1[number,title]`: nothing needs naming.
    Names,
}
