//! `read_artifact` and its neighbours: stored results, plans and heaps by URI, the list of results, and pins.

use access::Caller;
use schemars::JsonSchema;
use serde::Deserialize;
use session::{Artifact, HeapInfo, Resource, ResourceUri, RunListItem, StoredPlan};

use crate::call::{App, Call, CallSummary};
use crate::error::Error;

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadArtifact {
    /// plasm://session/s0/r/1; #label for one of several returns; heap://KEY.
    pub uri: String,
    #[serde(default)]
    pub offset: usize,
    /// Rows (100).
    #[serde(default)]
    pub limit: Option<usize>,
    #[serde(default)]
    pub fields: Option<Vec<String>>,
}

/// The content behind a URI. The request's offset, limit and fields choose which part of it a client is shown.
#[derive(Debug)]
pub enum ArtifactContent {
    /// The result of a run, with the return that the URI names or with all of them.
    Artifact(Box<Artifact>),
    /// A plan that was shown.
    Plan(Box<StoredPlan>),
    /// The properties of a heap, not its content.
    Heap(HeapInfo),
}

impl ReadArtifact {
    /// Returns a request for everything behind a URI.
    pub fn whole(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), ..Self::default() }
    }
}

impl Call for ReadArtifact {
    const NAME: &'static str = "read_artifact";
    type Answer = ArtifactContent;

    async fn run(&self, app: &App, caller: &Caller) -> Result<ArtifactContent, Error> {
        if self.uri.starts_with("heap://") {
            return Ok(ArtifactContent::Heap(app.service().heap_info(caller, &self.uri).await?));
        }
        let content = match app.service().resource(caller, &self.uri).await? {
            Resource::Artifact(artifact) => {
                // Every return must have each field, because the fields choose the columns of every table.
                for field in self.fields.iter().flatten() {
                    let mut columns = artifact.returns.iter().map(|returned| &returned.columns);
                    if let Some(known) = columns.find(|columns| !columns.contains(field)) {
                        let known = known.join(", ");
                        let message = format!("no field `{}`; one of: {known}", base::printable(field, 80));
                        return Err(Error::BadArguments(message));
                    }
                }
                ArtifactContent::Artifact(artifact)
            }
            Resource::Plan(plan) => ArtifactContent::Plan(plan),
        };
        Ok(content)
    }

    fn summary(&self, result: &Result<ArtifactContent, Error>) -> CallSummary {
        let slot = ResourceUri::parse(&self.uri).ok().and_then(|uri| uri.session().map(str::to_owned));
        CallSummary { slot: slot.filter(|_| result.is_ok()), ..CallSummary::of(result) }
    }
}

/// The newest results of the sessions in the caller's slots.
#[derive(Debug, Clone)]
pub struct ListRuns;

impl Call for ListRuns {
    const NAME: &'static str = "list_runs";
    type Answer = Vec<RunListItem>;

    async fn run(&self, app: &App, caller: &Caller) -> Result<Vec<RunListItem>, Error> {
        Ok(app.service().list_runs(caller).await?)
    }
}

/// Pins a result, so that it is kept as long as its session, or unpins it.
#[derive(Debug, Clone)]
pub struct PinArtifact {
    pub uri: String,
    pub pinned: bool,
}

impl Call for PinArtifact {
    const NAME: &'static str = "pin_artifact";
    type Answer = ();

    async fn run(&self, app: &App, caller: &Caller) -> Result<(), Error> {
        Ok(app.service().pin_artifact(caller, &self.uri, self.pinned).await?)
    }
}
