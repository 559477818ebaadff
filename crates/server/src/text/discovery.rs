//! Discovery results and the registry, as tables of few tokens.
//! Invariant: a row has what a seed needs, and a cell has no tab and no line break.

use session::{ApiAccess, ApiListing, DiscoveryAnswer};

/// The number of entity names on one line.
const MAX_NAMED_ENTITIES: usize = 24;
/// The number of APIs that an answer without rows names.
const MAX_NAMED_APIS: usize = 40;

/// Renders the answer of `discover_capabilities`.
pub fn discovered(discovered: &DiscoveryAnswer) -> String {
    let rows = &discovered.result.rows;
    if rows.is_empty() {
        return no_match(discovered);
    }
    let row = |hit: &teach::discovery::Hit| format!("{}\t{}\t{}\n", hit.api, hit.entity, one_line(&hit.description));
    format!("```tsv\napi\tentity\tdescription\n{}```", rows.iter().map(row).collect::<String>())
}

/// Lists the searched APIs, so that the model can ask again in their words.
fn no_match(discovered: &DiscoveryAnswer) -> String {
    let apis = discovered.apis.iter().take(MAX_NAMED_APIS);
    let api = |catalog: &std::sync::Arc<catalog::Catalog>| {
        format!("{}\t{}\t{}\n", catalog.id, one_line(&catalog.title), entity_names(catalog))
    };
    let more = match discovered.apis.len().saturating_sub(MAX_NAMED_APIS) {
        0 => String::new(),
        more => format!("\n{more} more: list_registry"),
    };
    format!(
        "Nothing here has words of this intent. Ask again in the words of one of these, or seed an entity by name:\n\
         ```tsv\napi\ttitle\tentities\n{}```{more}",
        apis.map(api).collect::<String>()
    )
}

/// Renders the answer of `list_registry`.
pub fn listed(listed: &[ApiListing], query: Option<&str>) -> String {
    if listed.is_empty() {
        return match query {
            Some(_) => {
                "No API here has these words in its id, title or entities; leave `query` out to see all.".to_owned()
            }
            None => "There are no APIs here.".to_owned(),
        };
    }
    let row = |listing: &ApiListing| {
        let catalog = &listing.catalog;
        let cells =
            [catalog.id.to_string(), one_line(&catalog.title), catalog.version.to_string(), entity_names(catalog)];
        format!("{}\t{}\n", cells.join("\t"), credentials(&listing.access))
    };
    format!("```tsv\napi\ttitle\tversion\tentities\tauth\n{}```", listed.iter().map(row).collect::<String>())
}

/// Says whether the credentials of an API are set.
fn credentials(access: &ApiAccess) -> String {
    match access {
        ApiAccess::Open => "none needed".to_owned(),
        ApiAccess::Signed => "set".to_owned(),
        ApiAccess::Anonymous(names) => format!("optional: {} not set", names.join(", ")),
        ApiAccess::Lacking(names) => format!("missing: {} not set", names.join(", ")),
    }
}

/// Lists the names of a catalog's entities, or as many as a line should have.
fn entity_names(catalog: &catalog::Catalog) -> String {
    let names: Vec<&str> = catalog.offered().take(MAX_NAMED_ENTITIES).map(|entity| entity.name.as_str()).collect();
    match catalog.offered().count().saturating_sub(MAX_NAMED_ENTITIES) {
        0 => names.join(", "),
        more => format!("{}, {more} more", names.join(", ")),
    }
}

/// Replaces line breaks and tabs with spaces.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
