//! How slots are written in a table: by symbol or by name.
//! Invariant: programs may use either, whatever the table showed.

use serde::Deserialize;

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
