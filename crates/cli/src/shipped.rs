//! The catalogs inside the binary: every file of `catalogs/`.
//! Invariant: all of them are offered, whether or not their secrets are set; a file of the same id
//! goes before the shipped one (`catalog::Shelf`).

use std::sync::Arc;

use base::CatalogId;
use catalog::Catalog;

use crate::failure::Failure;

macro_rules! shipped {
    ($($id:literal)*) => {
        &[$(($id, include_str!(concat!("../../../catalogs/", $id, ".yaml")))),*]
    };
}

/// Id and text.
const SHIPPED: &[(&str, &str)] = shipped![
    "demo" "demo-store" "github" "gitlab" "hackernews" "hackernews-search" "jira" "linear" "notion" "open-meteo"
    "open-meteo-places" "openlibrary" "pokeapi" "slack" "stripe" "wikipedia"
];

/// Those that need the demo API, which the binary itself serves.
const OF_THE_DEMO: [&str; 2] = ["demo", "demo-store"];

/// Every shipped catalog; those of the demo where it is served.
pub fn all(demo: bool) -> Result<Vec<Arc<Catalog>>, Failure> {
    let wanted = SHIPPED.iter().filter(|(id, _)| demo || !OF_THE_DEMO.contains(id));
    wanted.map(|(id, text)| read(id, text)).collect()
}

/// The ticket tracker of the demo.
pub fn demo() -> Result<Arc<Catalog>, Failure> {
    read("demo", include_str!("../../../catalogs/demo.yaml"))
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
    fn the_demo_can_be_left_out() {
        assert_eq!(all(true).unwrap().len(), SHIPPED.len());
        assert_eq!(all(false).unwrap().len(), SHIPPED.len() - 2);
        assert_eq!(demo().unwrap().id.as_str(), "demo");
    }
}
