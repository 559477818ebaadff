//! What a server offers over MCP: chosen when it starts.
//! Invariant: the same for every connection, for as long as the server runs.

/// Which tools are listed and answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolSet {
    /// What programs need: to open a session, plan, run, find and read.
    Core,
    #[default]
    All,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Offer {
    pub tools: ToolSet,
    /// Also what the conformance suite asks for by name.
    #[cfg(feature = "conformance-fixtures")]
    pub fixtures: bool,
}
