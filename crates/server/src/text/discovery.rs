//! What discovery found, and what the registry holds, as tables of few tokens.
//! Invariant: a row is what a seed needs; a cell has no tab and no line break.

use session::{ApiAccess, ApiListing, DiscoveryAnswer};

/// Names of entities that one line shows.
const ENTITIES: usize = 24;
/// APIs that an answer without rows names.
const APIS: usize = 40;

pub fn discovered(discovered: &DiscoveryAnswer) -> String {
    let rows = &discovered.found.rows;
    if rows.is_empty() {
        return nothing(discovered);
    }
    let row = |hit: &teach::discovery::Hit| format!("{}\t{}\t{}\n", hit.api, hit.entity, plain(&hit.description));
    format!("```tsv\napi\tentity\tdescription\n{}```", rows.iter().map(row).collect::<String>())
}

/// What there is, so that the next question can be asked in its words.
fn nothing(discovered: &DiscoveryAnswer) -> String {
    let apis = discovered.apis.iter().take(APIS);
    let api = |catalog: &std::sync::Arc<catalog::Catalog>| {
        format!("{}\t{}\t{}\n", catalog.id, plain(&catalog.title), names(catalog))
    };
    let more = match discovered.apis.len().saturating_sub(APIS) {
        0 => String::new(),
        more => format!("\n{more} more: list_registry"),
    };
    format!(
        "Nothing here has words of this intent. Ask again in the words of one of these, or seed an entity by name:\n\
         ```tsv\napi\ttitle\tentities\n{}```{more}",
        apis.map(api).collect::<String>()
    )
}

pub fn listed(listed: &[ApiListing], query: Option<&str>) -> String {
    if listed.is_empty() {
        return match query {
            Some(_) => {
                "No API here has these words in its id, title or entities; leave `query` out to see all.".to_owned()
            }
            None => "There are no APIs here.".to_owned(),
        };
    }
    let row = |one: &ApiListing| {
        let catalog = &one.catalog;
        let cells = [catalog.id.to_string(), plain(&catalog.title), catalog.version.to_string(), names(catalog)];
        format!("{}\t{}\n", cells.join("\t"), access(&one.access))
    };
    format!("```tsv\napi\ttitle\tversion\tentities\tauth\n{}```", listed.iter().map(row).collect::<String>())
}

fn access(access: &ApiAccess) -> String {
    match access {
        ApiAccess::Open => "none needed".to_owned(),
        ApiAccess::Signed => "set".to_owned(),
        ApiAccess::Anonymous(names) => format!("optional: {} not set", names.join(", ")),
        ApiAccess::Lacking(names) => format!("missing: {} not set", names.join(", ")),
    }
}

fn names(catalog: &catalog::Catalog) -> String {
    let names: Vec<&str> = catalog.offered().take(ENTITIES).map(|e| e.name.as_str()).collect();
    match catalog.offered().count().saturating_sub(ENTITIES) {
        0 => names.join(", "),
        more => format!("{}, {more} more", names.join(", ")),
    }
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
