//! Results, plans and heaps as MCP resources.
//! Invariant: a resource is the whole JSON behind a URI of the caller's tenant.

use app::calls::ArtifactContent;
use rmcp::model::{Resource, ResourceTemplate};
use session::RunListItem;

/// The media type of every resource.
pub const MIME_TYPE: &str = "application/json";
/// Characters of a program that the description of its result shows.
const MAX_PROGRAM_CHARS: usize = 120;

/// Returns the forms of URI that `resources/read` accepts.
pub fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: &str, name: &str, title: &str, description: &str| {
        ResourceTemplate::new(uri, name).with_title(title).with_description(description).with_mime_type(MIME_TYPE)
    };
    vec![
        template(
            "plasm://session/{session}/r/{number}",
            "artifact",
            "Result of a run",
            "All rows and fields of a run, uncut, as JSON; #label picks one of its returns.",
        ),
        template("heap://{key}", "heap", "A heap of JavaScript", "Its sizes, engine, parents and tags."),
        template("plasm://session/{session}/p/{number}", "plan", "Plan", "A plan as it was shown, with its program."),
        template(
            "plasm://execute/{prompt_hash}/{session}/run/{run}",
            "run",
            "Result of a run, by its id",
            "The same result under its canonical name.",
        ),
        template(
            "plasm://r/{number}",
            "principal_run",
            "Result of a run without an intent",
            "By its number among the caller's own.",
        ),
    ]
}

/// Lists runs as resources.
pub fn run_resources(runs: Vec<RunListItem>) -> Vec<Resource> {
    let resource = |run: RunListItem| {
        let program = run.program.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown: String = program.chars().take(MAX_PROGRAM_CHARS).collect();
        let name = run.uri.trim_start_matches("plasm://session/").to_owned();
        Resource::new(run.uri, name).with_description(format!("{} · {shown}", run.finished)).with_mime_type(MIME_TYPE)
    };
    runs.into_iter().map(resource).collect()
}

/// Returns the JSON text of a resource.
pub fn resource_text(content: &ArtifactContent) -> String {
    // All three are plain data with text keys, so serialization cannot fail.
    let text = match content {
        ArtifactContent::Artifact(artifact) => serde_json::to_string(artifact),
        ArtifactContent::Plan(plan) => serde_json::to_string(plan),
        ArtifactContent::Heap(heap) => serde_json::to_string(heap),
    };
    text.unwrap_or_default()
}
