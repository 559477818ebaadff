//! Results and plans as MCP resources.
//! Invariant: a resource is what a URI leads to under the caller's tenant, whole, as JSON.

use rmcp::model::{Resource as Listed, ResourceTemplate};
use session::{Resource, RunListItem};

const MIME: &str = "application/json";
/// Characters of a program that a description shows.
const SHOWN: usize = 120;

pub fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: &str, name: &str, title: &str, description: &str| {
        ResourceTemplate::new(uri, name).with_title(title).with_description(description).with_mime_type(MIME)
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

pub fn listed(runs: Vec<RunListItem>) -> Vec<Listed> {
    let one = |run: RunListItem| {
        let program: String =
            run.program.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SHOWN).collect();
        let name = run.uri.trim_start_matches("plasm://session/").to_owned();
        Listed::new(run.uri, name).with_description(format!("{} · {program}", run.finished)).with_mime_type(MIME)
    };
    runs.into_iter().map(one).collect()
}

pub fn json(resource: &Resource) -> String {
    // Both are plain data with string keys.
    match resource {
        Resource::Artifact(artifact) => serde_json::to_string(artifact).unwrap_or_default(),
        Resource::Plan(plan) => serde_json::to_string(plan).unwrap_or_default(),
    }
}
