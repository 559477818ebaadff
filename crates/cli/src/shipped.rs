//! The catalogs that are compiled into the binary: every file of `catalogs/`.
//! Invariant: every shipped catalog is offered, even if its secrets are not set. A file with the same id replaces the shipped catalog
//! (`catalog::CatalogSet`).

use std::sync::Arc;

use base::CatalogId;
use catalog::Catalog;

use crate::failure::Failure;

macro_rules! shipped {
    ($($id:literal)*) => {
        &[$(($id, include_str!(concat!("../../../catalogs/", $id, ".yaml")))),*]
    };
}

/// The id and the text of each shipped catalog.
const SHIPPED: &[(&str, &str)] = shipped![
    "demo" "github" "gitlab" "hackernews" "hackernews-search" "jira" "linear" "notion" "open-meteo"
    "open-meteo-places" "openlibrary" "pokeapi" "slack" "stripe" "wikipedia"
];

/// The origin to which each secret of the shipped catalogs is bound, as pairs of a secret's name and the catalog's origin. A file that
/// replaces a shipped catalog gets these secrets only for the same origin.
pub const SECRET_ORIGINS: &[(&str, &str)] = &[
    ("GITHUB_TOKEN", "https://api.github.com"),
    ("GITLAB_TOKEN", "https://gitlab.com"),
    ("JIRA_EMAIL", "https://api.atlassian.com"),
    ("JIRA_API_TOKEN", "https://api.atlassian.com"),
    ("LINEAR_API_KEY", "https://api.linear.app"),
    ("NOTION_TOKEN", "https://api.notion.com"),
    ("SLACK_TOKEN", "https://slack.com"),
    ("STRIPE_SECRET_KEY", "https://api.stripe.com"),
];

/// The id of the catalog of the demo API, which the binary itself serves.
const DEMO: &str = "demo";

/// Reads every shipped catalog. The catalog of the demo API is included only if `demo` is true.
pub fn all_catalogs(demo: bool) -> Result<Vec<Arc<Catalog>>, Failure> {
    let wanted = SHIPPED.iter().filter(|(id, _)| demo || *id != DEMO);
    wanted.map(|(id, text)| read(id, text)).collect()
}

/// Reads the catalog of the demo API.
pub fn demo_catalog() -> Result<Arc<Catalog>, Failure> {
    read(DEMO, include_str!("../../../catalogs/demo.yaml"))
}

pub fn is_shipped(id: &CatalogId) -> bool {
    SHIPPED.iter().any(|(shipped, _)| *shipped == id.as_str())
}

fn read(id: &str, text: &str) -> Result<Arc<Catalog>, Failure> {
    Ok(Arc::new(catalog::read(&format!("{id}.yaml"), text)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_shipped() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalogs");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut ids: Vec<String> = files
            .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        ids.sort();
        assert_eq!(ids, SHIPPED.iter().map(|(id, _)| (*id).to_owned()).collect::<Vec<_>>());
    }

    #[test]
    fn each_secret_of_a_shipped_catalog_is_bound_to_its_origin() {
        let catalogs = all_catalogs(true).unwrap();
        let uses = catalogs
            .iter()
            .flat_map(|catalog| catalog.auth.iter().flat_map(|auth| crate::wiring::secret_uses(auth, &catalog.origin)));
        let mut needed: Vec<_> = uses.map(|(name, origin)| (name.to_owned(), origin.to_string())).collect();
        needed.sort();
        needed.dedup();
        let bound = SECRET_ORIGINS.iter().map(|(name, origin)| ((*name).to_owned(), (*origin).to_owned()));
        let mut bound: Vec<_> = bound.collect();
        bound.sort();
        assert_eq!(needed, bound);
    }

    #[test]
    fn the_demo_can_be_left_out() {
        assert_eq!(all_catalogs(true).unwrap().len(), SHIPPED.len());
        assert_eq!(all_catalogs(false).unwrap().len(), SHIPPED.len() - 1);
        assert_eq!(demo_catalog().unwrap().id.as_str(), "demo");
    }
}
